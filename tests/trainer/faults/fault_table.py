#!/usr/bin/env python3
"""Two ranks on two nodes, and what can happen to them: for each fault, who is blamed, how fast all processes are gone, and
that the restarted run ends with the bits of one that nobody disturbed. Prints a table.

  TJ_TRAINER=build/dev/trainer/trainer tests/trainer/faults/fault_table.py            every fault
  TJ_TRAINER=build/dev/trainer/trainer tests/trainer/faults/fault_table.py killed cut  these
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:3]]
import nodes  # noqa: E402
from faults import FAULTS, FLAGS, FOUND_SECONDS_MAX, LAUNCH, Run, data_of, files_of, together, write_data  # noqa: E402
from support.processes import environment_of_a_program  # noqa: E402
from said import NODES, Said, check_end  # noqa: E402
from support.waiting import until  # noqa: E402

TRAINER = os.environ.get("TJ_TRAINER", "")
GROUPS = pathlib.Path("/sys/fs/cgroup")
LEDGER_ERROR_MAX = 0.01
UNSEEN_SECONDS_MAX = 1.0  # before the engine's process is there and after it is gone, in two attempts on a busy machine
BATCH = ("--batch-size", 12)  # a fault comes within milliseconds: the steps after it may be short


class Rank(Said):
    """A worker's launcher."""

    def __init__(self, place, folder, rank, attempt, out, more=(), within=()):
        environment = environment_of_a_program(
            "TMPDIR", WORLD_SIZE="2", RANK=str(rank), MASTER_ADDR=nodes.ADDRESSES[0], MASTER_PORT="29500",
            NODE_NAME=NODES[rank], TRAININGJOB_ATTEMPT=str(attempt), CUDA_VISIBLE_DEVICES="",
            TRAININGJOB_TERMINATION_LOG=str(folder / f"words-{rank}"),
        )
        arguments = ("--data", str(data_of(folder, rank)), "--out", str(out), *map(str, (*FLAGS, *BATCH, *more)))
        super().__init__(subprocess.Popen(
            [*within, *place.within(rank), TRAINER, *LAUNCH, TRAINER, "train", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ))

    def engine(self):
        """The process that trains: the launcher's only child."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def stop(self):
        self.process.terminate()


class LocalRun(Run):
    def __init__(self, place, folder, out, attempt, more):
        super().__init__(place, out, [data_of(folder, rank) for rank in range(2)])
        self.new_rank = lambda rank, within: Rank(place, folder, rank, attempt, out, more, within)

    def start(self, rank, within=()):
        self.ranks[rank] = self.new_rank(rank, within)

    def start_in_memory_group(self, rank):
        """In a control group of its own, which has no limit yet."""
        if os.access(GROUPS / "memory", os.W_OK):
            group = GROUPS / "memory" / f"tj-faults-{os.getpid()}"
        elif os.access(GROUPS / "cgroup.controllers", os.W_OK):
            group = GROUPS / f"tj-faults-{os.getpid()}"
        else:
            sys.exit("oom: this fault needs a control group of its own; run it as root")
        group.mkdir()
        self.undo.callback(until_gone, group)
        self.memory_group = group
        self.start(rank, ("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"))

    def power_off(self, rank):
        """No process there says good-bye, and no packet comes back."""
        self.place.cut()
        os.kill(self.ranks[rank].engine(), signal.SIGKILL)

    def make_disk_small(self):
        self.out.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", self.out], check=True)


def until_gone(group):
    """The kernel lets go of a group a moment after its last process."""
    until(FOUND_SECONDS_MAX, f"{group} to be removed", lambda: removed(group))


def removed(group):
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def finish(ranks):
    codes = [rank.wait() for rank in ranks.values()]
    if any(codes):
        raise SystemExit(f"exit codes {codes}:\n" + "\n".join(rank.text() for rank in ranks.values()))


def attempt(place, folder, out, number, start=together, more=()):
    run = LocalRun(place, folder, out, number, more)
    start(run)
    return run


def check_ledger(name, out, wall_seconds):
    """Its seconds, of compute or saving or start or lost, are those that passed."""
    seconds = json.loads((out / "ledger.json").read_text())["total_seconds"]
    least, most = wall_seconds * (1 - LEDGER_ERROR_MAX) - UNSEEN_SECONDS_MAX, wall_seconds * (1 + LEDGER_ERROR_MAX)
    assert least < seconds < most, f"{name}: the ledger sums to {seconds:.2f} s of {wall_seconds:.2f} s of wall time"


def suffer(name, fault, place, folder, undisturbed):
    """One row of the table."""
    out = folder / name
    begun_at = time.monotonic()
    run = attempt(place, folder, out, 1, fault.start, fault.more)
    try:
        run.ranks[0].wait_for(fault.after)
        struck_at = time.monotonic()
        fault.strike(run)
        row, went_on = check_end(name, fault, run.ranks, struck_at)
        had_begun = (out / "ledger.json").exists()
        place.mend()
        run.undo.close()
        run = attempt(place, folder, out, 2)  # does nothing where training went on
        finish(run.ranks)
        assert files_of(out) == undisturbed, f"{name}: other bits than the undisturbed run"
        if had_begun and not went_on:
            check_ledger(name, out, run.ranks[0].ended_at - begun_at)
    finally:
        place.mend()
        for rank in run.ranks.values():
            if rank.process.poll() is None:
                rank.process.kill()
        run.undo.close()
        if out.is_mount():
            subprocess.run(["umount", "--lazy", out], check=True)
    return f"| {fault.what} | {row}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", nargs="*", choices=[[], *FAULTS])
    chosen = parser.parse_args().fault or list(FAULTS)
    place = nodes.Nodes()
    with tempfile.TemporaryDirectory(prefix="tj-faults-") as folder:
        folder = pathlib.Path(folder)
        write_data(folder)
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
