"""Stories of `tj slurm`: its scripts run here under programs that stand in for SLURM's; on a real one in tests/launchers.

usage: tj_slurm_test.py TJ [unittest arguments]
What is said of slurm/everything.yaml lies beside it in everything.txt; TJ_UPDATE_GOLDEN=1 writes it anew.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import tj_test

HERE = tj_test.HERE
# What a shell, sbatch or a terminal could take for something else.
ODD = ["$(touch broken-out)", "`touch broken-out`", "'; touch broken-out; '", '"; touch broken-out; "', "a b", "*", "~", "",
       "END_OF_WORKER", "x\nEND_OF_WORKER\ntouch broken-out\n", "#SBATCH --job-name=other", "\\", "\\'", "$$", "${IFS}", "%j", "-n", "ü"]
# One srun for all nodes: tasks one after another, each with its own log.
SRUN = """#!/usr/bin/python3
import os, subprocess, sys
options = {}
words = sys.argv[1:]
while words[0].startswith("--"):
    name, _, value = words.pop(0).partition("=")
    options[name] = value
nodes, per_node = int(options["--nodes"]), int(options.get("--ntasks-per-node", 1))
codes = []
for task in range(nodes * per_node):
    told = {"SLURM_PROCID": task, "SLURM_LOCALID": task % per_node, "SLURM_NODEID": task // per_node, "SLURM_NTASKS": nodes * per_node,
            "SLURMD_NODENAME": f"n{task // per_node + 1}"}
    log = open(options["--output"].replace("%t", str(task)).replace("%%", "%"), "a") if "--output" in options else None
    codes.append(subprocess.run(words, env={**os.environ, **{name: str(value) for name, value in told.items()}}, stdout=log,
                                stderr=log).returncode)
    if codes[-1]:
        print(f"srun: error: n{task // per_node + 1}: task {task}: Exited with exit code {codes[-1]}", file=sys.stderr)
with open("calls", "a") as calls:
    calls.write("srun " + " ".join(options) + "\\n")
