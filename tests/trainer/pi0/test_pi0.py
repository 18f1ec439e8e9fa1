"""A small pi0 and pi05 through `trainer train`: the same bits on any number of ranks, at each stage of ZeRO, resumed and recomputed."""

import json
import pathlib
import shutil
import struct
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/trainer", "tests/trainer/engine")]
from engine import bits_of  # noqa: E402
from ranked_training import TRAINER, RankedTraining, engine_of  # noqa: E402
from support.processes import environment_of_a_program  # noqa: E402

KINDS = ("pi0-nano", "pi05-nano")
STEPS = 6


class Pi0(RankedTraining):
    FLAGS = ("--image-size", "28", "--prompt-tokens", "4", "--horizon", "4", "--action-dim", "4", "--vocabulary", "8", "--batch-size", "16",
             "--lr", "0.003", "--steps", str(STEPS))

    def setUp(self):
        super().setUp()
        self.data.write_text("4096")

    def train(self, out, kind, *flags, **more):
        self.MODEL = kind
        return super().train(out, *flags, **more)

    def test_the_bits_are_the_same_on_any_number_of_ranks_at_each_stage(self):
        """A few of the pairs: all of them are for trainer_zero_test."""
        for kind, places in zip(KINDS, (((4, 0), (2, 1), (4, 2), (1, 3), (2, 3)), ((2, 0), (4, 3))), strict=True):
            flags = ("--deterministic", "--accumulation", "2")
            self.train(f"{kind}-alone", kind, *flags)
            wanted = self.losses(f"{kind}-alone")
            self.assertEqual(len(wanted), STEPS)
            self.assertLess(wanted[STEPS], wanted[1])
            for ranks, stage in places:
                out = f"{kind}-{ranks}-{stage}"
                self.train(out, kind, *flags, "--zero", stage, ranks=ranks)
                self.assertEqual(self.losses(out), wanted, out)

    def assert_same_bits(self, one, other):
        self.assertEqual(self.losses(one), self.losses(other), other)
        for stem in ("model", "optimizer"):
            left, right = (bits_of(self.folder / out / f"step-{STEPS:06}", stem) for out in (one, other))
            self.assertEqual(left, right, f"{stem} of {one} and {other}")

    def test_groups_of_any_size_have_the_same_bits_also_on_other_ranks_half_way(self):
        flags = ("--deterministic", "--schedule", "constant", "--warmup-steps", "0")
        self.train("whole", "pi0-nano", *flags)
        for ranks, group in ((2, 1), (4, 2), (4, 4)):
            out = f"{ranks}-{group}"
            self.train(out, "pi0-nano", *flags, "--zero", "3", "--zero-persist", "0", "--zero-group", group, ranks=ranks)
            self.assert_same_bits("whole", out)
        for ranks, stage, group, steps in ((4, 3, 2, 2), (1, 3, 1, 3), (2, 1, 2, 4), (4, 3, 4, STEPS)):
            resume = [] if steps == 2 else ["--resume"]
            self.train("parts", "pi0-nano", *flags, "--zero", stage, "--zero-group", group, "--steps", steps, *resume, ranks=ranks)
        self.assert_same_bits("whole", "parts")

    def test_overlapped_training_agrees_within_rounding_and_recomputed_in_all_bits(self):
        for kind, places in zip(KINDS, (((1, 0, True), (2, 2, False), (2, 3, True)), ((1, 0, True), (2, 0, True), (2, 3, False))), strict=True):
            self.train(f"{kind}-alone", kind)
            wanted = self.losses(f"{kind}-alone")
            for ranks, stage, recomputes in places:
                out = f"{kind}-{ranks}-{stage}-{recomputes}"
                self.train(out, kind, "--zero", stage, *(["--recompute"] if recomputes else []), ranks=ranks)
                for step, loss in self.losses(out).items():
                    if ranks == 1:
                        self.assertEqual(loss, wanted[step], f"{out}, step {step}")
                    else:
                        self.assertAlmostEqual(loss, wanted[step], delta=1e-4 * loss, msg=f"{out}, step {step}")

    def test_a_resumed_run_has_the_bits_of_one_that_went_through(self):
        for kind, ranks, stage in (("pi0-nano", 1, 0), ("pi05-nano", 2, 3)):
            flags = ("--zero", stage, "--save-every", "3", "--keep", "0", "--min-lr", "0.001", "--warmup-steps", "2")
            whole, parts = f"whole-{kind}", f"parts-{kind}"
            self.train(whole, kind, *flags, ranks=ranks)
            shutil.copytree(self.folder / whole / "step-000003", self.folder / parts / "step-000003")
            self.train(parts, kind, *flags, "--resume", ranks=ranks)
            self.assertEqual(self.losses(parts), {step: loss for step, loss in self.losses(whole).items() if step > 3})

    def evaluations(self, out):
        return [line for line in self.metrics(out) if line.get("event") == "eval"]

    def test_an_evaluation_is_the_same_on_any_number_of_ranks_and_with_shared_weights(self):
        held_out = self.folder / "held-out"
        held_out.write_text("64")
        flags = ("--eval-data", held_out, "--eval-every", "3")
        seen = {}
        for ranks, stage in ((1, 0), (2, 0), (4, 3)):
            out = f"eval-{ranks}-{stage}"
            said, _ = self.train(out, "pi0-nano", "--deterministic", "--zero", stage, *flags, ranks=ranks)
            self.assertRegex(said, r"eval after step 3 \| loss \S+ \| action error \d\.\d+ \| ")
            lines = self.evaluations(out)
            self.assertEqual(len(lines), 2)
            self.assertNotEqual(lines[0]["eval_loss"], lines[1]["eval_loss"])
            seen[out] = [(line["eval_loss"], line["eval_action_error"]) for line in lines]
        for out, numbers in seen.items():
            self.assertEqual(numbers, seen["eval-1-0"], out)
        # Each rank samples all of its part at once: the same within rounding.
        self.train("overlapped", "pi0-nano", "--zero", 3, *flags, ranks=2)
        for line, numbers in zip(self.evaluations("overlapped"), seen["eval-1-0"], strict=True):
            for name, number in zip(("eval_loss", "eval_action_error"), numbers, strict=True):
                self.assertAlmostEqual(line[name], number, delta=1e-3 * number, msg=name)

    def test_the_error_of_sampled_actions_falls(self):
        held_out = self.folder / "held-out"
        held_out.write_text("64")
        self.train("out", "pi0-nano", "--steps", "60", "--eval-every", "20", "--eval-data", held_out, "--zero", "3", ranks=2)
        errors = [line["eval_action_error"] for line in self.evaluations("out")]
        self.assertEqual(len(errors), 3)
        self.assertLess(errors[-1], errors[0])
        self.assertFalse(any("action_error" in line for line in self.metrics("out")), "steps don't tell it")

    def test_half_precision_trains(self):
        self.train("half", "pi05-nano", "--precision", "bf16", "--recompute")
        self.train("full", "pi05-nano")
        for step, loss in self.losses("full").items():
            self.assertAlmostEqual(self.losses("half")[step], loss, delta=0.1 * loss)

    def names_in(self, path):
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            return {name for name in json.loads(file.read(length)) if name != "__metadata__"}

    def test_a_checkpoint_is_what_lerobot_reads_and_what_another_training_begins_with(self):
        self.train("out", "pi05-nano")
        checkpoint = self.folder / "out" / f"step-{STEPS:06}"
        config = json.loads((checkpoint / "config.json").read_text())
        self.assertEqual((config["type"], config["chunk_size"], config["max_action_dim"], config["tokenizer_max_length"]), ("pi05", 4, 4, 4))
        names = self.names_in(checkpoint / "model.safetensors")
        expert = "paligemma_with_expert.gemma_expert.model."
        for name in ("time_mlp_out.bias", "action_in_proj.weight", f"{expert}norm.dense.weight",
                     "paligemma_with_expert.paligemma.model.language_model.norm.weight"):
            self.assertIn(name, names)
        self.train("again", "pi05-nano", "--init-from", checkpoint, "--steps", "1")
        self.assertLess(self.losses("again")[1], self.losses("out")[1])
        _, err = self.train("other", "pi0-nano", "--init-from", checkpoint, code=78)
        self.assertIn("is a pi05", err)
        _, err = self.train("wide", "pi05-nano", "--init-from", checkpoint, "--vocabulary", "9", code=78)
        self.assertIn("has 8", err)
        command = [TRAINER, "export", "--from", checkpoint, "--to", self.folder / "all.safetensors"]
        self.finish(self.spawn(list(map(str, command)), environment_of_a_program()))
        self.assertEqual(self.names_in(self.folder / "all.safetensors"), names)

    def test_a_plan_needs_no_data(self):
        command = [engine_of(TRAINER), "plan", "--model", "pi0-nano", "--world", 2, "--link", "1gbps", "--json"]
        out, _ = self.finish(self.spawn(list(map(str, command)), environment_of_a_program()))
        # Without what no gradient reaches.
        self.assertEqual(json.loads(out)["parameters"], 295_448)


if __name__ == "__main__":
    unittest.main()
