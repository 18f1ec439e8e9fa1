"""What can happen to two ranks on two nodes, how it is done to them, and what the survivor must say. The nodes are two
network namespaces (fault_table.py) or those of a real Kubernetes (tests/e2e/training_faults.py): each has a Run of its own."""

import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from support.waiting import until

STEPS = 160
FAULT_STEP = 100
TEXT = "the quick brown fox jumps over the lazy dog and runs away. " * 400
LATE_SECONDS = 60
POLL_SECONDS = 0.001
FOUND_SECONDS_MAX = 60
MIB = 1 << 20
NAN = b"\x00\x00\xc0\x7f"
NORM_WIDTH = 96
FLAGS = ("--layers", 2, "--width", NORM_WIDTH, "--heads", 2, "--seq-len", 96, "--steps", STEPS,
         "--save-every", 40, "--log-every", 1, "--log-style", "trainer", "--resume")
LAUNCH = ("launch", "--grace-seconds", "20", "--")


class Run:
    """One disturbed attempt: what a fault may touch. `undo` repairs what it did, before the restart. Besides, it has
    start(rank); start_in_memory_group(rank) and then memory_group, its control group; make_disk_small(), of --out;
    power_off(rank), of its node; and ranks that have engine(), the id of the process that trains, and stop(), which asks
    the worker to stop."""

    def __init__(self, place, out, data):
        self.place, self.out, self.data = place, out, data
        self.ranks = {}
        self.undo = contextlib.ExitStack()


def data_of(folder, rank):
    """Each has its own copy."""
    return folder / f"data-{rank}"


def write_data(folder):
    for rank in range(2):
        data_of(folder, rank).mkdir()
        (data_of(folder, rank) / "a.txt").write_text(TEXT)


def files_of(out):
    folder = out / f"step-{STEPS:06}"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# -- how the ranks are started


def together(run):
    for rank in range(2):
        run.start(rank)


def master_late(run):
    run.start(1)
    threading.Event().wait(LATE_SECONDS)
    run.start(0)


def master_alone(run):
    run.start(0)


def in_a_memory_group(run):
    run.start(0)
    run.start_in_memory_group(1)


def on_a_small_disk(run):
    run.make_disk_small()
    together(run)


# -- what strikes


def to_engine(rank, number):
    return lambda run: os.kill(run.ranks[rank].engine(), number)


def drained(rank):
    return lambda run: run.ranks[rank].stop()


def for_a_while(seconds, harm):
    def strike(run):
        harm(run.place)
        threading.Event().wait(seconds)
        run.place.mend()

    return strike


def out_of_memory(run):
    """Another process of the group takes what is left, and the kernel picks the trainer."""
    engine = run.ranks[1].engine()
    pathlib.Path(f"/proc/{engine}/oom_score_adj").write_text("1000")
    is_v1 = (run.memory_group / "memory.limit_in_bytes").exists()
    used = int((run.memory_group / ("memory.usage_in_bytes" if is_v1 else "memory.current")).read_text())
    limit = run.memory_group / ("memory.limit_in_bytes" if is_v1 else "memory.max")
    limit.write_text(str(used + 16 * MIB))
    eater = f"import os; open('{run.memory_group}/cgroup.procs', 'w').write(str(os.getpid())); bytearray({64 * MIB})"
    subprocess.run([sys.executable, "-c", eater], check=False)


@contextlib.contextmanager
def standing_still(process):
    os.kill(process, signal.SIGSTOP)
    try:
        until(FOUND_SECONDS_MAX, f"process {process} to stand still", lambda: all_threads_stopped(process), POLL_SECONDS)
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def all_threads_stopped(process):
    with contextlib.suppress(OSError):  # a thread may end meanwhile
        stats = [(task / "stat").read_text() for task in pathlib.Path(f"/proc/{process}/task").iterdir()]
        return all(stat.rpartition(")")[2].split()[0] in "TZX" for stat in stats)
    return False


def bad_memory(run):
    """Bits of rank 1 turn over: in each layer norm's weights, the long rows of floats near 1, a NaN."""
    engine = run.ranks[1].engine()
    with standing_still(engine):  # a row that it frees meanwhile may hold pointers when it is written
        hits = put_nan(engine)
    if hits == 0:
        sys.exit("bad-memory: no weights found in the memory of rank 1")


def put_nan(engine):
    row = b"\x3f" * NORM_WIDTH  # the highest bytes of floats from 0.5 to 2
    hits = 0
    maps = pathlib.Path(f"/proc/{engine}/maps").read_text(encoding="utf-8")
    with open(f"/proc/{engine}/mem", "r+b", buffering=0) as memory, contextlib.suppress(OSError):  # it may end meanwhile
        for line in maps.splitlines():
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0", line)
            if not found:
                continue
            begin, end = (int(number, 16) for number in found.groups())
            memory.seek(begin)
            highest = memory.read(end - begin)[3::4]
            at = highest.find(row)
            while at >= 0:
                memory.seek(begin + 4 * at)
                memory.write(NAN)
                hits += 1
                at = highest.find(row, at + NORM_WIDTH)
    return hits


def cut_file(run):
    file = run.data[1] / "a.txt"
    os.truncate(file, 4096)
    run.undo.callback(file.write_text, TEXT)


