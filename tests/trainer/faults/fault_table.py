#!/usr/bin/env python3
"""Two ranks on two nodes, and what can happen to them: for each fault, who is blamed, how fast all processes are gone, and
that the restarted run ends with the bits of one that nobody disturbed. Prints a table.

  TJ_TRAINER=build/dev/trainer/trainer tests/trainer/faults/fault_table.py            every fault
  TJ_TRAINER=build/dev/trainer/trainer tests/trainer/faults/fault_table.py killed cut  these
"""

import argparse
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import nodes  # noqa: E402
from processes import environment_of_a_program  # noqa: E402

TRAINER = os.environ.get("TJ_TRAINER", "")
TEXT = "the quick brown fox jumps over the lazy dog and runs away. " * 400
STEPS = 240
SAVE_EVERY = 40
FAULT_STEP = 100
FLAGS = ("--layers", 2, "--width", 96, "--heads", 2, "--seq-len", 96, "--batch-size", 32, "--steps", STEPS,
         "--save-every", SAVE_EVERY, "--log-every", 1, "--resume")
RUN_SECONDS_MAX = 300  # of one attempt; a machine may be busy
LAUNCH = ("launch", "--grace-seconds", "20", "--")


class Rank:
    """A worker's launcher and all that it says, with the time of each line."""

    def __init__(self, place, folder, rank, attempt, out, more=()):
        environment = environment_of_a_program(
            "TMPDIR", WORLD_SIZE="2", RANK=str(rank), MASTER_ADDR=nodes.ADDRESSES[0], MASTER_PORT="29500",
            NODE_NAME=f"node-{'ab'[rank]}", TRAININGJOB_ATTEMPT=str(attempt), CUDA_VISIBLE_DEVICES="",
            TRAININGJOB_TERMINATION_LOG=str(folder / f"words-{rank}"),
        )
        arguments = ("--data", str(folder / "data"), "--out", str(out), *map(str, FLAGS), *map(str, more))
        self.process = subprocess.Popen(
            [*place.within(rank), TRAINER, *LAUNCH, TRAINER, "train", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.lines = []  # (seconds, text)
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.ended_at = None

    def read(self):
        for line in self.process.stdout:
            self.note(line.rstrip("\n"))
        self.process.wait()
        self.ended_at = time.monotonic()
        self.note(None)

    def note(self, line):
        with self.changed:
            self.lines.append((time.monotonic(), line))
            self.changed.notify_all()

    def wait_for(self, pattern):
        """Until a line matches, or the process ends."""
        def found():
            return any(line is None or re.search(pattern, line) for _, line in self.lines)

        with self.changed:
            if not self.changed.wait_for(found, RUN_SECONDS_MAX):
                raise SystemExit(f"no line like {pattern!r} within {RUN_SECONDS_MAX} s:\n{self.text()}")
            if not any(line is not None and re.search(pattern, line) for _, line in self.lines):
                raise SystemExit(f"ended without a line like {pattern!r}:\n{self.text()}")

    def wait(self):
        self.reader.join(RUN_SECONDS_MAX)
        if self.reader.is_alive():
            raise SystemExit(f"still running after {RUN_SECONDS_MAX} s:\n{self.text()}")
        return self.process.returncode

    def text(self):
        return "\n".join(line for _, line in self.lines if line is not None)

    def cause(self):
        """(seconds, sentence) of the trainer's own last words, before the launcher's."""
        said = [(at, line) for at, line in self.lines if line and line.startswith("trainer: ")]
        return said[-1] if said else (None, "")

    def engine(self):
        """The process that trains: the launcher's only child."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def signal(self, number):
        os.kill(self.engine(), number)


@dataclasses.dataclass
class Fault:
    what: str
    strike: Callable  # (place, ranks): what happens to them
    sentence: str = ""  # what a rank that survives says; empty: nobody notices
    ends: bool = True
    code: int = 76  # of the survivor
    survivor: int = 0
    seconds_max: float = 8  # until the last process is gone, on a busy machine; the table shows what it is
    more: tuple = ()  # flags of the disturbed attempt
    after: str = rf"^step {FAULT_STEP}/"  # rank 0's line before it strikes


def kill(rank):
    return lambda _, ranks: ranks[rank].signal(signal.SIGKILL)


def kill_with_node(place, ranks):
    """The node's power: no process there says good-bye, and no packet comes back."""
    place.cut()
    ranks[1].signal(signal.SIGKILL)


def cut_for(seconds):
    def strike(place, _):
        place.cut()
        threading.Event().wait(seconds)
        place.mend()

    return strike


UNREACHABLE = r"rank 1 on node node-b is frozen or unreachable: no sign of life for \d+ s"
FAULTS = {
    "killed": Fault("rank 1 is killed (SIGKILL)", kill(1), r"rank 1 on node node-b was lost"),
    "master-killed": Fault(
        "rank 0 is killed (SIGKILL)", kill(0), r"rank 0 .*was lost", survivor=1,
    ),
    "frozen": Fault(
        "rank 1 is frozen (SIGSTOP)", lambda _, ranks: ranks[1].signal(signal.SIGSTOP), UNREACHABLE, seconds_max=18,
    ),
    "master-frozen": Fault(
        "rank 0 is frozen (SIGSTOP)", lambda _, ranks: ranks[0].signal(signal.SIGSTOP),
        r"rank 0 on node node-a is frozen or unreachable: its store does not answer for 8 s", survivor=1, seconds_max=18,
    ),
    "vanished": Fault("node b loses its power", kill_with_node, UNREACHABLE, seconds_max=18),
    "cut": Fault("the cable is cut for good", lambda place, _: place.cut(), UNREACHABLE, seconds_max=18),
    "blink": Fault("the cable is out for 5 s", cut_for(5), ends=False),
    "loss": Fault("30 % of the packets are lost", lambda place, _: place.lose(0.3), ends=False),
    "stopped": Fault(
        "node b is drained (SIGTERM)", lambda _, ranks: os.kill(ranks[1].process.pid, signal.SIGTERM),
        r"another rank was asked to stop; step \d+ of \d+ is saved", code=75,
    ),
}


def attempt(place, folder, out, number, more=()):
    return [Rank(place, folder, rank, number, out, more) for rank in range(2)]


def finish(ranks):
    codes = [rank.wait() for rank in ranks]
    if any(codes):
        raise SystemExit(f"exit codes {codes}:\n" + "\n".join(rank.text() for rank in ranks))


def files_of(out):
    folder = out / f"step-{STEPS:06}"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check_end(name, fault, ranks, struck_at):
    """(seconds until it was said, seconds until all were gone, the sentence)."""
    survivor = ranks[fault.survivor]
    codes = [rank.wait() for rank in ranks]
    said_at, sentence = survivor.cause()
    told = f"{name}: exit codes {codes}, the survivor said {sentence!r}\n{survivor.text()[-2000:]}"
    assert survivor.process.returncode == fault.code, told
    assert re.search(fault.sentence, sentence), told
    gone = max(rank.ended_at for rank in ranks) - struck_at
    assert gone <= fault.seconds_max, f"{gone:.1f} s until all were gone; {told}"
    return said_at - struck_at, gone, sentence


def suffer(name, fault, place, folder, undisturbed):
    """One row of the table."""
    out = folder / name
    ranks = attempt(place, folder, out, 1, fault.more)
    try:
        ranks[0].wait_for(fault.after)
        struck_at = time.monotonic()
        fault.strike(place, ranks)
        if fault.ends:
            said, gone, sentence = check_end(name, fault, ranks, struck_at)
            row = f"| {fault.what} | {sentence.removeprefix('trainer: ')} | {said:.1f} s | {gone:.1f} s | "
            place.mend()
            ranks = attempt(place, folder, out, 2)
            finish(ranks)
            row += "resumed, same bits |"
        else:
            finish(ranks)
            row = f"| {fault.what} | nothing: training goes on | - | - | same bits |"
    finally:
        place.mend()
        for rank in ranks:
            if rank.process.poll() is None:
                rank.process.kill()
    assert files_of(out) == undisturbed, f"{name}: other bits than the undisturbed run"
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", nargs="*", choices=[[], *FAULTS])
    chosen = parser.parse_args().fault or list(FAULTS)
    place = nodes.Nodes()
    with tempfile.TemporaryDirectory(prefix="tj-faults-") as folder:
        folder = pathlib.Path(folder)
        (folder / "data").mkdir()
        (folder / "data" / "a.txt").write_text(TEXT)
        ranks = attempt(place, folder, folder / "calm", 0)
        finish(ranks)
        undisturbed = files_of(folder / "calm")
        print("| what happens at step 100 | what the other rank says | said after | all gone after | and then |")
        print("|---|---|---|---|---|")
        for name in chosen:
            print(suffer(name, FAULTS[name], place, folder, undisturbed), flush=True)
    place.close()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    nodes.become_root()
    main()
