"""A process that a benchmark or soak started: its log, its end, and what it takes of the machine."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402, F401 (such a process often listens)

STOP_SECONDS_MAX = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Process:
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


def until(seconds, what, condition, poll_seconds=0.05):
    """Waits for the condition to give something true, and gives that back."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(poll_seconds)
