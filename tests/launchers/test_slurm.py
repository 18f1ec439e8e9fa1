"""The scripts of `tj slurm` on a real SLURM of two nodes: put back into the queue in the middle, stopped, cancelled."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import programs
import slurm
import training
from support.waiting import until

SECONDS_MAX = 240  # of each wait; a build machine may be busy
MANIFEST = """
apiVersion: kubebrain.io/v1
kind: TrainingJob
metadata: {{name: nano}}
spec:
  runPolicy: {{activeDeadlineSeconds: 86400}}
  replicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: trainer
            image: trainingjob/trainer:0.1.0
            command: [trainer, launch, --, trainer, train]
            args: {args}
            resources: {{requests: {{cpu: 500m, memory: 200Mi}}}}
            volumeMounts: [{{name: out, mountPath: /out}}]
          volumes: [{{name: out, emptyDir: {{}}}}]
"""
# What a shell, sbatch or a terminal could take for something else.
ODD = ["$(touch broken-out)", "`touch broken-out`", "'; touch broken-out; '", '"; touch broken-out; "', "a b", "*", "~", "",
       "END_OF_WORKER", "x\nEND_OF_WORKER\ntouch broken-out\n", "#SBATCH --job-name=other", "\\", "$$", "%j", "-n", "!x", "ü"]


class OnSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = pathlib.Path(tempfile.mkdtemp(prefix="tj-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.world, ignore_errors=True)
        (cls.world / "daemons").mkdir()
        cls.slurm = slurm.Slurm(programs.slurm_usr(), cls.world / "daemons")
        cls.data = cls.world / "text"
        training.write_text(cls.data)
        cls.calm = cls.world / "calm"  # the run that nobody disturbs, as a step of srun
        slurm.run("srun", "--nodes=2", "--ntasks-per-node=1", *training.words(cls.data, cls.calm), seconds_max=SECONDS_MAX)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.world))
        self.out = self.folder / "run"

    def tearDown(self):
        until(SECONDS_MAX, lambda: f"nothing to be left of {self.id()}: {self.slurm.left_behind()}",
              lambda: not self.slurm.left_behind())

    def script(self, *words, code=0):
        done = subprocess.run([programs.TJ, "slurm", "-o", "job.sh", *map(str, words)], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS_MAX)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.said = done.stderr
        return self.folder / "job.sh"

    def submit(self, script):
        self.job = self.slurm.submit(script, self.folder)
        return self.job

    def log(self):
        """Of the script itself."""
        return "".join(file.read_text() for file in self.folder.glob("*.log"))

    def logs(self):
        """{name: text} of those in the folder of the job."""
        return {file.name: file.read_text() for file in self.folder.glob(f"logs/{self.job}/*")}

    def until_trained(self, steps):
        def furthest():
            return max(training.losses(self.out), default=0)
        until(SECONDS_MAX, lambda: f"step {steps}: {furthest()}\n{self.log()}\n{self.logs()}", lambda: furthest() >= steps)

    def until_ended(self, wanted):
        try:
            self.slurm.until_ended(self.job, SECONDS_MAX, wanted)
        except AssertionError as failure:
            self.fail(f"{failure}\n{self.log()}\n{self.logs()}")

    def disturb(self, step, *words):
        """In the middle of the training, from this step on. It stands still until SLURM's SIGTERM has come to all of its
        processes: otherwise it could be at its end before."""
        self.until_trained(step)
        trainings = self.slurm.trainings()
        self.assertTrue(trainings, self.slurm.left_behind())
        with slurm.standing_still(trainings):
            slurm.run(*words, self.job)
            until(SECONDS_MAX, lambda: f"SIGTERM to come to {trainings}\n{self.log()}",
                  lambda: all(slurm.is_asked_to_stop(pid) for pid in trainings))

    def disturb_twice(self):
        """Once by whoever may put jobs back, once as its time limit does it."""
        self.disturb(training.DISTURBED_AFTER, "scontrol", "requeue")
        self.slurm.start_again(self.job, 1, SECONDS_MAX)
        self.disturb(self.resumed_at(1) + training.DISTURBED_AFTER, "scancel", "--batch", "--signal=USR1")
        self.slurm.start_again(self.job, 2, SECONDS_MAX)
        self.until_ended("COMPLETED")

    def resumed_at(self, times):
        """The step from which the run went on for the last time."""
        found = until(SECONDS_MAX, lambda: f"the run to go on, {times}\n{self.log()}\n{self.logs()}",
                      lambda: len(training.events(self.out, "resume")) >= times and training.events(self.out, "resume"))
        return found[times - 1]["at_step"]

    def expect_undisturbed_bits(self):
        first, second = self.resumed_at(1), self.resumed_at(2)
        self.assertTrue(training.DISTURBED_AFTER <= first < second < training.STEPS, (first, second))
        self.assertEqual(training.losses(self.out), training.losses(self.calm))
        self.assertEqual(training.bits(self.out), training.bits(self.calm))

    def expect_whole_logs(self, log):
        """Also the last lines of runs that were put back, which srun did not see any more."""
        for name in (log.format(0), log.format(1)):
            text = self.logs()[name]
            self.assertEqual(re.findall(r"(?m)^tj slurm: task \d on n\d, run (\d)$", text), ["0", "1", "2"], name)
        text = self.logs()[log.format(0)]
        self.assertEqual(len(re.findall(r"(?m)^trainer: .*asked to stop by signal 15; step \d+ of 300 is saved", text)), 2, text)
        self.assertIn(f"finished {training.STEPS} steps", text)

    def test_a_manifest_put_back_twice_ends_with_the_bits_of_an_undisturbed_run(self):
        arguments = [word.replace(str(self.out), "/out") for word in training.words(self.data, self.out)[2:]]
        (self.folder / "job.yaml").write_text(MANIFEST.format(args=json.dumps(arguments)))
        script = self.script("-f", "job.yaml", "--output-dir", "logs", "--volume", f"out={self.out}")
        self.assertIn("--resume is added to trainer train", self.said)
        self.submit(script)
        self.disturb_twice()
        self.expect_whole_logs("worker-{}.log")
        self.expect_undisturbed_bits()
        self.assertEqual(self.logs()["restarts"], "uncounted run=1 code=75\n")

    def test_a_task_for_each_process_put_back_twice_ends_with_the_same_bits(self):
        self.submit(self.script("--job-name", "nano", "--num-nodes", 1, "--tasks-per-node", 2, "--output-dir", "logs", "--",
                                *training.words(self.data, self.out)))
        self.disturb_twice()
        self.expect_whole_logs("rank-{}.log")
        self.expect_undisturbed_bits()

    def test_cancelled_it_saves_and_leaves_no_process(self):
        for number, words in enumerate((
                ("--num-nodes", 2, "--", "trainer", "launch", "--", *training.words(self.data, self.out)),
                ("--num-nodes", 1, "--tasks-per-node", 2, "--", *training.words(self.data, self.out)))):
            with self.subTest(words[:3]):
                shutil.rmtree(self.out, ignore_errors=True)
                self.submit(self.script("--job-name", f"nano-{number}", "--output-dir", "logs", *words))
                self.disturb(training.DISTURBED_AFTER, "scancel")
                self.until_ended("CANCELLED")
                until(SECONDS_MAX, lambda: f"no process: {self.slurm.left_behind()}", lambda: not self.slurm.left_behind())
                self.assertEqual(len(list(self.out.glob("step-*"))), 1)
                self.assertIn("asked to stop; the tasks ended with exit code 75", self.log())
                self.assertNotIn("restarts", self.logs())

    def test_srun_alone_with_a_task_for_each_process_trains_and_is_cancelled(self):
        """No script: the trainer reads SLURM's variables."""
        slurm.run("srun", "--nodes=1", "--ntasks-per-node=2", *training.words(self.data, self.out), seconds_max=SECONDS_MAX)
        self.assertEqual(training.bits(self.out), training.bits(self.calm))
        shutil.rmtree(self.out)
        with subprocess.Popen(["srun", "--nodes=2", "--ntasks-per-node=1", "trainer", "launch", "--",
                               *training.words(self.data, self.out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            self.job = until(SECONDS_MAX, "the step to be there", lambda: slurm.run("squeue", "--noheader", "--states=RUNNING", "--format=%i").strip())
            self.disturb(training.DISTURBED_AFTER, "scancel")
        self.until_ended("CANCELLED")

    def test_an_exit_code_says_what_becomes_of_the_job(self):
        """The first one that is not 76: that one only says that another rank went away."""
        lost = 'if [ "$RANK" = 1 ]; then exit 76; fi; exit {}'
        for code, runs, said in ((65, 1, "another try would end the same way"), (3, 2, "no restart is left of 1")):
            with self.subTest(code):
                self.submit(self.script("--job-name", f"ends-{code}", "--num-nodes", 2, "--max-restarts", 1, "--output-dir", "logs",
                                        "--", "sh", "-c", lost.format(code)))
                for run in range(1, runs):
                    self.slurm.start_again(self.job, run, SECONDS_MAX)
                self.until_ended("FAILED")
                self.assertIn(f"exit code {code}", self.log())
                self.assertIn(said, self.log())
                self.assertEqual(self.logs().get("restarts", ""), "counted run=0 code=3\n" * (runs - 1))

    def test_words_and_variables_of_any_kind_arrive_as_they_are(self):
        seen = self.folder / "seen.json"
        tell = f"import json, os, sys; json.dump([sys.argv[1:], dict(os.environ)], open('{seen}-' + os.environ['RANK'], 'w'))"
        env = [{"name": f"ODD_{number}", "value": value.replace("$", "$$")} for number, value in enumerate(ODD)]
        env.append({"name": "PLACE", "value": "$(RANK) of $(WORLD_SIZE), $(ODD_4), $(NOBODY)"})
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}})
        container = {"name": "main", "image": "none", "command": ["python3", "-c", tell],
                     "args": [word.replace("$", "$$") for word in ODD], "env": env}
        manifest = {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": "odd"}, "spec": {"replicaSpecs": {
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [container]}}}}}}
        (self.folder / "job.yaml").write_text(json.dumps(manifest))
        script = self.script("-f", "job.yaml")
        self.submit(script)
        self.until_ended("FAILED")
        self.assertIn("HF_TOKEN is not set; it must be in the environment of sbatch", self.log())
        os.environ["HF_TOKEN"] = "a secret"
        self.addCleanup(os.environ.pop, "HF_TOKEN")
        self.submit(script)
        self.until_ended("COMPLETED")
        for rank in range(2):
            words, variables = json.loads(pathlib.Path(f"{seen}-{rank}").read_text())
            self.assertEqual(words, ODD)
            self.assertEqual([variables[f"ODD_{number}"] for number in range(len(ODD))], ODD)
            self.assertEqual(variables["PLACE"], f"{rank} of 2, a b, $(NOBODY)")
            self.assertEqual(variables["HF_TOKEN"], "a secret")
            self.assertEqual([variables[name] for name in ("RANK", "NODE_RANK", "WORLD_SIZE", "NNODES", "MASTER_ADDR", "TRAININGJOB_UID",
                                                           "TRAININGJOB_ATTEMPT", "NODE_NAME")],
                             [str(rank), str(rank), "2", "2", "n1", f"slurm-{self.job}", "0", f"n{rank + 1}"])
        self.assertFalse(list(self.world.rglob("broken-out")))
