"""Runs the real trainer-engine: one process, or several ranks as a launcher would start them."""

import collections
import json
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[1:3]]
from support.ports import free_port  # noqa: E402
from support.processes import ProcessTest, environment_of_a_program  # noqa: E402

ENGINE = os.environ.get("TJ_ENGINE", "")
BAD_DISK = os.environ.get("TJ_BAD_DISK", "")  # bad_disk.cc

# A few words in a fixed order: quick to learn, as compressible as it gets without being constant.
TEXT = "the quick brown fox jumps over the lazy dog and runs away. " * 400


SLICE_NAME = re.compile(r"(.+)\[(\d+):(\d+)\]")  # of a tensor that ranks have written in parts
# What a run leaves beside its checkpoints.
REPORTS = ["ledger.json", "logs", "metrics.jsonl"]


class EngineTest(ProcessTest):
    GROUPS = ("model", "optimizer")  # of tensors in a checkpoint
    STYLE = ("--log-style", "trainer")  # the variables of several ranks are those of a platform, which has lines of its own

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-engine-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "text"
        self.data.mkdir()
        (self.data / "a.txt").write_text(TEXT)
        self.out = self.folder / "out"
        self.port = free_port()

    def environment(self, rank, world_size, **more):
        words = {"TRAININGJOB_TERMINATION_LOG": str(self.folder / f"words-{rank}")}
        environment = environment_of_a_program("TMPDIR", **words)
        if world_size > 1:
            environment.update(
                WORLD_SIZE=str(world_size), RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port)
            )
        environment.update(more)
        return environment

    def start(self, *flags, rank=0, world_size=1, environment=None, within=(), **popen):
        """`within`: a command that runs another one, such as nsenter."""
        command = [*within, ENGINE, "train", "--data", str(self.data), "--out", str(self.out), *self.STYLE, *map(str, flags)]
        return self.spawn(command, self.environment(rank, world_size, **(environment or {})), **popen)

    def train(self, *flags, code=0, **start):
        return self.finish(self.start(*flags, **start), code)

    def train_ranks(self, world_size, *flags, code=0):
        ranks = [self.start(*flags, rank=rank, world_size=world_size) for rank in range(world_size)]
        return [self.finish(rank, code) for rank in ranks]

    def cause(self, err):
        """The last thing a failing program prints."""
        return err.strip().splitlines()[-1] if err.strip() else ""

    def words(self, rank=0):
        return json.loads((self.folder / f"words-{rank}").read_text())

    def metrics(self, out=None):
        return [json.loads(line) for line in ((out or self.out) / "metrics.jsonl").read_text().splitlines()]

    def losses(self, out=None):
        return {line["step"]: line["loss"] for line in self.metrics(out) if "loss" in line}

    def assert_same_bits(self, one, other, step):
        """All losses, and the groups of tensors that `step` has left."""
        self.assertEqual(self.losses(one), self.losses(other))
        for stem in self.GROUPS:
            left, right = (bits_of(out / f"step-{step:06}", stem) for out in (one, other))
            self.assertEqual(left, right, f"{stem} of {one.name} and {other.name}")

    def assert_resumes_on_any_ranks_and_groups(self, *flags):
        """Six steps on one rank, and the same on four in groups, then two, then one, have the same bits."""
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.train(*flags, "--steps", 6, "--out", whole)
        self.train_ranks(4, *flags, "--zero", 3, "--zero-group", 2, "--steps", 2, "--out", parts)
        self.train_ranks(2, *flags, "--zero", 1, "--steps", 4, "--out", parts, "--resume")
        self.train(*flags, "--steps", 6, "--out", parts, "--resume")
        self.assert_same_bits(whole, parts, 6)

    def events(self):
        return [line for line in self.metrics() if "event" in line]


def read_safetensors(path):
    """An independent reader: {name: (dtype, shape, bytes)} and the metadata."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    metadata = header.pop("__metadata__", {})
    covered = 0
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin == covered, f"{name} begins at {begin}, the one before ended at {covered}"
        covered = end
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
    assert covered == len(data), f"{covered} bytes of tensors in {len(data)} of data"
    return tensors, metadata


def tensors_of(folder, stem):
    """All tensors of a group, by whatever files the index names."""
    index = folder / f"{stem}.safetensors.index.json"
    if not index.exists():
        return read_safetensors(folder / f"{stem}.safetensors")[0]
    document = json.loads(index.read_text())
    tensors = {}
    for file in sorted(set(document["weight_map"].values())):
        found, metadata = read_safetensors(folder / file)
        assert metadata["format"] == "pt"
        assert all(document["weight_map"][name] == file for name in found)
        tensors.update(found)
    assert set(tensors) == set(document["weight_map"])
    assert document["metadata"]["total_size"] == sum(len(raw) for _, _, raw in tensors.values())
    return joined(tensors)


def joined(tensors):
    """With the slices of a tensor put together: flat, as their names tell no shape."""
    whole, slices = {}, collections.defaultdict(list)
    for name, (dtype, shape, raw) in tensors.items():
        if found := SLICE_NAME.fullmatch(name):
            begin, end = int(found[2]), int(found[3])
            assert shape == [end - begin], name
            slices[found[1]].append((begin, end, dtype, raw))
        else:
            whole[name] = (dtype, shape, raw)
    for name, parts in slices.items():
        parts.sort()
        assert [begin for begin, *_ in parts] == [0, *(end for _, end, *_ in parts[:-1])], f"{name}: slices don't join"
        whole[name] = (parts[0][2], [parts[-1][1]], b"".join(raw for *_, raw in parts))
    return whole


def bits_of(folder, stem):
    return {name: (dtype, raw) for name, (dtype, _, raw) in tensors_of(folder, stem).items()}
