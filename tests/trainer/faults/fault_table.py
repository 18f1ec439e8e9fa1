#!/usr/bin/env python3
"""Two ranks on two nodes, and what can happen to them: for each fault, who is blamed, how fast all processes are gone, and
that the restarted run ends with the bits of one that nobody disturbed. Prints a table.

  TJ_TRAINER=build/dev/trainer/trainer tests/trainer/faults/fault_table.py            every fault
  TJ_TRAINER=build/dev/trainer/trainer tests/trainer/faults/fault_table.py killed cut  these
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
import nodes  # noqa: E402
from faults import FAULTS, NORM_WIDTH, STEPS, TEXT, Run, together  # noqa: E402
from processes import environment_of_a_program  # noqa: E402

TRAINER = os.environ.get("TJ_TRAINER", "")
SAVE_EVERY = 40
FLAGS = ("--layers", 2, "--width", NORM_WIDTH, "--heads", 2, "--seq-len", 96, "--batch-size", 32, "--steps", STEPS,
         "--save-every", SAVE_EVERY, "--log-every", 1, "--resume")
RUN_SECONDS_MAX = 300  # of one attempt; a machine may be busy
LAUNCH = ("launch", "--grace-seconds", "20", "--")


class Rank:
    """A worker's launcher and all that it says, with the time of each line."""

    def __init__(self, place, folder, rank, attempt, out, more=(), within=()):
        environment = environment_of_a_program(
            "TMPDIR", WORLD_SIZE="2", RANK=str(rank), MASTER_ADDR=nodes.ADDRESSES[0], MASTER_PORT="29500",
            NODE_NAME=f"node-{'ab'[rank]}", TRAININGJOB_ATTEMPT=str(attempt), CUDA_VISIBLE_DEVICES="",
            TRAININGJOB_TERMINATION_LOG=str(folder / f"words-{rank}"),
        )
        arguments = ("--data", str(data_of(folder, rank)), "--out", str(out), *map(str, FLAGS), *map(str, more))
        self.process = subprocess.Popen(
            [*within, *place.within(rank), TRAINER, *LAUNCH, TRAINER, "train", *arguments],
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


def data_of(folder, rank):
    """Each node has its own copy."""
    return folder / f"data-{rank}"


def finish(ranks):
    codes = [rank.wait() for rank in ranks.values()]
    if any(codes):
        raise SystemExit(f"exit codes {codes}:\n" + "\n".join(rank.text() for rank in ranks.values()))


def files_of(out):
    folder = out / f"step-{STEPS:06}"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check_end(name, fault, ranks, struck_at):
    """The row's part from the sentence on, after a look at who says what and ends how."""
    codes = {number: rank.wait() for number, rank in ranks.items()}
    if not any(codes.values()) and (fault.may_go_on or not fault.sentence):
        return "nothing: training goes on | - | - | same bits |"
    survivor = ranks[fault.survivor]
    said_at, sentence = survivor.cause()
    told = f"{name}: exit codes {codes}, the survivor said {sentence!r}\n{survivor.text()[-2000:]}"
    assert survivor.process.returncode == fault.code, told
    assert fault.sentence and re.search(fault.sentence, sentence), told
    if fault.launcher_says:
        assert fault.launcher_says in ranks[1 - fault.survivor].text(), ranks[1 - fault.survivor].text()[-2000:]
    gone = max(rank.ended_at for rank in ranks.values()) - struck_at
    assert gone <= fault.seconds_max, f"said after {said_at - struck_at:.1f} s, all gone after {gone:.1f} s; {told}"
    said = sentence.removeprefix("trainer: ")
    return f"{said} | {said_at - struck_at:.1f} s | {gone:.1f} s | resumed, same bits |"


def attempt(place, folder, out, number, start=together, more=()):
    run = Run(place, out, [data_of(folder, rank) for rank in range(2)],
              lambda rank, within: Rank(place, folder, rank, number, out, more, within))
    start(run)
    return run


def suffer(name, fault, place, folder, undisturbed):
    """One row of the table."""
    out = folder / name
    run = attempt(place, folder, out, 1, fault.start, fault.more)
    try:
        run.ranks[0].wait_for(fault.after)
        struck_at = time.monotonic()
        fault.strike(run)
        row = f"| {fault.what} | {check_end(name, fault, run.ranks, struck_at)}"
        place.mend()
        run.undo.close()
        run = attempt(place, folder, out, 2)  # does nothing where training went on
        finish(run.ranks)
        assert files_of(out) == undisturbed, f"{name}: other bits than the undisturbed run"
    finally:
        place.mend()
        for rank in run.ranks.values():
            if rank.process.poll() is None:
                rank.process.kill()
        run.undo.close()
        if out.is_mount():
            subprocess.run(["umount", "--lazy", out], check=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", nargs="*", choices=[[], *FAULTS])
    chosen = parser.parse_args().fault or list(FAULTS)
    place = nodes.Nodes()
    with tempfile.TemporaryDirectory(prefix="tj-faults-") as folder:
        folder = pathlib.Path(folder)
        for rank in range(2):
            data_of(folder, rank).mkdir()
            (data_of(folder, rank) / "a.txt").write_text(TEXT)
        finish(attempt(place, folder, folder / "calm", 0).ranks)
        undisturbed = files_of(folder / "calm")
        print("| what happens at step 100 | what the other rank says | said after | all gone after | and then |")
        print("|---|---|---|---|---|")
        for name in chosen:
            print(suffer(name, FAULTS[name], place, folder, undisturbed), flush=True)
    place.close()


if __name__ == "__main__":
    nodes.become_root()
    main()
