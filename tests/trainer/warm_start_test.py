"""A program that is forked from a loaded one is like one that was loaded for itself. By a shell under the engine's name."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support import warm_start  # noqa: E402
from support.processes import is_alive  # noqa: E402
from support.waiting import until  # noqa: E402

SECONDS_MAX = 60
VARIABLES = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
ASKER = """
import sys
from support import warm_start
started = warm_start.start([sys.argv[1], "-c", "exec sleep 1000"], {"PATH": "/bin:/usr/bin"})
print(started.pid, flush=True)
started.wait()
"""


class WarmStart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="tj-warm-start-", dir=warm_start.BUILD)
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.program = pathlib.Path(folder, warm_start.PROGRAM)
        shutil.copy("/bin/sh", cls.program)

    def start(self, script, *words, variables=VARIABLES, **popen):
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | popen
        started = warm_start.start([self.program, "-c", script, *words], variables, **popen)
        self.assertIsNotNone(started)
        self.addCleanup(started.kill)
        return started

    def test_it_prints_and_ends_as_a_program_that_is_loaded_for_itself(self):
        many = "while read line; do echo $line; done; echo done >&2"
        for script, said, *words in (('printf "%s|" "$0" "$@"', None, "a", "b c", "", "ä\n"), ("env | sort; pwd", None), ("exit 7", None), ("kill -9 $$", None),
                                     ("no-such-program", None), (many, "".join(f"{number}\n" for number in range(50_000))),
                                     ("trap '' PIPE; cat /proc/$$/comm; ls /proc/$$/fd; ulimit -a", "")):
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            loaded = subprocess.Popen([self.program, "-c", script, *words], env=VARIABLES, text=True, **pipes)
            forked = self.start(script, *words, **pipes)
            wanted, seen = loaded.communicate(said, SECONDS_MAX), forked.communicate(said, SECONDS_MAX)
            self.assertEqual((seen, forked.returncode), (wanted, loaded.returncode), script)

    def test_its_number_is_the_programs_own_and_signals_reach_it(self):
        script = "trap 'echo asked to stop; exit 3' TERM; echo $$; while :; do sleep 0.01; done"
        started = [self.start(script) for _ in range(3)]
        for process in started:
            self.assertEqual(int(process.stdout.readline()), process.pid)
            self.assertIsNone(process.poll())
        with self.assertRaises(subprocess.TimeoutExpired):
            started[0].wait(0.1)
        started[1].kill()
        started[0].terminate()
        self.assertEqual(started[0].communicate(timeout=SECONDS_MAX), ("asked to stop\n", ""))
        self.assertEqual((started[0].returncode, started[1].wait(SECONDS_MAX)), (3, -signal.SIGKILL))
        self.assertIsNone(started[2].poll())

    def test_files_and_bytes(self):
        self.assertEqual(self.start("pwd", cwd=pathlib.Path("/")).communicate(timeout=SECONDS_MAX)[0], "/\n")
        with tempfile.TemporaryFile() as file:
            self.assertEqual(self.start("echo a; echo b >&2", stdout=file, stderr=subprocess.STDOUT).wait(SECONDS_MAX), 0)
            file.seek(0)
            self.assertEqual(file.read(), b"a\nb\n")
        self.assertEqual(self.start(r"printf '\377'", text=False).communicate(timeout=SECONDS_MAX), (b"\xff", b""))

    def test_what_would_be_loaded_otherwise_is_loaded_for_itself(self):
        for command, variables, popen in (((self.program,), VARIABLES | {"LD_PRELOAD": "libm.so.6"}, {}), ((self.program,), VARIABLES, {"preexec_fn": print}),
                                          (("prlimit", self.program), VARIABLES, {}), (("/bin/sh",), VARIABLES, {})):
            self.assertIsNone(warm_start.start(command, variables, **popen), (command, popen))
        # Threads are counted when OpenMP is loaded.
        script = "cat /proc/$PPID/environ | tr '\\0' '\\n' | grep OMP"
        for threads in ("1", "2"):
            started = self.start(script, variables=VARIABLES | {"OMP_NUM_THREADS": threads})
            self.assertEqual(started.communicate(timeout=SECONDS_MAX)[0], f"OMP_NUM_THREADS={threads}\n")

    def test_nothing_outlives_who_asked_for_it(self):
        asker = subprocess.Popen([sys.executable, "-c", ASKER, self.program], stdout=subprocess.PIPE, text=True,
                                 env=os.environ | {"PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])})
        with asker.stdout:
            pid = int(asker.stdout.readline())
        self.assertTrue(is_alive(pid))
        asker.kill()
        asker.wait()
        until(SECONDS_MAX, f"the end of process {pid}", lambda: not is_alive(pid))


if __name__ == "__main__":
    unittest.main()
