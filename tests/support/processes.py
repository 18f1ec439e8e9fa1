"""Programs that a test starts: what they are told, what they take of the machine, and that none outlives the test."""
import contextlib
import os
import pathlib
import subprocess
import unittest

from support import warm_start

STOP_SECONDS_MAX = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# By which tests/trainer/cpus chooses torch's kernels.
KERNEL_CHOICE = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "OMP_WAIT_POLICY")


def environment_of_a_program(*names, **more):
    """Nothing of the caller's own but what a program needs to be found and to run."""
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH", *KERNEL_CHOICE, *names)
    threads = {"OMP_NUM_THREADS": os.environ.get("TJ_TEST_THREADS", "1")}
    return {name: os.environ[name] for name in kept if name in os.environ} | threads | more


class ProcessTest(unittest.TestCase):
    SECONDS_MAX = 900  # of one run: for what hangs, not for what is slow. Half a minute's training took 240 s beside all lanes

    def spawn(self, command, environment, text=True, **popen):
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": text} | popen
        process = warm_start.start(command, environment, **popen) or subprocess.Popen(command, env=environment, **popen)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, process, code=0):
        """Waits, and returns (stdout, stderr) after a check of the exit code."""
        try:
            out, err = process.communicate(timeout=self.SECONDS_MAX)
        except subprocess.TimeoutExpired:
            used = f"it used {cpu_seconds(process.pid):.0f} s of CPU time" if process.poll() is None else "it ended, its output is held open"
            process.kill()
            out, err = process.communicate()
            self.fail(f"not done after {self.SECONDS_MAX} s: {used}\nstdout:\n{out}\nstderr:\n{err}")
        self.assertEqual(process.returncode, code, f"stdout:\n{out}\nstderr:\n{err}")
        return out, err


class Process:
    """One that a benchmark or soak starts: its log, its end, and what it takes."""

    def __init__(self, command, log, env=None):
        self.log = pathlib.Path(log)
        with open(self.log, "ab") as output:
            self.popen = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                          stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                                          start_new_session=True)
        self.folder = pathlib.Path("/proc", str(self.popen.pid))

    def is_running(self):
        return self.popen.poll() is None

    def stop(self):
        for end in (self.popen.terminate, self.popen.kill):
            if not self.is_running():
                return
            end()
            try:
                self.popen.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                continue

    def last_words(self, lines=8):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def memory_mb(self, field="VmRSS"):
        """Resident memory now; with "VmHWM" the most there ever was, with "RssAnon" what is no page of a file."""
        for line in (self.folder / "status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        raise ValueError(field)

    def cpu_seconds(self):
        return cpu_seconds(self.popen.pid)

    def descriptors(self):
        return len(list((self.folder / "fd").iterdir()))


def cpu_seconds(pid):
    fields = pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def processes_from(pid):
    """Its id and those of all below it, but for what a process has left behind that ended."""
    yield pid
    with contextlib.suppress(OSError):
        for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from processes_from(int(child))


def is_alive(pid):
    """It runs, or could: a zombie does not."""
    try:
        return pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
