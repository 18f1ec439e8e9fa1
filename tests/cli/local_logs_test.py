"""Stories of the real tj: tj logs and tj explain on runs of `tj run`.

usage: local_logs_test.py TJ [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import time
import unittest

import tj_test
from tj_test import DEADLINE_S, Story


class LocalLogs(Story):
    def restarted(self):
        """A run that has restarted once, and what `tj logs -f` has printed of it, from its first attempt to its end. Not
        folded: whether two ranks say something at once is the machine's to say."""
        run, lines, arrived = self.start("run", "-f", "one-restart.yaml")
        self.wait_for_lines(lines, arrived, "[worker-0] attempt 0", "[worker-1] attempt 0")
        deadline = time.monotonic() + DEADLINE_S
        while self.tj("logs", "one-restart", "--local").returncode != 0:  # its objects are written a moment later
            self.assertLess(time.monotonic(), deadline, "the run is not known")
        process, followed, arrived = self.start("logs", "one-restart", "--local", "-f", "--no-fold")
        self.wait_for_lines(followed, arrived, "[0] attempt 0", "[1] attempt 0")
        (self.folder / "go").touch()
        self.assertEqual(run.wait(DEADLINE_S), 0)
        self.assertEqual(process.wait(DEADLINE_S), 0)
        self.wait_for_lines(followed, arrived, "[0] attempt 1", "[1] attempt 1")
        return followed

    def test_logs_follow_a_run_across_its_restart_to_its_end(self):
        lines = self.restarted()
        self.assertEqual([line for line in lines if line.startswith("[0]")], ["[0] attempt 0", "[0] attempt 1"])
        self.assertEqual([line for line in lines if line.startswith("[1]")],
                         ["[1] attempt 0", "[1] the disk is full", "[1] attempt 1"])

    def test_logs_of_each_attempt_are_there_afterwards(self):
        self.restarted()
        now = self.tj("logs", "--local", "one-restart")
        self.assertEqual((now.returncode, now.stdout, now.stderr), (0, "[0-1] attempt 1\n", ""))
        before = self.tj("logs", "--local", "one-restart", "--attempt", "0", "--rank", "1", "--tail", "1")
        self.assertEqual(before.stdout, "[1] the disk is full\n")
        first = self.tj("logs", "--local", "trainingjob/one-restart", "--first-failure", "--no-fold")
        self.assertEqual(first.stdout, "[1] attempt 0\n[1] the disk is full\n")
        self.assertIn("worker 1 on node", first.stderr)
        none = self.tj("logs", "--local", "one-restart", "--attempt", "7")
        self.assertEqual((none.returncode, none.stdout), (3, ""))
        self.assertIn("one-restart-worker-0.attempt-7.log", none.stderr)

    def test_explain_tells_of_the_restart(self):
        self.restarted()
        done = self.tj("explain", "--local", "one-restart", "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = json.loads(done.stdout)
        self.assertEqual([each["cause"] for each in found["findings"]], ["ProgramFailed", "Restarted"])
        self.assertEqual(found["phase"], "Succeeded")

    def test_what_is_wrong_is_said(self):
        for arguments, code, words in (
                (("logs", "--local", "nobody"), 3, "there is no local run of this name"),
                (("explain", "--local", "nobody"), 3, "nobody"),
                (("logs", "--local", "x", "--rank", "3-1"), 2, "\"3-1\" names no ranks"),
                (("logs", "--local", "x", "--since", "5"), 2, "\"5\" is no duration; it must be like 90s, 5m or 1h30m"),
                (("logs", "--local", "x", "-f", "--previous"), 2, "what has ended can't be followed"),
                (("logs", "--local", "x", "--since", "5m"), 2, "have no times"),
                (("logs", "--local", "UPPER"), 2, "can be no job's name")):
            done = self.tj(*arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
            self.assertIn(words, done.stderr)

    def test_logs_that_nobody_reads_any_more_end(self):
        """As `tj logs | head` does it."""
        self.tj("run", "-f", "two-lines.yaml")
        done = subprocess.run(["bash", "-c", f"{tj_test.TJ} logs --local two-lines | true"], cwd=self.folder, env=self.env(),
                              timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    tj_test.TJ = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
