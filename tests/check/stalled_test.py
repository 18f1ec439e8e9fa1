"""tests/stalled: the command's processes stand still and go on, and its exit code is kept."""
import pathlib
import re
import subprocess
import unittest

STALLED = pathlib.Path(__file__).resolve().parents[1] / "stalled"
# Ends once what it has started was seen to stand still and to go on.
UNTIL_STALLED = """
import os, signal
child = os.fork()
while child == 0:
    signal.pause()
assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
assert os.WIFCONTINUED(os.waitpid(child, os.WCONTINUED)[1])
os.kill(child, signal.SIGKILL)
os._exit(7)
"""
SECONDS_MAX = 300


def stalled(*words):
    return subprocess.run([STALLED, *words], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


class Stalled(unittest.TestCase):
    def test_a_commands_processes_stand_still_and_go_on(self):
        done = stalled("--every", "0.05", "python3", "-c", UNTIL_STALLED)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertGreater(int(re.search(r"stood still (\d+) times", done.stderr).group(1)), 0)

    def test_its_exit_code_is_the_commands(self):
        self.assertEqual(stalled("sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(stalled("sh", "-c", "kill -TERM $$").returncode, 143)
        gone = stalled("./no-such-program")
        self.assertEqual(gone.returncode, 127)
        self.assertEqual(gone.stderr, "stalled: ./no-such-program can't be started: No such file or directory\n")

    def test_bad_words_are_named(self):
        for words, cause in (((), "a command is needed"), (("--every", "0", "true"), "--every is 0"), (("--every", "x", "true"), "'x'")):
            with self.subTest(words):
                done = stalled(*words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(cause, done.stderr)


if __name__ == "__main__":
    unittest.main()
