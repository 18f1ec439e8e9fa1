"""Who trains on the slow wire, how each is started on the two nodes, and what is seen of it from outside."""
import dataclasses
import json
import os
import pathlib
import re
import selectors
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "trainer"), str(HERE.parents[1] / "trainer")]
import contenders  # noqa: E402
import nodes  # noqa: E402
from contenders import TRAINER  # noqa: E402

WORK = contenders.ROOT / "build/bench/slow_network"
RANKS = 2
FLOAT_BYTES = 4
MASTER_PORT = 29500  # free in a network of its own
FLAG = re.compile(r"^ +(--[a-z0-9-]+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Model:
    layers: int
    heads: int
    width: int
    context: int
    micro_batch: int  # sequences of a node in one pass
    vocabulary: int = 256
    lr: float = 1e-3

    @property
    def parameters(self):
        """Of GPT-2 with a tied head: matrices, biases and norms of the layers; embeddings; the last norm."""
        of_layers = self.layers * (12 * self.width**2 + 13 * self.width)
        return of_layers + (self.vocabulary + self.context + 2) * self.width

    @property
    def gradient_bytes(self):
        return FLOAT_BYTES * self.parameters

    def tokens(self, passes):
        """Of one node in one step."""
        return self.micro_batch * passes * self.context


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    flags: tuple = ()
    is_ours: bool = True
    # With it the weights are no longer those of exact steps, whatever the arithmetic: who takes it has asked for it.
    is_choice: bool = False
    exact_steps: int = 0  # with which it begins; they don't count

    def missing(self, known):
        """Those of its flags that this build of the trainer doesn't have."""
        return [flag for flag in self.flags if self.is_ours and str(flag).startswith("--") and flag not in known]


# Of the matrices of PowerSGD, ours and PyTorch's: what keeps the loss of a model this narrow within 1 %.
POWERSGD_RANK = 20
OURS = (
    Contender("fp32"),
    Contender("bf16", ("--reduce", "bf16")),
    Contender("fp16", ("--reduce", "fp16")),
    Contender("int8", ("--reduce", "int8")),
    Contender("PowerSGD", ("--reduce", "powersgd", "--reduce-rank", POWERSGD_RANK), exact_steps=10),
    Contender("late", ("--sync", "late"), is_choice=True),
    Contender("DiLoCo", ("--sync", "diloco", "--sync-every", "{every}"), is_choice=True),
)
TORCH = (
    Contender("DDP", is_ours=False),
    Contender("DDP fp16", ("--hook", "fp16"), is_ours=False),
    # In a single bucket: with several the collectives that follow a bucket's first one begin as that one ends, on each node in
    # another order, and Gloo ends the run ("Received data size doesn't match expected size").
    Contender("DDP PowerSGD", ("--hook", "powersgd", "--powersgd-rank", POWERSGD_RANK, "--powersgd-from", "{warmup}", "--bucket-mib", 64), is_ours=False),
)


@dataclasses.dataclass(frozen=True)
class Length:
    """Of a run: steps in all, of these before the clock counts, and of how many DiLoCo makes one of its own: `warmup` and
    `steps` are multiples of it, so that as many synchronisations are counted as belong to the steps."""
    steps: int
    warmup: int
    every: int

    def beyond(self, exact_steps):
        """As many that count, after these."""
        later = -(-max(0, exact_steps - self.warmup) // self.every) * self.every
        return Length(self.steps + later, self.warmup + later, self.every)


@dataclasses.dataclass(frozen=True)
class Task:
    """What all contenders do."""
    model: Model
    passes: int
    length: Length
    data: pathlib.Path
    bucket_mib: int = 1  # gradients are reduced in such pieces
    eval_batches: int = 0  # of our trainer, after the last step; 0: none
    has_bucket_flag: bool = True  # this build of the trainer


@dataclasses.dataclass
class Pair:
    """What one run of two processes did: of each the seconds from the start to the end of its steps, and what each node has sent
    in a step that counts."""
    ends: list
    losses: list
    warmup: int
    sent_per_step: list

    def seconds_per_step(self, node=0):
        return contenders.per_step(self.ends[node], self.warmup)

    def each_step(self, node):
        """Seconds of each step that counts."""
        ends = self.ends[node][self.warmup - 1:]
        return [after - before for before, after in zip(ends, ends[1:])]


def known_flags():
    """Of this build of the trainer."""
    said = subprocess.run([TRAINER, "train", "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    return set(FLAG.findall(said))


def out_of(node):
    return WORK / f"out-{node}"


def flags_of(contender, length):
    return [str(flag).format(every=length.every, warmup=max(2, length.warmup)) for flag in contender.flags]


def our_command(contender, task, ranks, node):
    model = task.model
    train = [TRAINER, "train", "--model", "gpt2-nano", "--layers", model.layers, "--heads", model.heads, "--width", model.width,
             "--seq-len", model.context, "--vocabulary", model.vocabulary, "--data", task.data, "--lr", model.lr,
             "--batch-size", model.micro_batch * task.passes * ranks, "--accumulation", task.passes, "--steps", task.length.steps,
             "--out", out_of(node), "--log-style", "trainer", "--tensorboard", "off", "--log-dir", "off", "--progress-port", "off",
             *flags_of(contender, task.length)]
    if task.has_bucket_flag and "--sync" not in contender.flags:  # the others have no buckets
        train += ["--bucket-mib", task.bucket_mib]
    if task.eval_batches:
        train += ["--eval-data", task.data, "--eval-batches", task.eval_batches]
    if ranks == 1:
        return train
    return [TRAINER, "launch", "--world-size", ranks, "--gpus-per-node", 1, "--node-rank", node, "--master-addr", nodes.ADDRESSES[0],
            "--master-port", MASTER_PORT, "--", *train]


def torch_command(contender, task, ranks, python):
    model = task.model
    return [python, HERE.parent / "trainer/torch_loop.py", "--model", "plain", "--data", task.data, "--layers", model.layers, "--heads",
            model.heads, "--width", model.width, "--context", model.context, "--vocabulary", model.vocabulary, "--batch-size",
            model.micro_batch * task.passes * ranks, "--accumulation", task.passes, "--steps", task.length.steps, "--lr", model.lr,
            "--bucket-mib", task.bucket_mib, *flags_of(contender, task.length)]


def environment(contender, ranks, node):
    env = contenders.environment(1) | {"OMP_NUM_THREADS": "1"}
    if not contender.is_ours and ranks > 1:  # what torchrun would set
        env |= {"WORLD_SIZE": str(ranks), "RANK": str(node), "MASTER_ADDR": nodes.ADDRESSES[0], "MASTER_PORT": str(MASTER_PORT),
                "GLOO_SOCKET_IFNAME": "eth0"}
    return env


def core_of(node):
    """Each node has one; where there is a single one they share it, the nodes without a network as well."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[node % len(usable)]


def start(wire, contender, task, ranks, node, python):
    shutil.rmtree(out_of(node), ignore_errors=True)
    command = our_command(contender, task, ranks, node) if contender.is_ours else torch_command(contender, task, ranks, python)
    command = [*wire.within(node), "taskset", "--cpu-list", core_of(node), *command]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                            cwd=WORK, env=environment(contender, ranks, node), start_new_session=True)


class Watch:
    """Reads what the processes of a pair say, and the counters of the wire when node 0 has done the first step that doesn't count
    and the last."""

    def __init__(self, wire, length):
        self.wire, self.length = wire, length
        self.begun = time.monotonic()
        self.ends, self.losses, self.tails = ([[] for _ in range(RANKS)] for _ in range(3))
        self.counters = []

    def take(self, node, line):
        self.tails[node] = [*self.tails[node][1 - contenders.TAIL_LINES:], line]
        found = contenders.STEP.search(line)
        if not found:
            return
        self.ends[node].append(time.monotonic() - self.begun)
        self.losses[node].append(float(found[2]))
        if node == 0 and int(found[1]) in (self.length.warmup, self.length.steps):
            self.counters.append(self.wire.sent_bytes())

    def read(self, processes, deadline):
        rests = [b""] * RANKS
        with selectors.DefaultSelector() as selector:
            for node, process in enumerate(processes):
                selector.register(process.stdout, selectors.EVENT_READ, node)
            while selector.get_map():
                ready = selector.select(max(0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError("no end in time; the last lines:\n" + self.last_lines())
                for key, _ in ready:
                    chunk = os.read(key.fd, 1 << 16)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    *whole, rests[key.data] = (rests[key.data] + chunk).split(b"\n")
                    for line in whole:
                        self.take(key.data, line.decode(errors="replace"))

    def last_lines(self):
        return "\n".join(f"[node {node}] {line}" for node, tail in enumerate(self.tails) for line in tail)


def run_pair(wire, contender, task, ranks, python, seconds_max=300):
    """Two ranks of one training, or with `ranks` 1 two trainings that know nothing of each other, at the same time. Raises
    RuntimeError with the last lines when it fails."""
    task = dataclasses.replace(task, length=task.length.beyond(contender.exact_steps))
    watch, processes = Watch(wire, task.length), []
    try:
        for node in range(RANKS):
            processes.append(start(wire, contender, task, ranks, node, python))
        watch.read(processes, watch.begun + seconds_max)
        codes = [process.wait(30) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                contenders.end(process)
            process.stdout.close()
    steps = task.length.steps
    wanted = [steps, steps if ranks == 1 else len(watch.ends[1])]
    # PyTorch's process group may abort while it is taken down ("Resource deadlock avoided"): its steps were done by then.
    has_ended_well = codes == [0, 0] or not contender.is_ours
    if not has_ended_well or [len(ends) for ends in watch.ends] != wanted:
        raise RuntimeError(f"{contender.name}: exit codes {codes} after {len(watch.ends[0])} of {steps} steps; the last lines:\n"
                           + watch.last_lines())
    counted = steps - task.length.warmup
    first, last = watch.counters
    return Pair(watch.ends, watch.losses, task.length.warmup, [round((after - before) / counted) for before, after in zip(first, last)])


def eval_loss():
    """Of the run before, by our trainer."""
    lines = map(json.loads, (out_of(0) / "metrics.jsonl").read_text().splitlines())
    return next(line["eval_loss"] for line in lines if line.get("event") == "eval")
