"""A training as a person starts it: `trainer launch` with some ranks, and what it leaves."""
import json
import os
import pathlib
import shutil
import tempfile

from support.processes import ProcessTest, environment_of_a_program

TRAINER = os.environ.get("TJ_TRAINER", "")
PROGRAM = os.environ.get("TJ_PROGRAM", "")  # with the workloads that people have


class LaunchedTraining(ProcessTest):
    MODEL = ""
    FLAGS = ()  # of each run

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-launched-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"

    def train(self, out, *flags, ranks=1, code=0, **variables):
        command = [TRAINER, "launch", "--nproc", ranks, "--", TRAINER, "train", "--model", self.MODEL, "--data", self.data,
                   "--out", self.folder / out, "--log-dir", "off", "--tensorboard", "off", *self.FLAGS, *flags]
        return self.finish(self.spawn(list(map(str, command)), environment_of_a_program("TMPDIR", **variables)), code)

    def run_trainer(self, *words, code=0, program=PROGRAM, **variables):
        return self.finish(self.spawn([program, *map(str, words)], environment_of_a_program("TMPDIR", **variables)), code)

    def metrics(self, out):
        return [json.loads(line) for line in (self.folder / out / "metrics.jsonl").read_text().splitlines()]

    def of_steps(self, out, key):
        return {line["step"]: line[key] for line in self.metrics(out) if "loss" in line}

    def losses(self, out):
        return self.of_steps(out, "loss")
