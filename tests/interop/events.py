#!/usr/bin/python3
"""Holds our event files to TensorBoard's own reader, and what the documents make of them to Weights & Biases.

    tests/interop/events.py    the last line is "N passed, N failed"

Needs build/dev (trainer, trainer-engine, events_probe) and makes the Python with both where it is missing.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import traceback
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from support import events as without_tensorboard  # noqa: E402

TRAINER = ROOT / "build/dev/trainer/trainer"
PROBE = ROOT / "build/dev/tests/interop/events_probe"
COMMAND_SECONDS_MAX = 240
WANDB_BLOCK_BYTES = 1 << 15


def with_tensorboard():
    """This program again, in the Python that has TensorBoard."""
    done = subprocess.run([ROOT / "tools/deps", "tensorboard"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit("tests/interop/events.py: tools/deps tensorboard failed")
    os.execv(done.stdout.strip(), [done.stdout.strip(), __file__, "--read"])


def expect(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r} instead of {wanted!r}")


def command(*words):
    env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in words], text=True, timeout=COMMAND_SECONDS_MAX, env=env, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect((done.returncode, "" if done.returncode == 0 else done.stdout[-3000:]), (0, ""))


def png():
    """Two pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0" + b"\xff\0\0" + b"\0\0\xff")) + chunk(b"IEND", b""))


def read(folder):
    from tensorboard.backend.event_processing import event_accumulator
    reader = event_accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0, "images": 0, "histograms": 0})
    reader.Reload()
    return reader


def scalars(reader, tag):
    """A float is what the format has."""
    return [(event.step, round(event.value, 6)) for event in reader.Scalars(tag)]


def hparams(reader):
    from tensorboard.plugins.hparams import metadata, plugin_data_pb2
    found = {}
    for tag, content in reader.PluginTagToContent(metadata.PLUGIN_NAME).items():
        found[tag] = plugin_data_pb2.HParamsPluginData.FromString(content)
    start = found["_hparams_/session_start_info"].session_start_info.hparams
    return found, {name: value.number_value if value.HasField("number_value") else value.string_value
                   for name, value in start.items()}


def test_each_kind_of_event_is_read_as_it_was_meant(folder):
    (folder / "two.png").write_bytes(png())
    command(PROBE, folder / "events", folder / "two.png")
    reader = read(folder / "events")
    expect(scalars(reader, "loss"), [(1, 4.0), (2, 2.0), (3, 1.333333)])
    expect(reader.Scalars("lr")[0].wall_time, 1_700_000_001.5)
    text = reader.Tensors("settings")[0].tensor_proto
    expect(text.string_val[0].decode(), "| a |\n|---|\n| ü |\n")
    histogram = reader.Histograms("norms")[0].histogram_value
    expect((histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares), (1, 11, 5, 19, 139))
    expect((sum(histogram.bucket), histogram.bucket[0], histogram.bucket[-1]), (5, 1, 1))
    (image,) = reader.Images("picture")
    expect((image.width, image.height, image.encoded_image_string), (2, 1, png()))
    expect(without_tensorboard.pictures(folder / "events", "picture"), [(image.step, png())])
    expect([(step, round(value, 6)) for step, value in without_tensorboard.scalars(folder / "events", "loss")], scalars(reader, "loss"))
    found, values = hparams(reader)
    expect(values, {"lr": 0.003, "schedule": "cosine"})
    expect([info.name.tag for info in found["_hparams_/experiment"].experiment.metric_infos], ["loss"])
    expect(found["_hparams_/session_end_info"].session_end_info.end_time_secs, 1_700_000_009.5)


