"""Qwen2.5-VL: tokens/s and what they take of the card, with and without a VGGT, beside the model of transformers. Weights are random."""
import pathlib
import statistics
import sys

import rows
import runner
import speed

# In the kit, and in the tree.
HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE / "peers"), str(HERE.parents[1] / "bench/trainer")]
import qwen_data  # noqa: E402

DATA_THREADS = 4
STEPS_MAX = 1000  # a run is ended once its steps are timed: a checkpoint of 3B has 45 GB
TOKENS_MAX = 4096  # of a conversation; all are shorter
IS_THERE = "import importlib.util as u; print(u.find_spec('transformers') is not None)"


def work_of(size):
    return qwen_data.Work(size.conversations, size.history, size.scale)


def data_of(kit, size):
    folder = kit.out / "conversations"
    qwen_data.write(folder, qwen_data.SHAPES[size.shape], work_of(size))
    return folder


def recomputation(size):
    return ["--recompute"] if size.recomputes else []


def ours(kit, size, data, vggt):
    """Frames come again: a VGGT looks at each of them anew, as at those of many episodes."""
    flags = ["--model", size.preset, "--vggt", vggt, "--data", data / "set/rooms.json", "--tokenizer", data / "tokenizer.json", "--seq-len",
             TOKENS_MAX, "--batch-size", size.batch_size, "--accumulation", 1, "--steps", STEPS_MAX, "--precision", kit.size.precision,
             "--data-threads", DATA_THREADS if kit.has_gpu else 1, *recomputation(size)]
    cache = [] if vggt == "off" else ["--vggt-cache", 0]
    return kit.train("qwen-ours" if vggt == "off" else "qwen-ours-vggt", *flags, *cache, until_step=size.steps)


def transformers_own(kit, size, data):
    command = [kit.python, kit.root / "peers" / "qwen_loop.py", "--shape", size.shape, "--folder", kit.out, "--data", data, "--scale", size.scale,
               "--history", size.history, "--batch-size", size.batch_size, "--steps", STEPS_MAX, "--device", kit.device, "--precision",
               kit.size.precision, *recomputation(size)]
    return kit.run("qwen-transformers", command, speed.peer_environment(kit), until_step=size.steps)


def seconds(size, runs):
    return statistics.median(run.seconds_per_step(size.warmup) for run in runs)


def rate_row(size, what, runs, tokens, more=""):
    memory_mib = max(run.card_mib for run in runs)
    taken = f", {memory_mib:,} MiB of the card" if memory_mib else ""
    found = [tokens / run.seconds_per_step(size.warmup) for run in runs]
    return rows.Row("ok", "qwen", what, f"{statistics.median(found):,.0f} tokens/s{taken}{more}",
                    {"tokens_per_second": [round(each, 1) for each in found], "card_mib": memory_mib})


def rates(kit):
    size = kit.size.qwen
    shape = f"{size.preset}, {kit.size.precision}, batch {size.batch_size}"
    if kit.has_gpu and kit.machine.memory_gib < size.memory_gib:
        yield rows.Row("SKIP", "qwen", shape, f"needs a card of {size.memory_gib} GiB")
        return
    data = data_of(kit, size)
    tokens = size.batch_size * qwen_data.tokens_per_conversation(data, qwen_data.SHAPES[size.shape], work_of(size))
    mine = [ours(kit, size, data, "off") for _ in range(size.rounds)]
    yield rate_row(size, f"ours, {shape}", mine, tokens)
    what = f"transformers', {kit.size.precision}, batch {size.batch_size}"
    if kit.run("transformers-is-there", [kit.python, "-c", IS_THERE], speed.peer_environment(kit)).text.strip() != "True":
        yield rows.Row("SKIP", "qwen", what, "needs transformers in the Python of --python; ours alone")
    else:
        yield beside(kit, size, data, (what, tokens, seconds(size, mine)))
    seeing = [ours(kit, size, data, "random") for _ in range(size.rounds)]
    share = 1 - seconds(size, mine) / seconds(size, seeing)
    yield rate_row(size, f"ours with VGGT, batch {size.batch_size}", seeing, tokens, f", VGGT takes {share:.0%} of a step")


def beside(kit, size, data, told):
    what, tokens, mine = told
    try:
        theirs = [transformers_own(kit, size, data) for _ in range(size.rounds)]
    except runner.Failed as why:
        return rows.failed("qwen", what, why)
    return rate_row(size, what, theirs, tokens, f", ours {seconds(size, theirs) / mine:.2f} x")
