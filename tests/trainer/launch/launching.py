"""What the tests of the real `trainer launch` share: a folder, the program in a clean environment, what it leaves behind.
Every wait is a condition with a deadline; nothing sleeps for a fixed time."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))
from support.processes import ProcessTest  # noqa: E402
from support.waiting import until  # noqa: E402

TRAINER = os.path.abspath(sys.argv[1])
DEADLINE_S = 30
CONTRACT = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "job-worker-0.job", "MASTER_PORT": "29500"}
OURS = re.compile(r"^(WORLD_SIZE|RANK|LOCAL_|GROUP_|ROLE_|MASTER_|NNODES|NODE_RANK|NPROC_PER_NODE|PET_"
                  r"|TRAININGJOB_|TORCHELASTIC_|OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES|SLURM)")
SLURM_TASK = {"SLURM_JOB_ID": "884711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_LOCALID": "1",
              "SLURM_NODEID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2",
              "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_STEP_NODELIST": "node[003,007]"}


class Launch(ProcessTest):
    SECONDS_MAX = DEADLINE_S

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="launch-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.words = os.path.join(self.folder, "termination-log")

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments, env=None, wrapper=(), **more):
        clean = {name: value for name, value in os.environ.items() if not OURS.match(name)}
        clean.update({"TRAININGJOB_TERMINATION_LOG": self.words, "TMPDIR": self.folder, "D": self.folder,
                      "CUDA_VISIBLE_DEVICES": ""})  # the machine's own GPUs are no part of a test
        for name, value in (env or {}).items():
            clean.pop(name, None)
            if value is not None:
                clean[name] = value
        return self.spawn([*wrapper, TRAINER, *arguments], clean, text=False, **more)

    def finish(self, process, expect):
        out, err = super().finish(process, expect)
        return out.decode(), err.decode()

    def run_launch(self, *arguments, expect=0, **more):
        return self.finish(self.start("launch", *arguments, **more), expect)

    def wait_for_files(self, *names):
        """The files' texts, once each ends in a newline."""
        def read():
            texts = []
            for name in names:
                try:
                    with open(self.path(name), encoding="utf-8") as file:
                        texts.append(file.read())
                except FileNotFoundError:
                    return None
            return texts if all(text.endswith("\n") for text in texts) else None
        return [text.strip() for text in until(DEADLINE_S, f"files {names}", read)]

    def outcome(self):
        with open(self.words, encoding="utf-8") as file:
            return json.load(file)

    def last_line(self, err):
        return re.sub(r"pid \d+", "pid P", err.strip().splitlines()[-1])


def main():
    """One test, or all. Exit code 77: the one was skipped."""
    names = [f"*.{name}" for name in sys.argv[2:]]
    argv = [sys.argv[0], "-v", *(word for name in names for word in ("-k", name))]
    program = unittest.main(argv=argv, exit=False)
    if not program.result.wasSuccessful() or not program.result.testsRun:
        sys.exit(1)
    sys.exit(77 if program.result.skipped and names else 0)
