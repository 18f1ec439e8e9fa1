"""A nano Qwen2.5-VL with a VGGT through `trainer train`: the same bits on any number of ranks and at each stage of ZeRO, with pictures on all,
some and none of the ranks; resumed, killed and recomputed; begun with weights of other files, and with the variables of other start scripts."""

import json
import pathlib
import shutil
import signal
import struct
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/trainer")]
from ranked_training import TRAINER, RankedTraining, engine_of  # noqa: E402
from support.processes import environment_of_a_program  # noqa: E402
from support.waiting import until  # noqa: E402

STEPS = 4


class Qwen(RankedTraining):
    MODEL = "qwen-vggt-nano"
    FLAGS = ("--batch-size", "8", "--lr", "0.003", "--steps", str(STEPS))

    def setUp(self):
        super().setUp()
        self.scenes()

    def scenes(self, **said):
        self.data.write_text(json.dumps({"count": 4096} | said))

    def test_the_bits_are_the_same_on_any_number_of_ranks_at_each_stage(self):
        self.scenes(text_percent=50)
        flags = ("--deterministic", "--accumulation", "2")
        self.train("alone", *flags)
        wanted = self.losses("alone")
        self.assertEqual(len(wanted), STEPS)
        self.assertLess(wanted[STEPS], wanted[1])
        for ranks, stage, group in ((4, 0, None), (1, 3, None), (2, 1, None), (2, 2, None), (4, 3, 2)):
            out = f"{ranks}-{stage}-{group}"
            self.train(out, *flags, "--zero", stage, *(["--zero-group", group] if group else []), ranks=ranks)
            self.assertEqual(self.losses(out), wanted, out)

    def test_ranks_without_pictures_hold_nobody_up(self):
        # Of one sample a rank has in a pass most have none: some ranks have pictures, and others not.
        at_each_stage = ((4, 0, False), (2, 0, False), (4, 1, False), (4, 2, False), (2, 2, False), (4, 3, True))
        for share, steps, places in ((70, 6, at_each_stage), (100, 2, at_each_stage[-1:])):
            self.scenes(text_percent=share)
            flags = ("--batch-size", "4", "--steps", steps)
            self.train(f"alone-{share}", *flags, "--accumulation", "4")
            wanted = self.losses(f"alone-{share}")
            for ranks, stage, recomputes in places:
                out = f"{share}-{ranks}-{stage}"
                self.train(out, *flags, "--accumulation", 4 // ranks, "--zero", stage, *(["--recompute"] if recomputes else []), ranks=ranks)
                for step, loss in self.losses(out).items():
                    self.assertAlmostEqual(loss, wanted[step], delta=1e-3 * loss, msg=f"{out}, step {step}")

    def test_recomputed_training_has_the_same_bits(self):
        self.train("kept")
        self.train("recomputed", "--recompute")
        self.assertEqual(self.losses("recomputed"), self.losses("kept"))

    def test_a_vggt_whose_frames_are_not_kept_gives_the_same_bits(self):
        self.train("kept")
        self.train("anew", "--vggt-cache", "0")
        self.assertEqual(self.losses("anew"), self.losses("kept"))
        self.train("alone", "--vggt", "off")
        self.assertNotEqual(self.losses("alone"), self.losses("kept"))

    def test_vggt_looks_a_pass_ahead_and_changes_no_bit(self):
        held_out = self.folder / "held-out"
        held_out.write_text(json.dumps({"count": 16, "first": 100_000}))
        self.scenes(text_percent=50)
        flags = ("--batch-size", "6", "--accumulation", "3", "--eval-data", held_out, "--eval-every", "1", "--save-every", "2", "--keep", "0")
        self.train("ahead", *flags, TJ_PASSES=self.folder / "ahead.txt")
        self.train("alone", *flags, TJ_PASSES=self.folder / "alone.txt", TJ_WITHOUT_AHEAD="1")
        self.assertEqual(self.metrics_of_all("ahead"), self.metrics_of_all("alone"))
        asked = [line.split() for line in (self.folder / "ahead.txt").read_text().splitlines()]
        self.assertIn("evaluation", {what for what, _ in asked})
        steps = [event for event in asked if event[0] != "evaluation"]
        self.assertEqual([what for what, _ in steps], ["ahead", "pass", "ahead", "pass", "pass"] * STEPS)
        for begin in range(0, len(steps), 5):
            second, _, third, passed_second, passed_third = (batch for _, batch in steps[begin:begin + 5])
            self.assertEqual((second, third), (passed_second, passed_third))
        shutil.copytree(self.folder / "alone" / "step-000002", self.folder / "resumed" / "step-000002")
        self.train("resumed", *flags, "--resume")
        self.assertEqual(self.losses("resumed"), {step: loss for step, loss in self.losses("alone").items() if step > 2})

    def metrics_of_all(self, out):
        """Losses of steps and of evaluations."""
        return [(line.get("loss"), line.get("eval_loss")) for line in self.metrics(out) if "loss" in line or "eval_loss" in line]

    def test_a_vggt_that_is_shared_out_gives_the_same_bits(self):
        for share, ranks, stage in ((0, 2, 0), (50, 4, 3), (100, 2, 2)):
            self.scenes(text_percent=share)
            flags = ("--deterministic", "--zero", stage, "--steps", "2")
            self.train(f"whole-{share}", *flags, ranks=ranks)
            self.train(f"shared-{share}", *flags, "--vggt-shard", ranks=ranks)
            self.assertEqual(self.losses(f"shared-{share}"), self.losses(f"whole-{share}"), share)

    def test_without_room_in_memory_a_run_says_what_takes_less(self):
        command = ["prlimit", f"--as={2 << 30}", TRAINER, "train", "--model", "qwen2.5-vl-3b", "--vggt", "random", "--data", self.data,
                   "--out", self.folder / "out", "--log-dir", "off", "--tensorboard", "off", "--steps", "1"]
        _, err = self.finish(self.spawn(list(map(str, command)), environment_of_a_program("TMPDIR")), 70)
        self.assertRegex(err.splitlines()[-1], r"out of memory with --accumulation 128 \(1 samples in a pass\); needs about \d+ GB, and has "
                                               r"2\.1 GB of addresses, by the limit of this process \(ulimit -v\); with --recompute \d+ GB, "
                                               r"with --max-history-images 4 and --seq-len 5880 \(as much text\) \d+ GB; "
                                               r"none of them is enough by itself: .*(can't allocate memory|a thread can't be started)")

    def test_a_resumed_run_has_the_bits_of_one_that_went_through(self):
        self.scenes(text_percent=50)
        for ranks, stage in ((1, 0), (2, 3)):
            flags = ("--zero", stage, "--save-every", "2", "--keep", "0", "--min-lr", "0.001", "--warmup-steps", "2")
            whole, parts = f"whole-{ranks}", f"parts-{ranks}"
            self.train(whole, *flags, ranks=ranks)
            shutil.copytree(self.folder / whole / "step-000002", self.folder / parts / "step-000002")
            self.train(parts, *flags, "--resume", ranks=ranks)
            self.assertEqual(self.losses(parts), {step: loss for step, loss in self.losses(whole).items() if step > 2})

    def test_a_killed_run_goes_on_with_other_ranks_and_the_same_bits(self):
        steps = 30
        flags = ("--deterministic", "--save-every", "1", "--keep", "0", "--steps", steps)
        self.train("whole", *flags)
        command = self.words(engine_of(TRAINER), "killed", *flags)
        process = self.spawn(list(map(str, command)), environment_of_a_program("TMPDIR"))
        until(120, "a checkpoint", lambda: (self.folder / "killed" / "step-000002").exists())
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        self.train("killed", *flags, "--resume", "--zero", "3", "--vggt-shard", ranks=2)
        whole, killed = self.losses("whole"), self.losses("killed")
        self.assertEqual(killed, {step: loss for step, loss in whole.items() if step in killed})
        self.assertIn(steps, killed)

    def names_in(self, path):
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            return {name for name in json.loads(file.read(length)) if name != "__metadata__"}

    def test_a_checkpoint_is_what_another_training_begins_with(self):
        self.train("out")
        checkpoint = self.folder / "out" / f"step-{STEPS:06}"
        config = json.loads((checkpoint / "config.json").read_text())
        self.assertEqual((config["model_type"], config["hidden_size"], config["vggt"]["weights"]), ("qwen2_5_vl", 64, "random"))
        self.assertEqual(json.loads((checkpoint / "preprocessor_config.json").read_text())["patch_size"], 14)
        names = self.names_in(checkpoint / "model.safetensors")
        for name in ("merger.mlp.2.bias", "visual.merger.ln_q.weight", "model.embed_tokens.weight", "model.norm.weight"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if "aggregator" in name])
        self.train("again", "--init-from", checkpoint, "--steps", "1")
        self.assertLess(self.losses("again")[1], self.losses("out")[1])
        # Without VGGT, and then with a coupling that is new.
        self.train("plain", "--init-from", checkpoint, "--steps", "1", "--vggt", "off")
        plain = self.folder / "plain" / "step-000001"
        self.assertEqual(self.names_in(plain / "model.safetensors"), {name for name in names if not name.startswith("merger.")})
        self.train("coupled", "--init-from", plain, "--steps", "1")
        self.assertEqual(self.names_in(self.folder / "coupled" / "step-000001" / "model.safetensors"), names)

    def test_rates_of_parts_are_what_flags_say(self):
        self.train("still", "--vision-lr", "0", "--projector-lr", "0", "--weight-decay", "0")
        self.train("moving", "--weight-decay", "0")
        self.assertEqual(self.losses("still")[1], self.losses("moving")[1])
        self.assertNotEqual(self.losses("still")[STEPS], self.losses("moving")[STEPS])

    def test_half_precision_trains(self):
        self.train("half", "--precision", "bf16", "--recompute")
        self.train("full")
        for step, loss in self.losses("full").items():
            self.assertAlmostEqual(self.losses("half")[step], loss, delta=0.1 * loss)

    def test_an_evaluation_tells_right_answers(self):
        held_out = self.folder / "held-out"
        held_out.write_text(json.dumps({"count": 16, "first": 100_000}))
        seen = set()
        for ranks, stage in ((1, 0), (2, 3)):
            out = f"eval-{ranks}"
            self.train(out, "--deterministic", "--zero", stage, "--eval-data", held_out, ranks=ranks)
            (line,) = [line for line in self.metrics(out) if line.get("event") == "eval"]
            self.assertTrue(0 <= line["eval_right_answers"] <= 1)
            seen.add((line["eval_loss"], line["eval_token_accuracy"], line["eval_right_answers"]))
        self.assertEqual(len(seen), 1, seen)


if __name__ == "__main__":
    unittest.main()
