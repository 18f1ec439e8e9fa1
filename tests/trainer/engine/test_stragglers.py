"""A rank that is slower than the others, in a real training: it is named, by rank and node, and nobody else is."""

import contextlib
import pathlib
import random
import re
import signal
import threading
import time
import unittest

from engine import EngineTest, free_port

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 64, "--batch-size", 24)
RANKS = 3
RUNNING_CPU_SECONDS = (0.001, 0.005)  # at a time, drawn: a step takes about 3 ms, and the same ones would stop it at one place of each
STOPPED_MIN_SECONDS, STOPPED_MAX_SECONDS, STOPPED_TIMES = 0.02, 2, 5  # so many times as long as it took on this machine
LOOK_SECONDS = 0.001
SLOW = re.compile(r"^(rank \d+ on node \S+) is slow: data \S+ ms and forward \S+ ms a step, the others \S+ ms and \S+ ms; "
                  r"all wait for it in each step of \S+ ms$")


def cpu_seconds(process):
    return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9  # of its training thread


@contextlib.contextmanager
def slowed(process):
    """Stopped and continued again and again, as a container that has used up its share of the CPU."""
    is_over, dice = threading.Event(), random.Random(1)

    def strike():
        while not is_over.is_set():
            began, stops_at = time.monotonic(), cpu_seconds(process) + dice.uniform(*RUNNING_CPU_SECONDS)
            while cpu_seconds(process) < stops_at and not is_over.wait(LOOK_SECONDS):
                pass
            process.send_signal(signal.SIGSTOP)
            took = time.monotonic() - began
            is_over.wait(min(max(STOPPED_MIN_SECONDS, STOPPED_TIMES * took), STOPPED_MAX_SECONDS))
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class Stragglers(EngineTest):
    def first_named(self, process):
        """The first rank that is said to be slow."""
        deadline = time.monotonic() + self.SECONDS_MAX
        for line in process.stdout:
            found = SLOW.match(line.strip())
            if found:
                return found.group(1)
            self.assertLess(time.monotonic(), deadline, "nobody is said to be slow")
        self.fail(f"it has ended: {process.stderr.read()}")

    def named_when_slow(self, slow):
        flags = (*SMALL, "--steps", 1_000_000, "--log-every", 1, "--limit", "silence=120")
        ranks = [self.start(*flags, rank=rank, world_size=RANKS, environment={"NODE_NAME": f"node-{rank}"})
                 for rank in range(RANKS)]
        for other in ranks[1:]:
            threading.Thread(target=other.stdout.read, daemon=True).start()  # else it waits for a reader one day
        for line in ranks[0].stdout:
            if line.startswith("step 1/"):
                break
        with slowed(ranks[slow]):
            return self.first_named(ranks[0])

    def test_who_is_slow_is_named(self):
        for slow in (1, 2):
            self.port = free_port()
            self.out = self.folder / f"slow-{slow}"
            self.assertEqual(self.named_when_slow(slow), f"rank {slow} on node node-{slow}")


if __name__ == "__main__":
    unittest.main()
