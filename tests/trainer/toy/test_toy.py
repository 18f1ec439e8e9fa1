"""The smallest workload, through the same `trainer train` as all others: what the seam promises, shown without GPT-2."""

import json
import math
import pathlib
import random
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/docs", "tests/trainer", "tests/trainer/engine")]
import console  # noqa: E402
import markdown  # noqa: E402
from engine import tensors_of  # noqa: E402
from ranked_training import TRAINER, RankedTraining, engine_of  # noqa: E402
from support.processes import environment_of_a_program  # noqa: E402

WEIGHTS, BIAS = (2.0, -1.0, 0.5), 3.0


def line_of(rng):
    features = [rng.uniform(-1, 1) for _ in WEIGHTS]
    target = BIAS + sum(weight * feature for weight, feature in zip(WEIGHTS, features, strict=True))
    return ",".join(f"{number:.6f}" for number in [*features, target])


class Toy(RankedTraining):
    MODEL = "toy"

    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        self.data = self.folder / "rows.csv"
        self.data.write_text("\n".join(line_of(rng) for _ in range(203)) + "\n")

    def test_it_learns_on_any_number_of_ranks_at_each_stage_with_the_same_bits(self):
        flags = ("--deterministic", "--batch-size", "16", "--steps", "40", "--accumulation", "2")
        self.train("alone", *flags)
        wanted = self.losses("alone")
        self.assertLess(wanted[40], wanted[1] / 4)
        for ranks in (1, 2, 4):
            for stage in range(4):
                out = f"{ranks}-{stage}"
                self.train(out, *flags, "--zero", stage, ranks=ranks)
                self.assertEqual(self.losses(out), wanted, f"{ranks} ranks, stage {stage}")
        for ranks, group in ((2, 1), (4, 1), (4, 2), (4, 4)):
            out = f"{ranks}-in-groups-of-{group}"
            self.train(out, *flags, "--zero", 2, "--zero-group", group, ranks=ranks)
            self.assertEqual(self.losses(out), wanted, out)

    def test_what_is_frozen_is_not_trained(self):
        for ranks, flags in ((1, ()), (2, ()), (2, ("--zero", 3)), (4, ("--zero", 2, "--zero-group", 2))):
            out = "-".join(map(str, ("frozen", ranks, *flags)))
            said, _ = self.train(out, "--freeze", "bias", "--steps", 20, *flags, ranks=ranks)
            tensors = tensors_of(self.folder / out / "step-000020", "model")
            self.assertEqual(tensors["bias"][2], bytes(4))
            self.assertNotEqual(tensors["weight"][2], bytes(4 * len(WEIGHTS)))
            self.assertEqual(set(tensors_of(self.folder / out / "step-000020", "optimizer")), {"exp_avg.weight", "exp_avg_sq.weight"})
            self.assertRegex(said, r"parameters +3 ")

    def plan(self, *flags):
        command = [engine_of(TRAINER), "plan", "--model", "toy", "--world", 2, "--link", "1gbps", *flags]
        return self.spawn(list(map(str, command)), environment_of_a_program())

    def test_the_planner_asks_for_its_data_and_knows_it_by_it(self):
        _, err = self.finish(self.plan(), 78)
        self.assertIn("--data: is missing", err)
        out, _ = self.finish(self.plan("--data", self.data, "--json"))
        plan = json.loads(out)
        self.assertEqual(plan["parameters"], len(WEIGHTS) + 1)
        self.assertEqual(plan["step"]["sent_bytes"], 4 * plan["parameters"])

    def test_overlapped_training_agrees_within_rounding(self):
        self.train("alone")
        for ranks, stage in ((2, 0), (4, 0), (2, 2), (4, 3)):
            out = f"{ranks}-{stage}"
            self.train(out, "--zero", stage, ranks=ranks)
            for step, loss in self.losses("alone").items():
                self.assertAlmostEqual(self.losses(out)[step], loss, delta=1e-4 * (1 + loss))

    def test_a_resumed_run_has_the_bits_of_one_that_went_through(self):
        for ranks, stage in ((1, 0), (2, 0), (2, 3)):
            whole, parts = f"whole-{ranks}-{stage}", f"parts-{ranks}-{stage}"
            flags = ("--zero", stage, "--save-every", "10", "--keep", "0", "--min-lr", "0.01", "--warmup-steps", "2")
            self.train(whole, *flags, ranks=ranks)
            shutil.copytree(self.folder / whole / "step-000020", self.folder / parts / "step-000020")
            self.train(parts, *flags, "--resume", ranks=ranks)
            later = {step: loss for step, loss in self.losses(whole).items() if step > 20}
            self.assertEqual(self.losses(parts), later)

    def test_the_metric_is_one_of_all_ranks_in_lines_and_files(self):
        rng = random.Random(2)
        held_out = self.folder / "eval.csv"
        held_out.write_text("\n".join(line_of(rng) for _ in range(64)) + "\n")
        said, _ = self.train("out", "--eval-data", held_out, "--eval-batches", "8", ranks=2)
        steps = [line for line in self.metrics("out") if "loss" in line]
        for step in steps:
            self.assertAlmostEqual(step["rmse"], math.sqrt(step["loss"]), places=9)
            self.assertGreater(step["samples_per_second"], 0)
        (evaluated,) = [line for line in self.metrics("out") if line.get("event") == "eval"]
        self.assertEqual(evaluated["samples"], 64)
        self.assertAlmostEqual(evaluated["eval_rmse"], math.sqrt(evaluated["eval_loss"]), places=9)
        self.assertRegex(said, r"step 50/50 \| loss \d+\.\d{4} \| RMSE \d+\.\d{4} \| lr \S+ \| \d+ samples/s \|")
        self.assertRegex(said, r"eval after step 50 \| loss \d+\.\d{4} \| RMSE \d+\.\d{4} \| 64 samples in")

    def test_lines_may_be_in_the_words_that_a_platform_looks_for(self):
        said, _ = self.launch("out", "--steps", "2", "--log-style", "platform", ranks=2)
        self.assertRegex(said, r"\[rank 0\] Step 2/2 \| Loss: \d+\.\d{4} \| RMSE: \d+\.\d{4} \| lr ")
        self.assertNotIn("step 2/2", said)
        _, err = self.train("out", "--log-style", "loud", code=78)
        self.assertIn('--log-style: is "loud"; it must be trainer or platform', err)

    def test_what_it_can_not_use_is_named(self):
        self.data.write_text("1,2,3\n1,two,3\n")
        _, err = self.train("out", code=65)
        self.assertIn(f"--data {self.data}: line 2 has no number: two", err)
        self.data.write_text("1,2,3\n")
        _, err = self.train("out", "--spread", "wide", code=78)
        self.assertIn('--spread: is "wide"; it must be a number from 0 to 10', err)
        _, err = self.train("out", "--layers", "2", code=64)
        self.assertIn("--layers", err)
        _, err = self.train("out", "--init-from", "weights", code=65)
        self.assertIn("this model does not begin with weights of other files", err)

    def test_the_walk_through_is_made_of_this_program_and_shows_what_it_prints(self):
        fences = markdown.fences((ROOT / "docs" / "adding-a-workload.md").read_text())
        program = (HERE / "toy.cc").read_text()
        pieces = [fence for fence in fences if fence.info == "cpp"]
        self.assertGreater(len(pieces), 5)
        for piece in pieces:
            self.assertIn(piece.text.rstrip(), program, f"line {piece.line}")
        environment = environment_of_a_program("TMPDIR")
        environment["PATH"] = f"{pathlib.Path(TRAINER).parent}:{environment['PATH']}"
        blocks = [fence for fence in fences if fence.info == "console"]
        self.assertEqual(len(blocks), 1)
        for command, expected in console.steps(blocks[0].text):
            printed = console.run(command, self.folder, environment)
            self.assertTrue(console.matches(expected, printed), printed)

    def test_a_check_opens_the_data_as_training_does(self):
        command = [TRAINER, "check", "--model", "toy", "--data", str(self.data)]
        out, _ = self.finish(self.spawn(command, environment_of_a_program("TMPDIR")))
        self.assertIn(f"{self.data}: 203 rows", out)
        self.data.write_text("1,two\n")
        out, _ = self.finish(self.spawn(command, environment_of_a_program("TMPDIR")), 78)
        self.assertIn(f"--data {self.data}: line 1 has no number: two; it must be there on every node", out)

    def test_a_checkpoint_of_another_model_is_refused(self):
        self.train("out")
        text = self.folder / "text"
        text.mkdir()
        (text / "a.txt").write_text("the quick brown fox jumps over the lazy dog. " * 100)
        self.data = text
        _, err = self.train("out", "--model", "gpt2-nano", "--resume", code=78)
        self.assertIn("is of another kind of model", err)


if __name__ == "__main__":
    unittest.main()
