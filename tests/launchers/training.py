"""A training that is short, and long enough to be disturbed in its middle; and what it leaves."""
import json
import pathlib

# A few words in a fixed order, as in tests/trainer/engine.
TEXT = "the quick brown fox jumps over the lazy dog and runs away. " * 400
STEPS = 300
DISTURBED_AFTER = 20  # steps: far from the end
FLAGS = ("--model", "gpt2-nano", "--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 64, "--batch-size", 16, "--log-every", 50,
         "--tensorboard", "off", "--progress-port", "off", "--threads", 1)


def write_text(folder):
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT)


def words(data, out, steps=STEPS, *more):
    return [*map(str, ("trainer", "train", "--data", data, "--out", out, *FLAGS, "--steps", steps, *more))]


def metrics(out):
    """What is there so far: a line may be in the making."""
    try:
        lines = (pathlib.Path(out) / "metrics.jsonl").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def losses(out):
    return {line["step"]: line["loss"] for line in metrics(out) if "loss" in line}


def bits(out, steps=STEPS):
    """Of the last checkpoint: each file of tensors."""
    folder = pathlib.Path(out) / f"step-{steps:06}"
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.safetensors"))}


def events(out, kind):
    return [line for line in metrics(out) if line.get("event") == kind]
