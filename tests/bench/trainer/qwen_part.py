"""The part `qwen`: a Qwen2.5-VL on conversations with pictures, each rank on a core of its own. This trainer at ZeRO-3 beside transformers
under FSDP2; two ranks beside one; and what a live VGGT takes of a step."""
import dataclasses
import json
import shlex
import subprocess
import time

import contenders
import qwen_data
from contenders import HERE, TRAINER, WORK

LR = 1e-4
FIRST_LOSS_APART_MAX = 2e-3  # both begin with the same weights, and each step takes the whole data
LAST_LOSS_APART_MAX = 0.3
TOKENS_MAX = 2048  # of a conversation; all are shorter
MAKE_SECONDS_MAX = 300
KEPT = ("--zero-reuse", 1_000_000_000)  # as the DeepSpeed file of system S3 has it: more elements than the model has
KEPT_WORDS = "weights kept while they are the same (`--zero-reuse`)"


@dataclasses.dataclass(frozen=True)
class QwenCase:
    """One piece of work, and how each contender is started on it."""
    name: str
    shape: str
    work: qwen_data.Work
    batch_of_rank: int  # conversations in one pass
    steps: int  # in all, and of these before the clock counts
    warmup: int
    passes: int = 1
    stage: int = 3
    zero: tuple = ()  # more flags of our ZeRO
    vggt: bool = False

    @property
    def folder(self):
        return WORK / f"qwen-{self.shape}"

    @property
    def data(self):
        work = self.work
        return self.folder / f"{work.conversations}x{work.history}x{work.scale}x{work.pictures or 'all'}"

    @property
    def environment(self):
        return {"OMP_NUM_THREADS": "1"}

    def batch_size(self, ranks):
        return self.batch_of_rank * self.passes * ranks

    def our_command(self, ranks, steps, out, more, core=0):
        """With a preset whose shape `--init-from` takes the place of. One rank has a core, of those there are."""
        vggt = self.folder / "vggt.safetensors" if self.vggt else "off"
        train = [TRAINER, "train", "--model", qwen_data.SHAPES[self.shape].preset, "--init-from", self.folder / "model", "--vggt", vggt,
                 "--data", self.data / "set/rooms.json", "--tokenizer", self.data / "tokenizer.json", "--seq-len", TOKENS_MAX,
                 "--batch-size", self.batch_size(ranks), "--accumulation", self.passes, "--steps", steps, "--zero", self.stage, *self.zero, "--lr", LR,
                 "--vision-lr", LR, "--projector-lr", LR, "--tensorboard", "off", "--log-dir", "off", "--out", out, *more]
        if ranks == 1:
            return ["taskset", "--cpu-list", contenders.core_of(core), *train]
        places = " ".join(f"{rank}) core={contenders.core_of(rank)};;" for rank in range(ranks))
        on_its_core = f'case $LOCAL_RANK in {places} esac; exec taskset --cpu-list "$core" "$@"'
        return [TRAINER, "launch", "--nproc", ranks, "--", "sh", "-c", on_its_core, "sh", *train]

    def apart_command(self, steps, out):
        """Two that know nothing of each other, each on its core: what the machine itself lets two be. The first one is heard."""
        one, other = (shlex.join(map(str, self.our_command(1, steps, out / str(core), (), core))) for core in range(2))
        return ["sh", "-c", f"{other} >/dev/null 2>&1 & {one}; code=$?; wait; exit $code"]

    def command(self, contender, ranks, steps, python, out, more=()):
        if contender == "apart":
            return self.apart_command(steps, out)
        if contender != "transformers":
            return self.our_command(ranks, steps, out, more)
        cores = ",".join(str(contenders.core_of(rank)) for rank in range(ranks))
        loop = [HERE / "qwen_loop.py", "--shape", self.shape, "--folder", self.folder, "--data", self.data, "--scale", self.work.scale,
                "--history", self.work.history, "--batch-size", self.batch_size(ranks), "--accumulation", self.passes, "--steps", steps,
                "--lr", LR, "--cores", cores, *more]
        return [python, *([] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]), *loop]


@dataclasses.dataclass(frozen=True)
class Size:
    beside: QwenCase  # transformers
    alone: tuple  # QwenCases, in each of which two ranks stand beside one
    seeing: QwenCase  # with VGGT
    rounds: int


def mid(name, work, batch_of_rank=2, **more):
    return QwenCase(f"4 pictures of {84 * work.scale} x {84 * work.scale}, {name}", "mid", work, batch_of_rank, **more)


def in_passes(passes, name, **more):
    return mid(f"8 conversations a rank in {passes} pass{'es' * (passes > 1)}, {name}", qwen_data.Work(48, 3, 2, 24), 8 // passes, passes=passes,
               steps=3, warmup=1, **more)


