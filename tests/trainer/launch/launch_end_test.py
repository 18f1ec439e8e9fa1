"""Runs the real `trainer launch` with small children that fail, are killed or told to stop, also as PID 1.

  launch_end_test.py TRAINER [TEST]   one test, or all; exit code 77: skipped, the reason is printed
"""
import json
import os
import re
import signal
import subprocess
import time

from launching import CONTRACT, DEADLINE_S, Launch, TRAINER, main
from support.processes import is_alive
from support.waiting import until


class End(Launch):
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
            self.assertFalse(is_alive(pid), pid)

    def test_a_success_leaves_no_process_behind(self):
        script = "setsid sh -c 'echo $$ > $D/left; exec sleep 1000' & while [ ! -s $D/left ]; do :; done"
        self.run_launch("--nproc", "1", "--", "sh", "-c", script)
        self.assertFalse(is_alive(self.wait_for_files("left")[0]))

    def test_a_killed_launcher_takes_its_processes_along(self):
        process = self.start("launch", "--nproc", "2", "--", "sh", "-c", "echo $$ > $D/pid-$RANK; exec sleep 1000")
        pids = self.wait_for_files("pid-0", "pid-1")
        process.kill()
        process.wait(DEADLINE_S)
        for pid in pids:
            until(DEADLINE_S, f"process {pid} to be gone", lambda pid=pid: not is_alive(pid))

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
            until(DEADLINE_S, f"{sent.name} to arrive everywhere", lambda want=expected: self.wait_for_files(*names) == [want] * 4)
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


if __name__ == "__main__":
    main()
