"""What TAEHV learns from beside the pixels: a teacher's latents on disk, and frames that a discriminator corrects."""

import json
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

import videos

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parents[1] / "engine")]
from engine import bits_of, read_safetensors  # noqa: E402
from ranked_training import RankedTraining  # noqa: E402

FRAMES, HEIGHT, WIDTH = 40, 64, 96
CHANNELS = 16


def write_latents(path, channels=CHANNELS, dtype="F16", name="latents", shape=None):
    """Of a video of videos.py: in each channel a number of its own."""
    shape = shape or [FRAMES // 4, channels, HEIGHT // 8, WIDTH // 8]
    plane = shape[2] * shape[3]
    kind = {"F16": "e", "F32": "f", "F64": "d"}[dtype]
    values = [(channel % 16 - 8) / 8 for _ in range(shape[0]) for channel in range(shape[1]) for _ in range(plane)]
    data = struct.pack(f"<{len(values)}{kind}", *values)
    header = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


class Losses(RankedTraining):
    MODEL = "taehv-nano"
    # The smallest clips: one group of frames, and little work for the discriminator.
    FLAGS = ("--threads", 1, "--batch-size", 4, "--clip-frames", 4, "--clip-size", 16)

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-losses-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def cause(self, err):
        return err.strip().splitlines()[-1]

    def assert_same_bits(self, one, other, step, stems=("model", "optimizer", "training", "memory")):
        for stem in stems:
            left, right = (bits_of(self.folder / out / f"step-{step:06}", stem) for out in (one, other))
            self.assertEqual(left, right, f"{stem} of {one} and {other}")


class Teacher(Losses):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.videos = videos.make_some(cls.shared / "videos")

    def setUp(self):
        super().setUp()
        self.data = self.shared / "videos"
        self.latents = self.folder / "latents"
        for video in self.videos:
            write_latents(self.latents / f"{video.name}.safetensors")

    def test_it_is_learned_from(self):
        flags = ("--teacher-latents", self.latents, "--steps", 40, "--lr", 0.01, "--eval-data", self.data)
        said, _ = self.train("out", *flags)
        self.assertRegex(said, r"clips begin at +multiples of 4 frames and 8 pixels, not mirrored +--teacher-latents")
        self.assertIn("latent error", said)
        errors = list(self.of_steps("out", "latent_error").values())
        self.assertLess(sum(errors[-5:]), 0.5 * sum(errors[:5]))
        evaluated = [line for line in self.metrics("out") if line.get("event") == "eval"]
        self.assertEqual([key for line in evaluated for key in line if "latent" in key], [])

    def test_the_loss_has_its_mean(self):
        """At first nothing else differs: of two weights the losses are as far apart as the mean says."""
        losses, errors = [], []
        for weight in (1, 3):
            self.train(f"weight-{weight}", "--teacher-latents", self.latents, "--latent-weight", weight, "--steps", 1)
            losses += self.losses(f"weight-{weight}").values()
            errors += self.of_steps(f"weight-{weight}", "latent_error").values()
        self.assertEqual(errors[0], errors[1])
        self.assertAlmostEqual(losses[1] - losses[0], 2 * errors[0], delta=1e-4 * errors[0])

    def test_any_number_of_ranks_has_the_same_bits(self):
        flags = ("--teacher-latents", self.latents, "--steps", 4, "--deterministic")
        self.train("alone", *flags)
        self.train("pair", *flags, ranks=2)
        self.assertEqual(self.losses("alone"), self.losses("pair"))
        self.assertEqual(self.of_steps("alone", "latent_error"), self.of_steps("pair", "latent_error"))

    def test_latents_that_are_missing_or_wrong_are_named(self):
        def refused(cause, *flags, code=65):
            _, err = self.train("wrong", "--teacher-latents", self.latents, "--steps", 1, *flags, code=code)
            self.assertIn(cause, self.cause(err))

        first = self.latents / f"{self.videos[0].name}.safetensors"
        first.unlink()
        refused("1 of 6 videos can't be used, --bad-data-max allows 1%")
        refused(f"{first.name}: is not there; it would be the teacher's latents")
        said, _ = self.train("few", "--teacher-latents", self.latents, "--steps", 1, "--bad-data-max", "20%")
        self.assertRegex(said, r"videos left out +1 of 6 videos")
        write_latents(first, channels=32)
        refused("tensor latents is [10, 32, 8, 12]; of its video it is [10, 16, 8, 12]")
        write_latents(first, dtype="F64")
        refused("tensor latents is of type F64; F32, F16 and BF16 can be read")
        write_latents(first, name="z")
        refused("has no tensor latents")
        first.write_bytes(first.read_bytes()[:500])
        refused("is not a usable safetensors file")
        write_latents(first)
        refused("--frame-stride: is \"2\"; it must be 1 with --teacher-latents", "--frame-stride", 2, code=78)
        _, err = self.train("wrong", "--latent-weight", 2, "--steps", 1, code=78)
        self.assertIn("it is of a teacher's latents, whose folder --teacher-latents names", self.cause(err))


class Adversary(Losses):
    WITH = ("--adversarial-weight", 0.1, "--replay-clips", 32)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        videos.make_pictures(cls.shared / "pictures")

    def setUp(self):
        super().setUp()
        self.data = self.shared / "pictures"

    def test_the_same_bits_after_a_resume_with_all_it_remembers(self):
        flags = ("--steps", 4, "--save-every", 2, "--ema", 0.9, *self.WITH)
        for ranks in (1, 2):
            whole, half = f"whole-{ranks}", f"half-{ranks}"
            self.train(whole, *flags, ranks=ranks)
            shutil.copytree(self.folder / whole, self.folder / half)
            shutil.rmtree(self.folder / half / "step-000004")
            self.train(half, *flags, "--resume", ranks=ranks)
            self.assert_same_bits(whole, half, 4, ("model", "optimizer", "ema", "training", "memory"))
            self.assertEqual(self.losses(whole), self.losses(half))

    def test_what_a_checkpoint_holds(self):
        said, _ = self.train("out", "--steps", 2, "--ema", 0.9, *self.WITH)
        self.assertRegex(said, r"replay memory +77,824 bytes on each rank and in each checkpoint")
        self.assertIn("discriminator", said)
        folder = self.folder / "out/step-000002"
        for stem in ("model", "ema"):
            names = bits_of(folder, stem).keys()
            self.assertTrue(all(name.startswith(("encoder.", "decoder.")) for name in names), stem)
        training = bits_of(folder, "training")
        self.assertTrue(all(name.startswith("discriminator.") for name in training))
        self.assertIn("discriminator.blocks.0.1.running_mean", training)
        tensors, _ = read_safetensors(folder / "memory.safetensors")
        dtype, shape, raw = tensors["replay"]
        # Three frames of 16 x 16 in bytes, and 16 channels of 2 x 2 latents in half precision.
        self.assertEqual((dtype, shape), ("U8", [32, 9 * 16 * 16 + 2 * 16 * 2 * 2]))
        self.assertEqual([any(raw[row * shape[1] : (row + 1) * shape[1]]) for row in (0, 7, 8, 31)], [True, True, False, False])
        self.assertEqual(json.loads((folder / "manifest.json").read_text())["memory_rows"], 8)
        # Weights for all: with a discriminator, which begins anew, and without.
        for name, more in (("without", ()), ("with", self.WITH)):
            said, _ = self.train(name, "--steps", 1, "--init-from", folder, *more)
            self.assertIn("the optimizer starts afresh", said)

    def test_ranks_and_stages_learn_alike(self):
        flags = ("--steps", 3, *self.WITH)
        self.train("alone", *flags)
        self.train("pair", *flags, ranks=2)
        alone = self.of_steps("alone", "psnr")
        # The discriminator normalises by what a pass has seen: of two ranks each sees half.
        for step, psnr in self.of_steps("pair", "psnr").items():
            self.assertAlmostEqual(psnr, alone[step], delta=0.3)
        for stage in (1, 2, 3):
            self.train(f"stage-{stage}", *flags, "--zero", stage, ranks=2)
            for key, delta in (("psnr", 0.05), ("adversarial", 0.02)):
                pair = self.of_steps("pair", key)
                for step, value in self.of_steps(f"stage-{stage}", key).items():
                    self.assertAlmostEqual(value, pair[step], delta=delta, msg=f"{key} of stage {stage}")

    def test_another_number_of_ranks_goes_on(self):
        flags = ("--steps", 4, "--save-every", 2, *self.WITH)
        self.train("out", *flags, ranks=2)
        memory = bits_of(self.folder / "out/step-000002", "memory")
        shutil.rmtree(self.folder / "out/step-000004")
        self.train("out", *flags, "--resume", ranks=1)
        manifest = json.loads((self.folder / "out/step-000004/manifest.json").read_text())
        self.assertEqual(manifest["memory_rows"], 16)
        row = 9 * 16 * 16 + 2 * 16 * 2 * 2
        gone_on = bits_of(self.folder / "out/step-000004", "memory")["replay"][1]
        self.assertEqual(gone_on[: 8 * row], memory["replay"][1][: 8 * row], "what was remembered stays")

    def test_half_precision(self):
        for precision in ("bf16", "fp16"):
            self.train(precision, "--steps", 2, "--precision", precision, *self.WITH)
            values = list(self.of_steps(precision, "adversarial").values())
            self.assertEqual(len(values), 2)
            self.assertTrue(all(0 < value < 20 for value in values), values)

    def test_it_learns_to_tell_what_was_made(self):
        videos.make_some(self.folder / "videos")
        self.data = self.folder / "videos"
        self.train("out", "--steps", 40, *self.WITH)
        values = list(self.of_steps("out", "adversarial").values())
        # Both sides learn, so that it goes up and down: over five seeds the best eight in a row had 0.58 to 0.78 of the first.
        best = min(sum(values[i:i + 8]) for i in range(len(values) - 7))
        self.assertLess(best, 0.85 * sum(values[:8]))

    def test_without_its_weight_there_is_nothing(self):
        self.train("out", "--steps", 2)
        folder = self.folder / "out/step-000002"
        self.assertFalse((folder / "training.safetensors").exists() or (folder / "memory.safetensors").exists())
        self.assertNotIn("memory_rows", json.loads((folder / "manifest.json").read_text()))
        self.assertNotIn("discriminator_width", json.loads((folder / "manifest.json").read_text())["model"])
        self.assertTrue(all("adversarial" not in line for line in self.metrics("out")))
        _, err = self.train("out", "--steps", 3, "--resume", *self.WITH, code=78)
        self.assertIn("--adversarial-weight is given, the checkpoint step 2 in", self.cause(err))

    def test_wrong_flags_are_named(self):
        for flags, cause in (
            (("--adversarial-weight", -1), "--adversarial-weight: is \"-1\"; it must be a number from 0"),
            (("--replay-clips", 8), "it is of a discriminator, which --adversarial-weight above 0 asks for"),
            (("--adversarial-weight", 1, "--replay-clips", 0), "--replay-clips: is \"0\"; it must be a whole number from 1"),
            (("--adversarial-weight", 1, "--deterministic"), "--deterministic: is not possible with taehv-nano"),
        ):
            with self.subTest(flags):
                _, err = self.train("wrong", "--steps", 1, *flags, code=78)
                self.assertIn(cause, self.cause(err))
        self.FLAGS = ("--clip-size", 4096)
        _, err = self.train("wrong", "--steps", 1, "--adversarial-weight", 1, "--replay-clips", 10000, code=78)
        self.assertIn("bytes of each rank's memory, at most 68,719,476,736 may be", self.cause(err))


del Losses  # a base, with no test of its own

if __name__ == "__main__":
    unittest.main()