def fill_disk(run):
    filler = run.out / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(MIB))
    run.undo.callback(filler.unlink)


def stop_in_a_save(run):
    until(FOUND_SECONDS_MAX, "a save to begin", lambda: any(run.out.glob(".draft-*")), POLL_SECONDS)
    run.ranks[1].stop()


def nothing(_):
    """It was the start that was odd."""


@dataclasses.dataclass
class Fault:
    what: str
    strike: Callable  # (run): what happens to it
    sentence: str = ""  # what the survivor says when it ends, node-a and node-b for the nodes' names; empty: nobody notices
    may_go_on: bool = False  # it is right, too, if nobody notices
    code: int = 76  # of the survivor
    survivor: int = 0
    launcher_says: str = ""  # that of the other rank
    seconds_max: float = 8  # until the last process is gone, on a busy machine; the table shows what it is
    more: tuple = ()  # flags of the disturbed attempt
    after: str = rf"^step {FAULT_STEP}/"  # rank 0's line before it strikes
    start: Callable = together


LOST = r"rank {} on node {} was lost, in phase step after step \d+: .*(closed|reset) by peer"
UNREACHABLE = r"rank 1 on node node-b is frozen or unreachable: no sign of life for \d+ s .*, last seen in phase step"
MASTER_UNREACHABLE = r"rank 0 on node node-a is frozen or unreachable: its store does not answer for 8 s .*in phase step"
STOPPED = r"rank 1 on node node-b was asked to stop by signal 15; step \d+ of \d+ is saved"
FAULTS = {
    "killed": Fault("rank 1 is killed (SIGKILL)", to_engine(1, signal.SIGKILL), LOST.format(1, "node-b")),
    "master-killed": Fault(
        "rank 0 is killed (SIGKILL)", to_engine(0, signal.SIGKILL),
        r"rank 0 on node node-a was lost, in phase step after step \d+", survivor=1,
    ),
    "frozen": Fault("rank 1 is frozen (SIGSTOP)", to_engine(1, signal.SIGSTOP), UNREACHABLE, seconds_max=18),
    "master-frozen": Fault(
        "rank 0 is frozen (SIGSTOP)", to_engine(0, signal.SIGSTOP),
        MASTER_UNREACHABLE, survivor=1, seconds_max=18,
    ),
    "oom": Fault(
        "rank 1 is killed by the kernel: out of memory in its control group", out_of_memory, LOST.format(1, "node-b"),
        start=in_a_memory_group, launcher_says="the kernel killed it: its control group is out of memory",
    ),
    "bad-memory": Fault(
        "bits turn over in rank 1's memory: NaN", bad_memory,
        r"the (loss|gradient) of step \d+ is -?nan, by rank 1 on node node-b alone", code=70,
    ),
    "cut-file": Fault(
        "rank 1's data can't be read any more", cut_file,
        r"rank 1 on node node-b failed first, in phase step after step \d+: .*a\.txt: can't be read at byte \d+",
    ),
    "disk-full": Fault(
        "the disk of --out is full", fill_disk,
        r"rank 0 on node node-a: step \d+ could not be saved: .*No space left on device", code=74, survivor=1,
        seconds_max=60, start=on_a_small_disk,
    ),
    "vanished": Fault("node b loses its power", lambda run: run.power_off(1), UNREACHABLE, seconds_max=18),
    "master-vanished": Fault(
        "node a loses its power", lambda run: run.power_off(0), MASTER_UNREACHABLE, survivor=1, seconds_max=18,
    ),
    "cut": Fault("the cable is cut for good", lambda run: run.place.cut(), UNREACHABLE, seconds_max=18),
    # TCP repeats what T seconds have lost after less than 2 T and one time-out, which is 0.2 s here and 0.3 s on a busy machine.
    "blink": Fault("the cable is out for 3 s", for_a_while(3, lambda place: place.cut())),
    "long-blink": Fault(
        "the cable is out for 5 s, under `--limit silence=13`", for_a_while(5, lambda place: place.cut()), more=("--limit", "silence=13"),
    ),
    "loss": Fault(
        "30 % of the packets are lost for 15 s", for_a_while(15, lambda place: place.lose(0.3)),
        "rank . on node (node-a|node-b) (is frozen|was lost)", may_go_on=True, seconds_max=60,
    ),
    "late": Fault(f"rank 0 comes {LATE_SECONDS} s after rank 1", nothing, start=master_late),
    "stopped-start": Fault(
        "node a is drained (SIGTERM) while rank 0 waits for rank 1", drained(0),
        "asked to stop by signal 15 before the first step; there is nothing to save", code=75, start=master_alone,
        after=r"waiting for|waits for",
    ),
    "stopped": Fault("node b is drained (SIGTERM) in a step", drained(1), STOPPED, code=75),
    "stopped-save": Fault(
        "node b is drained (SIGTERM) in a save", stop_in_a_save, STOPPED, code=75, more=("--save-every", 1),
    ),
    "stopped-end": Fault(
        "node b is drained (SIGTERM) after the last step", drained(1), STOPPED, code=75,
        may_go_on=True, after=rf"^step {STEPS}/",
    ),
}
