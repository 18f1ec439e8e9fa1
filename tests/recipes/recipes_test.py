"""The recipes of docs/recipes.md: each manifest of manifests/examples/recipes trains on two workers, with the real packages.

usage: recipes_test.py FOLDER_OF_PYTHON [NAME...]
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support import unittests  # noqa: E402
from support.places import BUILD, ROOT  # noqa: E402

RECIPES = ROOT / "manifests/examples/recipes"
PYTHON_FOLDER = ""
DEADLINE_S = 240
LOSS_MAX = 0.1  # of guessing 0 everywhere it is 0.5: the mean of the squared sine


class Recipes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="recipes-"))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(RECIPES, self.folder, dirs_exist_ok=True)

    def change(self, name, old, new):
        """In a copy of a recipe's file, which must have it."""
        path = self.folder / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def output_of(self, name):
        """What `tj run` printed; it must have succeeded."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("TJ_", "PET_", "PYTHON"))}
        env |= {"PATH": f"{PYTHON_FOLDER}:{BUILD / 'cli'}:/usr/local/bin:/usr/bin:/bin", "NO_COLOR": "1", "HOME": str(self.folder)}
        job = subprocess.Popen(["tj", "run", "-f", f"{name}.yaml"], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            output, _ = job.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGINT)  # tj stops its workers
            self.fail(f"{name} did not end in {DEADLINE_S} s:\n{job.communicate(timeout=60)[0]}")
        self.assertEqual(job.returncode, 0, output)
        return output

    def check_losses(self, output, count):
        """Rank 0 alone tells of `count` losses, and has learnt the sine."""
        losses = [float(loss) for loss in re.findall(r"^\[worker-0\] (?:epoch|step) \d+ loss ([\d.]+)$", output, re.MULTILINE)]
        self.assertEqual(len(losses), count, output)
        self.assertLess(losses[-1], LOSS_MAX, output)
        self.assertNotIn("] epoch", output.replace("[worker-0] epoch", ""))

    def check_ranks(self, output, text, ranks_by_worker):
        """Each rank says it once. Those of one worker share a pipe, to which an unbuffered Python writes a line and its end apart: two may stand in
        one line."""
        for worker, ranks in enumerate(ranks_by_worker):
            said = "\n".join(re.findall(rf"^\[worker-{worker}\] (.*)$", output, re.MULTILINE))
            self.assertEqual(sorted(int(rank) for rank in re.findall(rf"rank (\d+) {re.escape(text)}", said)), ranks, output)

    def test_pytorch(self):
        output = self.output_of("pytorch")
        self.check_ranks(output, "of 2 begins with epoch 0", [[0], [1]])
        self.check_losses(output, 20)

    def test_pytorch_goes_on_from_its_checkpoint_after_a_restart(self):
        loop = "        sampler.set_epoch(epoch)\n"
        crash = '        if (rank, epoch, os.environ["TRAININGJOB_ATTEMPT"]) == (1, 5, "0"):\n            os._exit(1)\n'
        self.change("train_ddp.py", loop, crash + loop)
        self.change("pytorch.yaml", "spec:\n", "spec:\n  runPolicy: {restartBackoffSeconds: 0}\n")
        output = self.output_of("pytorch")
        self.check_ranks(output, "of 2 begins with epoch 0", [[0], [1]])
        self.assertIn("job pytorch: Restarting: worker 1 ", output)
        self.check_ranks(output, "of 2 begins with epoch 5", [[0], [1]])
        self.check_losses(output, 20)

    def test_torchrun(self):
        output = self.output_of("torchrun")
        self.check_ranks(output, "of 4 begins with epoch 0", [[0, 1], [2, 3]])
        self.check_losses(output, 20)

    def test_torchrun_may_be_replaced_by_the_trainers_launcher(self):
        self.change("torchrun.yaml", "command: [torchrun, train_ddp.py]", "command: [trainer, launch, --, python3, train_ddp.py]")
        output = re.sub(r"\] \[rank \d+\] ", "] ", self.output_of("torchrun"))
        self.check_ranks(output, "of 4 begins with epoch 0", [[0, 1], [2, 3]])
        self.check_losses(output, 20)

    def test_deepspeed(self):
        output = self.output_of("deepspeed")
        self.check_ranks(output, "of 2 has ZeRO stage 2", [[0], [1]])
        self.check_losses(output, 10)

    def test_lightning(self):
        output = self.output_of("lightning")
        self.check_ranks(output, "of 2", [[0], [1]])
        self.check_losses(output, 10)

    def test_accelerate(self):
        output = self.output_of("accelerate")
        self.check_ranks(output, "of 2", [[0], [1]])
        self.check_losses(output, 10)

    def test_jax(self):
        output = self.output_of("jax")
        self.check_ranks(output, "of 2 sees 2 devices", [[0], [1]])
        self.check_losses(output, 10)

    def test_each_recipe_is_run_here(self):
        names = {path.stem for path in RECIPES.glob("*.yaml")}
        self.assertEqual({name.split("_")[1] for name in dir(self) if name.startswith("test_")} - {"each"}, names)


def main(arguments):
    global PYTHON_FOLDER
    PYTHON_FOLDER = arguments[0]
    loader, this = unittest.defaultTestLoader, sys.modules["__main__"]
    suite = loader.loadTestsFromNames(arguments[1:], this) if arguments[1:] else loader.loadTestsFromModule(this)
    return unittests.tell(suite)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
