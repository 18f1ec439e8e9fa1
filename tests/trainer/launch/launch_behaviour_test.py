"""Runs the real `trainer launch` with small children and looks at what a user would see.

  launch_behaviour_test.py TRAINER [TEST]   one test, or all; exit code 77: skipped, the reason is printed

Every wait is a condition with a deadline; nothing sleeps for a fixed time.
"""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TRAINER = os.path.abspath(sys.argv[1])
DEADLINE_S = 30
CONTRACT = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "job-worker-0.job", "MASTER_PORT": "29500"}
OURS = re.compile(r"^(WORLD_SIZE|RANK|LOCAL_|GROUP_|ROLE_|MASTER_|NNODES|NODE_RANK|NPROC_PER_NODE|PET_"
                  r"|TRAININGJOB_|TORCHELASTIC_|OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES|SLURM)")
SLURM_TASK = {"SLURM_JOB_ID": "884711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_LOCALID": "1",
              "SLURM_NODEID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2",
              "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_STEP_NODELIST": "node[003,007]"}


def until(condition, what):
    """Polls the condition; there is no event for the state of a foreign process."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_S} s: {what}")
        select.select([], [], [], 0.005)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Launch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="launch-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.words = os.path.join(self.folder, "termination-log")

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments, env=None, wrapper=(), **more):
        clean = {name: value for name, value in os.environ.items() if not OURS.match(name)}
        clean.update({"TRAININGJOB_TERMINATION_LOG": self.words, "TMPDIR": self.folder, "D": self.folder,
                      "CUDA_VISIBLE_DEVICES": ""})  # the machine's own GPUs are no part of a test
        for name, value in (env or {}).items():
            clean.pop(name, None)
            if value is not None:
                clean[name] = value
        process = subprocess.Popen([*wrapper, TRAINER, *arguments], env=clean, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()

    def finish(self, process, expect):
        out, err = (stream.decode() for stream in process.communicate(timeout=DEADLINE_S))
        self.assertEqual(process.returncode, expect, f"stdout:\n{out}\nstderr:\n{err}")
        return out, err

    def run_launch(self, *arguments, expect=0, **more):
        return self.finish(self.start("launch", *arguments, **more), expect)

    def wait_for_files(self, *names):
        """The files' texts, once each ends in a newline."""
        def read():
            texts = []
            for name in names:
                try:
                    with open(self.path(name), encoding="utf-8") as file:
                        texts.append(file.read())
                except FileNotFoundError:
                    return None
            return texts if all(text.endswith("\n") for text in texts) else None
        return [text.strip() for text in until(read, f"files {names}")]

    def outcome(self):
        with open(self.words, encoding="utf-8") as file:
            return json.load(file)

    def last_line(self, err):
        return re.sub(r"pid \d+", "pid P", err.strip().splitlines()[-1])

    # What the processes are told

    def variables_seen(self, rank, nproc):
        script = ("import json, os\n"
                  "open(os.path.join(os.environ['D'], 'env-' + os.environ['RANK']), 'w')"
                  ".write(json.dumps(dict(os.environ)) + '\\n')")
        self.run_launch("--", "python3", "-c", script,
                        env={**CONTRACT, "RANK": str(rank), "NPROC_PER_NODE": str(nproc),
                             "TRAININGJOB_UID": "uid-1", "TRAININGJOB_ATTEMPT": "3",
                             "CUDA_VISIBLE_DEVICES": "5,6"})
        ranks = range(rank * nproc, (rank + 1) * nproc)
        return [json.loads(text) for text in self.wait_for_files(*[f"env-{r}" for r in ranks])]

    def test_two_workers_of_two_processes_are_four_ranks(self):
        seen = self.variables_seen(0, 2) + self.variables_seen(1, 2)
        names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
                 "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
                 "TORCHELASTIC_RUN_ID", "CUDA_VISIBLE_DEVICES", "NPROC_PER_NODE", "TRAININGJOB_UID"]
        self.assertEqual([[env[name] for name in names] for env in seen], [
            [str(rank), "4", str(rank % 2), "2", str(rank // 2), "2", str(rank), "4", "job-worker-0.job", "29500",
             "0", "uid-1-3", "5,6", "2", "uid-1"] for rank in range(4)])
        logs = {env["TRAININGJOB_TERMINATION_LOG"] for env in seen}
        self.assertEqual(len(logs), 4, "each process has its own file for last words")
        for env in seen:
            self.assertGreaterEqual(int(env["OMP_NUM_THREADS"]), 1)

    def test_alone_it_is_one_process_with_a_free_port(self):
        out, err = self.run_launch("--", "sh", "-c", "echo $RANK $WORLD_SIZE $MASTER_ADDR; echo $MASTER_PORT")
        identity, port = out.splitlines()
        self.assertEqual(identity, "0 1 127.0.0.1")
        self.assertGreater(int(port), 1023)
        self.assertIn("worker 0 of 1 (no launch variables), 1 process (no GPU)", err)

    def test_an_operators_eight_gpus_start_eight_processes_without_a_gpu(self):
        out, _ = self.run_launch("--", "sh", "-c", "echo $LOCAL_RANK", env={**CONTRACT, "NPROC_PER_NODE": "8"})
        self.assertCountEqual(out.splitlines(), [f"[rank {8 + i}] {i}" for i in range(8)])

    def test_a_set_omp_num_threads_is_kept(self):
        out, _ = self.run_launch("--nproc", "1", "--", "sh", "-c", "echo $OMP_NUM_THREADS",
                                 env={"OMP_NUM_THREADS": "13"})
        self.assertEqual(out, "13\n")

    def test_a_task_of_slurm_is_one_process(self):
        out, err = self.run_launch("--", "sh", "-c", "echo $RANK $LOCAL_RANK $MASTER_ADDR $MASTER_PORT $TRAININGJOB_UID",
                                   env=SLURM_TASK)
        self.assertEqual(out, "3 1 node003 19711 slurm-884711-0\n")
        self.assertIn("worker 1 of 2 (SLURM), its process 1 of 2 processes (SLURM_STEP_TASKS_PER_NODE), 4 in all", err)

    def test_a_shell_in_an_allocation_is_alone_and_says_why(self):
        _, err = self.run_launch("--", "true", env={"SLURM_JOB_ID": "884711", "SLURM_NTASKS": "16"})
        self.assertEqual(self.last_line(err), "trainer launch: not followed: SLURM job 884711 is an allocation without "
                                              "a step; srun starts its tasks")

    def test_flags_name_one_process_of_a_node(self):
        out, _ = self.run_launch("--world-size", "16", "--gpus-per-node", "8", "--rank", "11", "--master-addr", "a", "--",
                                 "sh", "-c", "echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $MASTER_ADDR $MASTER_PORT")
        self.assertEqual(out, "11 16 3 1 a 29500\n")

    def test_env_says_what_the_first_process_would_be_told(self):
        out, _ = self.finish(self.start("env", env={**CONTRACT, "NPROC_PER_NODE": "4"}), 0)
        told = dict(line.split("=", 1) for line in out.splitlines())
        self.assertEqual([told[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "MASTER_ADDR")],
                         ["4", "8", "0", "1", "job-worker-0.job"])

    def test_env_explains_each_value(self):
        out, _ = self.finish(self.start("env", "--explain", env={**CONTRACT, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}), 0)
        self.assertRegex(out, r"(?m)^convention +processes +set: LOCAL_RANK, LOCAL_WORLD_SIZE")
        self.assertRegex(out, r"(?m)^ranks here +1 +RANK$")
        self.assertRegex(out, r"(?m)^master address +job-worker-0.job +MASTER_ADDR$")

    # Restarts in place

    def tries(self, *flags, script, expect):
        counted = "echo $TORCHELASTIC_RESTART_COUNT ${TRAININGJOB_ATTEMPT:-0} > $D/try-$TORCHELASTIC_RESTART_COUNT-$RANK\n"
        _, err = self.run_launch(*flags, "--", "sh", "-c", counted + script, expect=expect)
        names = [name for name in os.listdir(self.folder) if name.startswith("try-") and name.endswith("-1")]
        return [self.wait_for_files(name)[0] for name in sorted(names)], err

    def test_a_failure_is_restarted_in_place_until_it_succeeds(self):
        script = "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; [ $RANK = 1 ] && exit 5; exec sleep 1000"
        tries, err = self.tries("--nproc", "2", "--max-restarts", "3", script=script, expect=0)
        self.assertEqual(tries, ["0 0", "1 1", "2 2"])
        for count in (1, 2):
            self.assertIn(f"failed first: exit code 5; the others were stopped; restart {count} of 3", err)
        self.assertFalse(os.path.exists(self.words))

    def test_restarts_run_out(self):
        tries, err = self.tries("--nproc", "2", "--max-restarts", "1", script="[ $RANK = 1 ] && exit 5; exec sleep 1000",
                                expect=5)
        self.assertEqual(tries, ["0 0", "1 1"])
        self.assertEqual(self.last_line(err), "trainer launch: rank 1 (local rank 1, pid P) failed first: exit code 5; "
                                              "the others were stopped")
        self.assertEqual((self.outcome()["rank"], self.outcome()["attempt"]), (1, 1))

    def test_what_a_retry_can_not_mend_is_not_restarted(self):
        tries, _ = self.tries("--nproc", "2", "--max-restarts", "3", script="[ $RANK = 1 ] && exit 78; exec sleep 1000",
                              expect=78)
        self.assertEqual(tries, ["0 0"])

    def test_asked_to_stop_it_does_not_restart(self):
        process = self.start("launch", "--nproc", "1", "--max-restarts", "3", "--", "sh", "-c",
                             "echo >> $D/up; exec sleep 1000")
        self.wait_for_files("up")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 143)
        self.assertNotIn("restart", err)

    # Output

    def test_the_output_of_one_process_is_untouched(self):
        out, err = self.run_launch("--nproc", "1", "--", "sh", "-c", "printf 'a\\r\\0b'; printf err >&2")
        self.assertEqual(out, "a\r\0b")
        self.assertTrue(err.endswith("err"))

    def test_lines_of_several_carry_their_rank(self):
        out, err = self.run_launch("--nproc", "2", "--", "sh", "-c", "echo out $RANK; printf 'no end' >&2")
        self.assertEqual(sorted(out.splitlines()), ["[rank 0] out 0", "[rank 1] out 1"])
        self.assertEqual(sorted(err.splitlines()[-2:]), ["[rank 0] no end", "[rank 1] no end"])

    def test_a_megabyte_of_each_arrives_whole(self):
        out, _ = self.run_launch("--nproc", "4", "--", "sh", "-c", "seq -f '%.0f xxxxxxxxxxxxxxxxxxxx' 40000")
        lines = out.splitlines()
        self.assertEqual(len(lines), 160000)
        for rank in range(4):
            own = [line for line in lines if line.startswith(f"[rank {rank}] ")]
            self.assertEqual([int(line.split()[2]) for line in own], list(range(1, 40001)))

    # How it ends

    def test_success_says_nothing_and_leaves_no_words(self):
        _, err = self.run_launch("--nproc", "2", "--", "true")
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertFalse(os.path.exists(self.words))
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_first_failure_ends_the_others_and_keeps_its_code(self):
        _, err = self.run_launch("--nproc", "3", "--", "sh", "-c", "[ $RANK = 1 ] && exit 42; exec sleep 1000",
                                 expect=42)
        self.assertEqual(self.last_line(err), "trainer launch: rank 1 (local rank 1, pid P) failed first: "
                                              "exit code 42; the others were stopped")
        outcome = self.outcome()
        self.assertEqual((outcome["reason"], outcome["rank"]), ("Error", 1))
        self.assertIn("exit code 42", outcome["message"])

    def test_a_killed_process_is_named_with_its_signal(self):
        _, err = self.run_launch("--", "sh", "-c", "[ $LOCAL_RANK = 1 ] && kill -9 $$; exec sleep 1000",
                                 env={**CONTRACT, "NPROC_PER_NODE": "2", "TRAININGJOB_ATTEMPT": "5"}, expect=137)
        self.assertEqual(self.last_line(err), "trainer launch: rank 3 (local rank 1, pid P) failed first: "
                                              "killed by signal 9 (SIGKILL); the others were stopped")
        outcome = self.outcome()
        self.assertEqual((outcome["reason"], outcome["rank"], outcome["attempt"]), ("Killed", 3, 5))

    def test_a_lost_peer_is_not_blamed_for_the_crash_it_saw(self):
        script = ("trap 'exit 1' TERM; echo > $D/up-$RANK\n"
                  "if [ $RANK = 1 ]; then while [ ! -e $D/up-0 ]; do :; done; exit 76; fi\n"
                  "while :; do :; done")
        _, err = self.run_launch("--nproc", "2", "--", "sh", "-c", script, expect=1)
        self.assertIn("rank 0 (local rank 0, pid P) failed first: exit code 1", self.last_line(err))

    def test_the_words_of_the_first_failure_become_the_workers(self):
        words = {"reason": "BadData", "message": "/data is empty", "rank": 0, "step": 7, "attempt": 0}
        script = ("printf '%s' \"$WORDS\" > $TRAININGJOB_TERMINATION_LOG; [ $RANK = 0 ] && exit 65; "
                  "printf later > $TRAININGJOB_TERMINATION_LOG; exec sleep 1000")
        _, err = self.run_launch("--nproc", "2", "--", "sh", "-c", script, env={"WORDS": json.dumps(words)},
                                 expect=65)
        self.assertEqual(self.outcome(), words)
        self.assertIn("unusable data (exit code 65): /data is empty", self.last_line(err))

    def test_a_programs_own_text_is_kept_in_ours(self):
        self.run_launch("--nproc", "1", "--", "sh", "-c", "echo disk full > $TRAININGJOB_TERMINATION_LOG; exit 1",
                        expect=1)
        self.assertTrue(self.outcome()["message"].endswith("exit code 1: disk full"))

    def test_who_ignores_sigterm_is_killed_after_the_grace(self):
        script = ("if [ $RANK = 0 ]; then trap '' TERM; echo $$ > $D/pid; while :; do read x < $D/fifo; done; fi\n"
                  "while [ ! -s $D/pid ]; do :; done; exit 5")
        os.mkfifo(self.path("fifo"))
        begin = time.monotonic()
        _, err = self.run_launch("--nproc", "2", "--grace-seconds", "1", "--", "sh", "-c", script, expect=5)
        self.assertGreaterEqual(time.monotonic() - begin, 1)
        self.assertIn("trainer launch: rank 0 did not end within 1 s of being asked to; sent SIGKILL", err)
        self.assertIn("rank 1 (local rank 1, pid P) failed first: exit code 5", self.last_line(err))

    def test_grandchildren_end_with_the_worker_wherever_they_hid(self):
        script = ("if [ $RANK = 0 ]; then\n"
                  "sh -c 'echo $$ > $D/in-group; exec sleep 1000' &\n"
                  "setsid sh -c 'echo $$ > $D/own-session; exec sleep 1000' &\n"
                  "(setsid sh -c 'trap \"\" TERM; echo $$ > $D/stubborn; exec sleep 1000' &)\n"
                  "wait; fi\n"
                  "for f in in-group own-session stubborn; do while [ ! -s $D/$f ]; do :; done; done; exit 3")
        self.run_launch("--nproc", "2", "--grace-seconds", "1", "--", "sh", "-c", script, expect=3)
        for pid in self.wait_for_files("in-group", "own-session", "stubborn"):
            self.assertFalse(alive(pid), pid)

    def test_a_success_leaves_no_process_behind(self):
        script = "setsid sh -c 'echo $$ > $D/left; exec sleep 1000' & while [ ! -s $D/left ]; do :; done"
        self.run_launch("--nproc", "1", "--", "sh", "-c", script)
        self.assertFalse(alive(self.wait_for_files("left")[0]))

    def test_a_killed_launcher_takes_its_processes_along(self):
        process = self.start("launch", "--nproc", "2", "--", "sh", "-c", "echo $$ > $D/pid-$RANK; exec sleep 1000")
        pids = self.wait_for_files("pid-0", "pid-1")
        process.kill()
        process.wait(DEADLINE_S)
        for pid in pids:
            until(lambda pid=pid: not alive(pid), f"process {pid} is gone")

    # Signals

    def test_signals_reach_every_process_and_its_group(self):
        script = ("import os, signal, sys\n"
                  "name = os.path.join(os.environ['D'], sys.argv[1] + os.environ['RANK'])\n"
                  "log = open(name, 'w', buffering=1)\n"
                  "watched = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM]\n"
                  "signal.pthread_sigmask(signal.SIG_BLOCK, watched)\n"
                  "if sys.argv[1] == 'parent' and os.fork() == 0: os.execvp('python3', ['python3', '-c', "
                  "os.environ['SCRIPT'], 'child'])\n"
                  "open(name + '-up', 'w').write('up\\n')\n"
                  "while True:\n"
                  "    got = signal.sigwait(watched)\n"
                  "    log.write(got.name + '\\n')\n"
                  "    if got == signal.SIGTERM: break\n")
        process = self.start("launch", "--nproc", "2", "--", "python3", "-c", script, "parent", env={"SCRIPT": script})
        names = [f"{kind}{rank}" for kind in ("parent", "child") for rank in (0, 1)]
        self.wait_for_files(*[name + "-up" for name in names])
        expected = ""
        for sent in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(sent)
            expected = f"{expected}\n{sent.name}".strip()
            until(lambda want=expected: self.wait_for_files(*names) == [want] * 4, f"{sent.name} arrives everywhere")
        _, err = self.finish(process, 0)
        self.assertEqual(self.last_line(err), "trainer launch: stopped by signal 1 (SIGHUP); "
                                              "every process ended with exit code 0")

    def stop_with(self, sent, expect):
        process = self.start("launch", "--nproc", "2", "--", "sh", "-c", "echo > $D/up-$RANK; exec sleep 1000")
        self.wait_for_files("up-0", "up-1")
        process.send_signal(sent)
        return self.finish(process, expect)[1]

    def test_terminated_it_ends_as_its_processes_do(self):
        err = self.stop_with(signal.SIGTERM, 143)
        self.assertRegex(self.last_line(err), r"trainer launch: stopped by signal 15 \(SIGTERM\); rank [01] .* "
                                              r"failed first: killed by signal 15 \(SIGTERM\)")

    def test_interrupted_it_ends_as_its_processes_do(self):
        self.stop_with(signal.SIGINT, 130)

    def test_a_child_that_saves_and_ends_well_makes_a_good_end(self):
        script = "trap 'echo saved > $D/saved; exit 75' TERM; echo > $D/up; while :; do read x < $D/fifo; done"
        os.mkfifo(self.path("fifo"))
        process = self.start("launch", "--nproc", "1", "--", "sh", "-c", script)
        self.wait_for_files("up")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 75)
        self.wait_for_files("saved")
        self.assertIn("interrupted with a checkpoint (exit code 75)", self.last_line(err))

    def test_who_is_frozen_is_killed_and_named(self):
        script = 'if [ "$LOCAL_RANK" = 1 ]; then kill -STOP $$; fi; exec sleep 100'
        _, err = self.run_launch("--nproc", "2", "--frozen-seconds", "1", "--", "sh", "-c", script, expect=137)
        cause = "killed by signal 9 (SIGKILL): a signal (SIGSTOP) had stopped it for 1 s, so that it was killed"
        self.assertRegex(err, rf"rank 1 \(local rank 1, pid \d+\) failed first: {re.escape(cause)}; the others were")
        with open(self.words, encoding="utf-8") as words:
            self.assertIn("so that it was killed", json.load(words)["message"])

    def test_asked_to_stop_it_waits_no_longer_than_the_grace(self):
        script = "trap '' TERM; echo > $D/up; while :; do read x < $D/fifo; done"
        os.mkfifo(self.path("fifo"))
        process = self.start("launch", "--nproc", "1", "--grace-seconds", "1", "--", "sh", "-c", script)
        self.wait_for_files("up")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 137)
        self.assertIn("killed by signal 9 (SIGKILL)", self.last_line(err))

    def test_nohup_keeps_its_meaning(self):
        os.mkfifo(self.path("fifo"))
        process = self.start("launch", "--nproc", "1", "--", "sh", "-c", "echo > $D/up; read x < $D/fifo; exit 4",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_files("up")
        process.send_signal(signal.SIGHUP)
        fifo = os.open(self.path("fifo"), os.O_RDWR)  # unlike O_WRONLY this does not wait for a reader
        self.addCleanup(os.close, fifo)
        os.write(fifo, b"go on\n")
        _, err = self.finish(process, 4)
        self.assertNotIn("stopped by", err)

    # PID 1

    def as_pid_1(self):
        wrapper = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if os.geteuid() != 0:
            wrapper += ["--user", "--map-root-user"]
        tried = subprocess.run([*wrapper, "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"no PID namespace to be had: {tried.stderr.strip()}")
        return wrapper

    def test_as_pid_1_it_reaps_orphans(self):
        # Each round leaves an orphan that ends at once; none may stay as a zombie while the worker runs.
        script = ("import glob, os, subprocess, sys, time\n"
                  "for _ in range(5): subprocess.run(['sh', '-c', 'true & '])\n"
                  "def state(path):\n"
                  "    try: return open(path).read().rsplit(')', 1)[1].split()[0]\n"
                  "    except OSError: return ''\n"
                  "end = time.monotonic() + 20\n"
                  "while 'Z' in [state(p) for p in glob.glob('/proc/[0-9]*/stat')]:\n"
                  "    if time.monotonic() > end: sys.exit(9)\n"
                  "print(os.getppid())")
        out, _ = self.finish(self.start("launch", "--nproc", "1", "--", "python3", "-c", script,
                                        wrapper=self.as_pid_1()), 0)
        self.assertEqual(out, "1\n")

    def test_as_pid_1_it_hears_sigterm(self):
        # Inside, because unshare passes no signal on: the child itself asks PID 1 to stop.
        script = "kill -TERM 1; exec sleep 1000"
        _, err = self.finish(self.start("launch", "--nproc", "1", "--", "sh", "-c", script, wrapper=self.as_pid_1()), 143)
        self.assertIn("stopped by signal 15 (SIGTERM)", self.last_line(err))

    def test_a_commands_words_in_the_pods_own_file_are_not_overwritten(self):
        wrapper = self.as_pid_1()
        device = ("mount -t tmpfs none /dev && ln -s /proc/self/fd/2 /dev/stderr && : > /dev/null && "
                  ": > /dev/termination-log || exit 9\n"
                  f"'{TRAINER}' launch --nproc 1 -- sh -c \"$1\"; cat /dev/termination-log")
        def words_after(script):
            process = self.start("-c", device, "sh", script, env={"TRAININGJOB_TERMINATION_LOG": None},
                                 wrapper=[*wrapper, "sh", "-c", 'shift; exec sh "$@"', "sh"])
            return self.finish(process, 0)[0]
        self.assertEqual(words_after("echo lost the disk > /dev/termination-log; exit 1"), "lost the disk\n")
        self.assertEqual(json.loads(words_after("exit 3"))["reason"], "Error")

    # What can't be started

    def refused(self, *arguments, expect, env=None):
        process = self.start(*arguments, env=env)
        _, err = self.finish(process, expect)
        return err.strip().splitlines()[-1].replace(self.folder, "FOLDER")

    def test_a_command_that_is_not_there(self):
        self.assertEqual(self.refused("launch", "--", "no-such-command", env={"PATH": "/nowhere"}, expect=127),
                         "trainer launch: no-such-command: command not found; it must be in PATH (/nowhere)")
        self.assertEqual(self.outcome()["reason"], "CommandNotFound")
        self.assertEqual(self.refused("launch", "--nproc", "2", "--", "/no/such", expect=127),
                         "trainer launch: /no/such: no such file; it must be the path of a program")

    def test_a_command_that_is_not_executable(self):
        script = self.path("start.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        self.assertEqual(self.refused("launch", "--", script, expect=126),
                         "trainer launch: FOLDER/start.sh: permission denied; it must be an executable file")
        self.assertEqual(self.outcome()["reason"], "CommandNotExecutable")
        os.chmod(script, 0o755)
        self.assertEqual(self.refused("launch", "--", script, expect=127),
                         "trainer launch: FOLDER/start.sh: its interpreter is missing; the first line of the file "
                         "must name one that exists")

    def test_bad_variables_start_nothing(self):
        error = self.refused("launch", "--", "touch", self.path("ran"), env={**CONTRACT, "RANK": "2"}, expect=78)
        self.assertEqual(error, "trainer launch: RANK: is 2 with WORLD_SIZE 2; it must be from 0 to 1")
        self.assertEqual(self.outcome()["reason"], "BadConfig")
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(self.refused("launch", "--", "true", env={**CONTRACT, "WORLD_SIZE": None}, expect=78),
                         "trainer launch: WORLD_SIZE: is not set; it must be the number of workers")

    def test_a_second_launcher_is_refused(self):
        env = {**CONTRACT, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        self.assertEqual(self.refused("launch", "--", "true", env=env, expect=78),
                         "trainer launch: LOCAL_RANK: is \"0\": a launcher has started this process already; it must be "
                         "unset here, or the command be run without trainer launch")

    def test_restarts_are_the_operators_where_there_is_one(self):
        error = self.refused("launch", "--max-restarts", "2", "--", "true", env={**CONTRACT, "TRAININGJOB_UID": "u"},
                             expect=78)
        self.assertEqual(error, "trainer launch: --max-restarts: is 2 in a job of the operator, which restarts all "
                                "workers together; it must not be given: spec.runPolicy.maxRestarts says how often")

    def test_env_refuses_as_launch_does(self):
        self.assertEqual(self.refused("env", env={**CONTRACT, "NNODES": "3", "TRAININGJOB_UID": "u"}, expect=78),
                         "trainer env: NNODES: is \"3\" with WORLD_SIZE 2; both say the same thing and must be equal")

    def test_wrong_usage(self):
        self.assertEqual(self.refused("launch", "--nproc", "x", "--", "true", expect=64),
                         "--nproc: is \"x\"; it must be auto or a number from 1 to 1024")

    # trainer train

    def copy_of_trainer(self):
        return shutil.copy(TRAINER, self.path("trainer"))

    def test_train_becomes_the_engine_beside_it(self):
        trainer = self.copy_of_trainer()
        with open(self.path("trainer-engine"), "w", encoding="utf-8") as engine:
            engine.write("#!/bin/sh\necho \"$$ $*\"\n")
        os.chmod(self.path("trainer-engine"), 0o755)
        process = subprocess.Popen([trainer, "train", "--data", "a b", "--help"], stdout=subprocess.PIPE, text=True)
        out, _ = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(out, f"{process.pid} train --data a b --help\n")

    def test_train_without_an_engine_says_so(self):
        done = subprocess.run([self.copy_of_trainer(), "train"], capture_output=True, text=True, timeout=DEADLINE_S,
                              check=False, env={"TRAININGJOB_TERMINATION_LOG": self.words})
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr, f"trainer train: {self.folder}/trainer-engine: No such file or directory; "
                                      "trainer-engine must lie beside trainer\n")


if __name__ == "__main__":
    names = [f"Launch.{name}" for name in sys.argv[2:]]
    program = unittest.main(argv=[sys.argv[0], "-v", *names], exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if program.result.skipped and names else 0)
