"""Trainings of some ranks on this machine, and what they leave."""
import json
import os
import pathlib
import shutil
import tempfile

from support.ports import free_port
from support.processes import ProcessTest, environment_of_a_program

TRAINER = os.environ.get("TJ_TRAINER", "")
PROGRAM = os.environ.get("TJ_PROGRAM", "")  # with the workloads that people have


def engine_of(trainer):
    """What `trainer train`, and each command that needs a model, becomes."""
    return pathlib.Path(trainer).with_name("trainer-engine")


class RankedTraining(ProcessTest):
    MODEL = ""
    FLAGS = ()  # of each run

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-training-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"

    def words(self, program, out, *flags):
        return [program, "train", "--model", self.MODEL, "--data", self.data, "--out", self.folder / out, "--log-dir", "off",
                "--tensorboard", "off", *self.FLAGS, *flags]

    def train(self, out, *flags, ranks=1, code=0, **variables):
        """The engines that `trainer launch` would start; (stdout, stderr) of rank 0."""
        style = [] if "--log-style" in flags else ["--log-style", "trainer"]
        words = self.words(engine_of(TRAINER), out, *style, *flags)
        shared = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
        started = []
        for rank in range(ranks):
            told = {name: str(value) for name, value in (shared | {"RANK": rank, "LOCAL_RANK": rank} | variables).items()}
            started.append(self.spawn(list(map(str, words)), environment_of_a_program("TMPDIR", **told)))
        return [self.finish(process, code) for process in started][0]

    def launch(self, out, *flags, ranks):
        """The same as a person starts it: what the launcher prints of all ranks."""
        command = [TRAINER, "launch", "--nproc", ranks, "--", *self.words(TRAINER, out, *flags)]
        return self.finish(self.spawn(list(map(str, command)), environment_of_a_program("TMPDIR")))

    def run_trainer(self, *words, code=0, program=PROGRAM, **variables):
        """`trainer prepare` is itself; other commands become the engine."""
        words = [program if words[0] == "prepare" else engine_of(program), *words]
        return self.finish(self.spawn(list(map(str, words)), environment_of_a_program("TMPDIR", **variables)), code)

    def metrics(self, out):
        return [json.loads(line) for line in (self.folder / out / "metrics.jsonl").read_text().splitlines()]

    def of_steps(self, out, key):
        return {line["step"]: line[key] for line in self.metrics(out) if "loss" in line}

    def losses(self, out):
        return self.of_steps(out, "loss")