def test_every_record_is_framed_and_summed(folder):
    """TensorBoard's own reader skips no byte and checks both sums."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
    (folder / "two.png").write_bytes(png())
    command(PROBE, folder / "events", folder / "two.png")
    (path,) = (folder / "events").iterdir()
    reader, records = PyRecordReader_New(str(path)), 0
    try:
        while True:
            reader.GetNext()
            records += 1
    except Exception as end:  # tensorflow's OutOfRangeError, or what a broken record raises
        expect(type(end).__name__, "OutOfRangeError")
    expect(records, 10)


def test_a_run_that_was_resumed_is_one_curve(folder):
    (folder / "text").mkdir()
    (folder / "text/a.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    small = ("--data", folder / "text", "--out", folder / "out", "--layers", 1, "--width", 16, "--heads", 2, "--seq-len", 16,
             "--batch-size", 4, "--save-every", 5, "--schedule", "constant")
    command(TRAINER, "train", *small, "--steps", 8)
    (folder / "out/step-000008").rename(folder / "lost")  # steps 6 to 8 are done again
    command(TRAINER, "train", *small, "--steps", 12, "--resume")
    lines = [json.loads(line) for line in (folder / "out/metrics.jsonl").read_text().splitlines()]
    losses = {line["step"]: line["loss"] for line in lines if "loss" in line}
    expect(len(list((folder / "out/tensorboard").iterdir())), 2)
    reader = read(folder / "out/tensorboard")
    expect(scalars(reader, "train/loss"), [(step, round(loss, 6)) for step, loss in losses.items()])
    tags = reader.Tags()
    for tag in ("train/learning_rate", "train/gradient_norm", "speed/tokens_per_second", "speed/step_seconds", "goodput/lost"):
        expect(tag in tags["scalars"], True)
    shares = [reader.Scalars(tag)[-1].value for tag in tags["scalars"] if tag.startswith("goodput/")]
    expect((len(shares), round(sum(shares), 5)), (7, 1.0))
    expect(sorted(tags["histograms"]), ["speed/step_seconds_of_100", "train/gradient_norm_of_100"])
    text = reader.Tensors("settings")[-1].tensor_proto.string_val[0].decode()
    expect("| width | 16 | flag |" in text, True)
    values = hparams(reader)[1]
    expect((values["width"], values["schedule"]), (16.0, "constant"))


def weights_and_biases_history(file):
    """{step: {name: value}} of a run's file: records in blocks, framed as LevelDB's log, of protocol buffers."""
    from wandb.proto import wandb_internal_pb2
    data, at, whole, found = file.read_bytes(), 7, b"", {}
    expect(data[:4], b":W&B")
    while at + 7 <= len(data):
        room = WANDB_BLOCK_BYTES - at % WANDB_BLOCK_BYTES
        if room < 7:
            at += room
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole, at = whole + data[at + 7:at + 7 + length], at + 7 + length
        if kind not in (1, 4):  # all of it, or its last piece
            continue
        record, whole = wandb_internal_pb2.Record.FromString(whole), b""
        if record.WhichOneof("record_type") == "history":
            values = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            found[values["_step"]] = values
    return found


def script_of_the_document():
    """The block of docs/trainer.md that uses wandb."""
    (script,) = [block for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/trainer.md").read_text(), re.DOTALL) if "import wandb" in block]
    return script


def test_the_documents_script_makes_an_offline_run_of_weights_and_biases(folder):
    (folder / "text").mkdir()
    (folder / "text/a.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    command(TRAINER, "train", "--data", folder / "text", "--out", folder / "out", "--layers", 1, "--width", 16, "--heads", 2, "--seq-len", 16,
            "--batch-size", 4, "--steps", 7)
    (folder / "to_wandb.py").write_text(script_of_the_document())
    within = ["env", "-C", folder, "WANDB_DISABLE_STATS=true", "WANDB_ERROR_REPORTING=false", f"HOME={folder}", sys.executable]
    command(*within, "to_wandb.py", folder / "out/tensorboard", "test")
    (file,) = (folder / "wandb").glob("offline-run-*/run-*.wandb")
    history = weights_and_biases_history(file)
    reader = read(folder / "out/tensorboard")
    tags = reader.Tags()["scalars"]
    expect("train/loss" in tags, True)
    for tag in tags:
        expect([(step, values[tag]) for step, values in sorted(history.items()) if tag in values],
               [(event.step, event.value) for event in reader.Scalars(tag)])
    said = subprocess.run([str(word) for word in (*within, "-m", "wandb", "sync", "--dry-run", "--yes")], capture_output=True, text=True,
                          timeout=COMMAND_SECONDS_MAX, check=True)
    expect("Would sync 1 run(s)" in said.stdout + said.stderr, True)


def main():
    passed, failed = 0, 0
    for name, test in [item for item in globals().items() if item[0].startswith("test_")]:
        with tempfile.TemporaryDirectory(prefix="tj-events-") as folder:
            try:
                test(pathlib.Path(folder))
                passed += 1
                print(f"ok     {name}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--read"]:
        main()
    with_tensorboard()