sys.exit(max(codes))
"""
SCONTROL = """#!/bin/sh
if [ "$1" = show ]; then echo n1; echo n2; else echo "scontrol $*" >>calls; fi
"""
SCANCEL = """#!/bin/sh
echo "scancel $*" >>calls
"""


class SlurmStory(tj_test.Story):
    def setUp(self):
        super().setUp()
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL), ("scancel", SCANCEL)):
            self.program(name, text)

    def program(self, name, text):
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def script(self, *words):
        """What is said, once the script is made."""
        result = self.tj("slurm", "-o", "job.sh", *map(str, words))
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        subprocess.run(["bash", "-n", "job.sh"], cwd=self.folder, check=True)
        if shutil.which("shellcheck"):
            checked = subprocess.run(["shellcheck", "--severity=warning", "job.sh"], cwd=self.folder, text=True, stdout=subprocess.PIPE)
            self.assertEqual(checked.returncode, 0, checked.stdout)
        return result.stderr

    def job(self, container, **spec):
        """A manifest of two workers."""
        container = {"name": "main", "image": "none", **container}
        manifest = {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": "job"}, "spec": {**spec, "replicaSpecs": {
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}}}}}}
        (self.folder / "job.yaml").write_text(json.dumps(manifest))

    def run_script(self, code=0, **variables):
        env = self.env(SLURM_JOB_ID="12345", SLURM_JOB_NAME="job", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES="2", **variables)
        env["PATH"] = f"{self.programs}:{env['PATH']}"
        done = subprocess.run(["bash", "job.sh"], cwd=self.folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=tj_test.DEADLINE_S)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def calls(self):
        try:
            return [line for line in (self.folder / "calls").read_text().splitlines() if not line.startswith("srun")]
        except FileNotFoundError:
            return []

    def log(self, name):
        return (self.folder / "out/job/12345" / name).read_text()


class SlurmScript(SlurmStory):
    def test_words_and_variables_of_any_kind_arrive_as_they_are(self):
        tell = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
        env = [{"name": f"ODD_{number}", "value": value.replace("$", "$$")} for number, value in enumerate(ODD)]
        self.job({"command": ["python3", "-c", tell], "args": [word.replace("$", "$$") for word in ODD], "env": env})
        self.script("-f", "job.yaml")
        self.run_script()
        self.seen_by_all()
        self.script("--job-name", "job", "--num-nodes", 2, *(f"--env={entry['name']}={value}" for entry, value in zip(env, ODD)), "--",
                    "python3", "-c", tell, *ODD)
        shutil.rmtree(self.folder / "out")
        self.run_script()
        self.seen_by_all()

    def seen_by_all(self):
        for rank in (0, 1):
            greeting, seen = self.log(f"worker-{rank}.log").splitlines()
            self.assertEqual(greeting, f"tj slurm: task {rank} on n{rank + 1}, run 0")
            words, variables = json.loads(seen)
            self.assertEqual(words, ODD)
            self.assertEqual([variables[f"ODD_{number}"] for number in range(len(ODD))], ODD)
            self.assertEqual([variables[name] for name in ("RANK", "PET_NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")],
                             [str(rank), str(rank), "2", "n1", "17345"])
        self.assertFalse(list(self.folder.rglob("broken-out")))

    def test_hostile_names_in_a_manifest_stay_in_comments(self):
        self.job({"command": ["true"], "x\n#SBATCH --uid=0\ntouch broken-out": 1})
        manifest = json.loads((self.folder / "job.yaml").read_text())
        manifest["metadata"]["annotations"] = {"a": "b\ntouch broken-out\u2028touch broken-out"}
        self.folder.joinpath("$(touch broken-out)\n.yaml").write_text(json.dumps(manifest))
        said = self.script("-f", "$(touch broken-out)\n.yaml")
        self.assertIn("is left out", said)
        text = (self.folder / "job.sh").read_text()
        self.assertEqual(re.findall(r"(?m)^#SBATCH --uid", text), [])
        self.run_script()
        self.assertFalse(list(self.folder.rglob("broken-out")))

    def test_a_task_of_each_process_has_torchruns_variables(self):
        self.script("--job-name", "job", "--num-nodes", 2, "--tasks-per-node", 2, "--", "sh", "-c",
                    "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $PET_NNODES.")
        self.run_script()
        self.assertEqual([self.log(f"rank-{rank}.log").splitlines()[1] for rank in range(4)],
                         [f"{rank} 4 {rank % 2} 2 {rank // 2} n1 ." for rank in range(4)])

    def test_a_container_gets_the_folders(self):
        self.program("apptainer", "#!/bin/sh\nprintf '<%s>' \"$@\"\necho\n")
        self.job({"command": ["env", "a b"], "workingDir": "/w", "volumeMounts": [{"name": "v", "mountPath": "/v"}]})
        self.script("-f", "job.yaml", "--container", "apptainer", "--volume", f"v={self.folder}/a b")
        self.run_script()
        self.assertEqual(self.log("worker-1.log").splitlines()[1],
                         f"<exec><--pwd=/w><--bind={self.folder}/a b:/v><docker://none><env><a b>")

    def test_a_folder_of_each_node_is_made_and_removed(self):
        self.job({"command": ["touch", "/v/here"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]})
        self.script("-f", "job.yaml")
        shutil.rmtree("/tmp/tj-12345-v", ignore_errors=True)
        self.run_script()
        self.assertFalse(pathlib.Path("/tmp/tj-12345-v").exists())
        self.assertEqual((self.folder / "calls").read_text().count("srun"), 3)

    def test_exit_codes_follow_the_rules_and_the_budget(self):
        self.job({"command": ["sh", "-c", "exit $CODE"]}, runPolicy={"maxRestarts": 1}, failurePolicy={"rules": [
            {"action": "RestartIgnoringBudget", "exitCodes": [42]}, {"action": "Fail", "signals": [9]}]})
        self.script("-f", "job.yaml")
        again = ["scontrol requeue 12345"]
        for run, (code, calls, said) in enumerate(((42, again, "exit code 42; it goes back"), (42, again, "exit code 42; it goes back"),
                                                   (3, again, "exit code 3; it goes back"), (3, [], "no restart is left of 1"),
                                                   (75, again, "it goes back"), (64, [], "would end the same way"),
                                                   (137, [], "would end the same way"), (127, [], "no restart is left of 1"))):
            out = self.run_script(code, CODE=str(code), SLURM_RESTART_COUNT=str(run))
            self.assertIn(said, out)
            self.assertEqual(self.calls(), calls, out)
            (self.folder / "calls").unlink()
        self.assertEqual(self.log("restarts"), "uncounted run=0 code=42\nuncounted run=1 code=42\ncounted run=2 code=3\nuncounted run=4 code=75\n")

    def test_a_command_that_is_not_there_is_not_tried_again(self):
        self.job({"command": ["no-such-program"]})
        self.script("-f", "job.yaml")
        self.assertIn("exit code 127: another try would end the same way", self.run_script(127))

    def test_the_first_one_counts_but_for_those_that_lost_another(self):
        self.job({"command": ["sh", "-c", "[ $RANK = 0 ] && exit 76; exit 65"]})
        self.script("-f", "job.yaml")
        self.assertIn("exit code 65: another try", self.run_script(65))
        self.assertIn("srun: error: n1: task 0: Exited with exit code 76", (self.folder / "out/job/12345/srun-0.log").read_text())

    def test_the_deadline_is_of_all_runs(self):
        self.job({"command": ["sh", "-c", "exit 3"]}, runPolicy={"activeDeadlineSeconds": 3600})
        self.script("-f", "job.yaml")
        self.assertIn("#SBATCH --time=60\n", (self.folder / "job.sh").read_text())
        self.run_script(3)
        began = self.folder / "out/job/12345/began"
        began.write_text(str(int(began.read_text()) - 1800))
        self.run_script(3, SLURM_RESTART_COUNT="1")
        self.assertIn("scontrol update JobId=12345 TimeLimit=30", self.calls())
        began.write_text(str(int(began.read_text()) - 1700))
        self.assertIn("its time (3600 s, all runs together) is over", self.run_script(3, SLURM_RESTART_COUNT="2"))

    def test_a_secret_must_be_in_the_environment(self):
        self.job({"command": ["sh", "-c", "echo $TOKEN"],
                  "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]})
        self.assertIn("valueFrom.secretKeyRef is left out: TOKEN must be in the environment of sbatch", self.script("-f", "job.yaml"))
        self.assertIn("TOKEN is not set; it must be in the environment of sbatch", self.run_script(78))
        self.run_script(TOKEN="secret")
        self.assertEqual(self.log("worker-0.log").splitlines()[1], "secret")


class SlurmNotes(SlurmStory):
    def test_each_field_without_an_equivalent_is_said_and_stands_in_the_script(self):
        shutil.copy(HERE / "slurm/everything.yaml", self.folder)
        said = self.script("-f", "everything.yaml")
        golden = HERE / "slurm/everything.txt"
        if os.environ.get("TJ_UPDATE_GOLDEN"):
            golden.write_text(said)
        self.assertEqual(said, golden.read_text())
        comments = [line[4:] for line in (self.folder / "job.sh").read_text().splitlines() if line.startswith("# - ")]
        self.assertEqual([f"everything.yaml: {line}" for line in comments], said.splitlines())

    def test_the_examples_become_scripts(self):
        for manifest in sorted((HERE.parents[1] / "manifests/examples").glob("*.yaml")):
            with self.subTest(manifest.name):
                self.script("-f", manifest)


class SlurmCommandLine(SlurmStory):
    def assert_wrong(self, words, begin):
        result = self.tj("slurm", *words)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertTrue(result.stderr.startswith(begin), result.stderr)

    def test_what_is_wrong_is_told(self):
        self.assert_wrong(["-f", "env-dump.yaml", "--num-nodes", "2"], "--num-nodes: is given beside -f")
        self.assert_wrong(["-f", "env-dump.yaml", "--", "env"], "tj slurm: has -f and a command")
        self.assert_wrong(["--job-name", "a"], "tj slurm: has neither -f nor a command")
        self.assert_wrong(["--job-name", "a", "--volume", "v=/x", "--", "env"], "--volume: is given without -f")
        self.assert_wrong(["-f", "env-dump.yaml", "--partition", "a b"], '--partition: is "a b"')
        self.assert_wrong(["-f", "env-dump.yaml", "--time-limit", "1 day"], '--time-limit: is "1 day"')
        self.assert_wrong(["-f", "env-dump.yaml", "-o", "none/job.sh"], '-o: "none/job.sh" cannot be written: No such file')
        self.assert_wrong(["-f", "none.yaml"], "none.yaml: cannot be read")
        shutil.copy(HERE / "bad/many-errors.yaml", self.folder)
        self.assertEqual(self.tj("slurm", "-f", "many-errors.yaml").stderr, self.tj("validate", "-f", "many-errors.yaml").stderr)
        self.job({"args": ["a"], "workingDir": "/\u001b[2J"})
        result = self.tj("slurm", "-f", "job.yaml")
        self.assertEqual(result.returncode, 2)
        for line in result.stderr.splitlines():
            self.assertTrue(line.startswith("job.yaml: spec.replicaSpecs.Worker.template.spec.containers[0]."), line)
        self.assertEqual(len(result.stderr.splitlines()), 2)

    def test_the_script_is_what_is_printed(self):
        result = self.tj("slurm", "-f", "env-dump.yaml")
        self.assertTrue(result.stdout.startswith("#!/bin/bash\n"))
        self.script("-f", "env-dump.yaml")
        self.assertEqual((self.folder / "job.sh").read_text(), result.stdout)
        result = subprocess.run([tj_test.TJ, "slurm", "-f", "-"], input=(self.folder / "env-dump.yaml").read_text(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=tj_test.DEADLINE_S)
        self.assertIn("by tj slurm from standard input", result.stdout)


if __name__ == "__main__":
    tj_test.TJ = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