def nano(work):
    return QwenCase("nano", "nano", work, batch_of_rank=2, steps=4, warmup=1)


# Beside transformers every step takes the whole data. For VGGT there are so few frames that it has soon seen all of them.
FULL = Size(beside=mid("2 conversations a rank", qwen_data.Work(4, 3, 2), steps=6, warmup=2),
            # The passes of system S3, without its distance of reuse and with it; and as many conversations in a single one: about 2,100
            # tokens, the order of what one conversation of 3B has with a few pictures. They share what gathering weights costs.
            alone=(in_passes(8, "nothing kept"), in_passes(8, KEPT_WORDS, zero=KEPT), in_passes(1, KEPT_WORDS, zero=KEPT)),
            seeing=mid("2 conversations", qwen_data.Work(48, 3, 2, 8), steps=8, warmup=3), rounds=2)
SMALL = Size(beside=nano(qwen_data.Work(4, 1, 1)), alone=(nano(qwen_data.Work(16, 1, 1, 8)),), seeing=nano(qwen_data.Work(16, 1, 1, 4)), rounds=1)
VGGT_WAYS = {"off": (), "kept": (), "anew": ("--vggt-cache", 0)}


def say(text):
    print(text, flush=True)


class QwenPart:
    """Each measurement is made in rounds, and each round has all contenders, so that a ratio is of one time."""

    def __init__(self, size, python, ends):
        self.size, self.python, self.ends = size, python, ends

    def make(self, case):
        """Weights, once; and the data."""
        case.folder.mkdir(parents=True, exist_ok=True)
        if not (case.folder / "sizes.json").exists():
            subprocess.run([self.python, HERE / "qwen_loop.py", "--shape", case.shape, "--make", "--folder", case.folder], check=True,
                           env=contenders.environment(1), stdin=subprocess.DEVNULL, timeout=MAKE_SECONDS_MAX)
        qwen_data.write(case.data, qwen_data.SHAPES[case.shape], case.work)

    def rounds(self, runs):
        """`runs`: name -> function that gives numbers of one run. name -> [numbers], with as many of each."""
        found = {name: [] for name in runs}
        for number in range(self.size.rounds):
            if number and time.monotonic() > self.ends:
                say(f"  out of time: {number} of {self.size.rounds} rounds")
                break
            for name, run in runs.items():
                found[name].append(run())
                say(f"  {name}: {found[name][-1]}")
        return found

    def numbers(self, contender, case, ranks, more=()):
        seen = contenders.run(contender, case, ranks, case.steps, self.python, None, more)
        return {"steps_per_second": round(1 / seen.seconds_per_step(case.warmup), 4),
                "cpu_seconds_per_step": round(seen.cpu_seconds_per_step(case.warmup), 3), "peak_mib": seen.peak_mib,
                "losses": [seen.losses[0], seen.losses[-1]]}

    def said(self, case, runs):
        return {"case": case.name, "steps": {"timed": case.steps - case.warmup, "warmup": case.warmup}, "runs": runs}

    def beside(self):
        case = self.size.beside
        self.make(case)
        found = self.rounds({name: lambda name=name: self.numbers(name, case, 2) for name in ("ours", "transformers")})
        for ours, theirs in zip(*(found[name] for name in ("ours", "transformers"))):
            apart = [abs(one - other) for one, other in zip(ours["losses"], theirs["losses"])]
            if apart[0] > FIRST_LOSS_APART_MAX or apart[1] > LAST_LOSS_APART_MAX:
                raise RuntimeError(f"{case.name}: other losses in the first step or the last: {ours['losses']}, transformers {theirs['losses']}")
        return self.said(case, found)

    def alone(self):
        return [self.one_and_two(case) for case in self.size.alone]

    def one_and_two(self, case):
        self.make(case)
        say(f"  {case.name}")
        return self.said(case, self.rounds({"1 rank": lambda: self.numbers("ours", case, 1), "2 ranks": lambda: self.numbers("ours", case, 2),
                                            "2 apart": lambda: self.numbers("apart", case, 1)}))

    def seeing(self):
        case = self.size.seeing
        self.make(case)

        def run(way):
            return self.numbers("ours", dataclasses.replace(case, vggt=way != "off"), 1, VGGT_WAYS[way])
        return self.said(case, self.rounds({way: lambda way=way: run(way) for way in VGGT_WAYS}))

    def results(self):
        found = {name: getattr(self, name)() for name in ("beside", "alone", "seeing")}
        case = self.size.beside
        tokens = qwen_data.tokens_per_conversation(case.data, qwen_data.SHAPES[case.shape], case.work)
        return found | {"parameters": json.loads((case.folder / "sizes.json").read_text()), "tokens": round(tokens)}
