"""TAEHV through the real trainer: it learns from videos, on any number of ranks, and goes on as if nothing had happened."""

import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

import videos

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]
from ranked_training import RankedTraining  # noqa: E402


class Taehv(RankedTraining):
    MODEL = "taehv-nano"
    FLAGS = ("--threads", 1)
    SMALL = ("--batch-size", 4, "--clip-frames", 4, "--clip-size", 16)  # where it need not learn

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-taehv-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        videos.make_some(cls.shared / "videos")
        videos.make_some(cls.shared / "eval", count=3, frames=16)
        for number in range(4):  # large, so that a clip sees little detail: such are learned soon
            videos.make(cls.shared / f"large/{number}.mp4", ("testsrc2", "gradients=seed=3")[number % 2], size="256x192", skip=number)

    def setUp(self):
        super().setUp()
        self.data = self.shared / "videos"

    def psnrs(self, out):
        return self.of_steps(out, "psnr")

    def cause(self, err):
        return err.strip().splitlines()[-1]

    def test_it_learns_and_says_its_psnr(self):
        self.data = self.shared / "large"
        said, _ = self.train("out", "--steps", 40, "--batch-size", 4, "--eval-data", self.shared / "eval", "--eval-every", 20)
        psnrs = list(self.psnrs("out").values())
        self.assertLess(psnrs[0], 15)
        self.assertGreater(sum(psnrs[-10:]) / 10, sum(psnrs[:5]) / 5 + 1)
        self.assertIn("PSNR", said)
        self.assertRegex(said, r"videos +160 frames in 4 videos")
        evaluated = [line for line in self.metrics("out") if line.get("event") == "eval"]
        self.assertEqual([line["at_step"] for line in evaluated], [20, 40])
        for line in evaluated:
            self.assertGreater(line["eval_psnr"], 0)
            self.assertTrue(-1 < line["eval_ssim"] < 1, line)
        steps = [line for line in self.metrics("out") if "loss" in line]
        self.assertTrue(all("ssim" not in line for line in steps))
        png = (self.folder / "out/pictures/step-000020.png").read_bytes()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", png[16:24]), (3 * (32 + 2), 4 * (32 + 2)))

    def test_the_ledger_says_how_long_the_training_waited_for_videos(self):
        """How long is for `make bench-decode`: here, that it is counted, and the same training whoever decodes and what is kept."""
        for out, *flags in (("one", "--frame-cache", 0), ("two", "--data-threads", 2), ("few", "--data-threads", 2, "--frame-cache", "40kB")):
            said, _ = self.train(out, "--steps", 6, *self.SMALL, *flags)
            ledger = json.loads((self.folder / out / "ledger.json").read_text())
            self.assertGreaterEqual(ledger["seconds"]["data"], 0)
            self.assertAlmostEqual(sum(ledger["seconds"].values()), ledger["total_seconds"], places=3)
            self.assertEqual(self.losses(out), self.losses("one"))
        self.assertRegex(said, r"(?m)^frame-cache +40kB +flag")

    @unittest.skipIf(any(pathlib.Path("/dev", name).exists() for name in ("nvidia0", "dri")), "this machine has a GPU")
    def test_a_device_that_can_not_decode_is_named(self):
        for device in ("cuda", "vaapi"):
            _, err = self.train("wrong", "--steps", 2, "--video-decoder", device, code=78)
            self.assertIn(f"--video-decoder: is \"{device}\"; the device can't be opened: ", self.cause(err))
        said, _ = self.train("out", "--steps", 2, "--batch-size", 2, "--video-decoder", "auto")
        self.assertRegex(said, r"videos decoded by +cpu")

    def test_each_rank_is_helped_by_a_gpu_of_its_own(self):
        """By a driver that only says which one was asked for: the frames come from the CPU after all."""
        told, libraries = self.folder / "told", [os.environ["TJ_FAKE_CUDA"], os.environ.get("LD_LIBRARY_PATH", "")]
        self.train("out", "--steps", 2, "--batch-size", 2, "--device", "cpu", "--video-decoder", "cuda", ranks=2, FAKE_CUDA_SAYS=str(told),
                   LD_LIBRARY_PATH=":".join(filter(None, libraries)), CUDA_VISIBLE_DEVICES="0,1")
        self.assertEqual(sorted(told.read_text().split()), ["0", "1"])

    def test_ranks_and_stages_have_one_curve(self):
        flags = ("--steps", 4, *self.SMALL)
        self.train("alone", *flags, "--deterministic")
        self.train("pair", *flags, "--deterministic", ranks=2)
        self.assertEqual(self.losses("alone"), self.losses("pair"))
        for stage in (1, 2, 3):
            self.train(f"stage-{stage}", *flags, "--zero", stage, ranks=2)
            for step, psnr in self.psnrs(f"stage-{stage}").items():
                self.assertAlmostEqual(psnr, self.psnrs("alone")[step], delta=0.05)

    def test_a_resumed_run_has_the_same_bits(self):
        flags = ("--steps", 4, "--save-every", 2, *self.SMALL)
        self.train("whole", *flags)
        shutil.copytree(self.folder / "whole", self.folder / "half")
        shutil.rmtree(self.folder / "half" / "step-000004")
        self.train("half", *flags, "--resume")
        for name in ("model", "optimizer"):
            one, other = (self.folder / out / f"step-000004/{name}.safetensors" for out in ("whole", "half"))
            self.assertEqual(one.read_bytes(), other.read_bytes(), name)

    def test_half_precision(self):
        self.train("fp32", "--steps", 6, *self.SMALL)
        whole = self.psnrs("fp32")
        for precision in ("bf16", "fp16"):
            self.train(precision, "--steps", 6, *self.SMALL, "--precision", precision)
            psnrs = self.psnrs(precision)
            self.assertAlmostEqual(psnrs[1], whole[1], delta=0.1, msg=precision)
            if precision == "bf16":  # the first updates of fp16 are left out, until its scale is small enough
                self.assertAlmostEqual(psnrs[6], whole[6], delta=0.5)
            else:
                self.assertNotEqual(psnrs[6], psnrs[1])

    def test_pictures_are_a_video(self):
        self.data = self.folder / "pictures"
        self.data.mkdir()
        for frame in range(16):
            (self.data / f"{frame:03}.ppm").write_bytes(b"P6 32 32 255\n" + bytes((frame * 9, 70, 200)) * 1024)
        said, _ = self.train("out", "--steps", 2, "--batch-size", 2)
        self.assertRegex(said, r"videos +16 frames in 1 video\b")

    def test_a_damaged_video_is_left_out_and_named(self):
        self.data = self.folder / "data"
        shutil.copytree(self.shared / "videos", self.data)
        (self.data / "broken.mp4").write_bytes(b"no video" * 100)
        _, err = self.train("out", "--steps", 2, "--batch-size", 2, code=65)
        self.assertIn("1 of 7 videos can't be used, --bad-data-max allows 1%", self.cause(err))
        self.assertIn("broken.mp4: is no video", self.cause(err))
        said, _ = self.train("out", "--steps", 2, "--batch-size", 2, "--bad-data-max", "20%")
        self.assertRegex(said, r"videos left out +1 of 7 videos")
        self.assertIn("broken.mp4", said)

    def test_wrong_flags_and_data_are_named(self):
        for flags, code, cause in (
            (("--clip-frames", 6), 78, "--clip-frames: is \"6\"; it must be a multiple of 4"),
            (("--clip-size", 20), 78, "--clip-size: is \"20\"; it must be a multiple of 8"),
            (("--clip-size", 80), 65, "is 96 x 64 pixels, --clip-size is 80"),
            (("--clip-frames", 44), 65, "has 40 frames, --clip-frames is 44"),
            (("--bad-data-max", "many"), 78, "--bad-data-max: is \"many\"; it must be a share"),
            (("--recompute",), 78, "--recompute"),
            (("--frame-cache", "much"), 78, "--frame-cache: is \"much\"; it must be a size such as 512MiB"),
            (("--video-decoder", "gpu"), 78, "--video-decoder: is \"gpu\"; it must be cpu, cuda, vaapi or auto"),
        ):
            with self.subTest(flags):
                _, err = self.train("wrong", "--steps", 2, *flags, code=code)
                self.assertIn(cause, self.cause(err))
        self.data = self.folder / "gone"
        _, err = self.train("wrong", "--steps", 2, code=65)
        self.assertIn("gone: is not there", self.cause(err))
        self.data = self.folder / "empty"
        self.data.mkdir()
        _, err = self.train("wrong", "--steps", 2, code=65)
        self.assertIn("holds no video", self.cause(err))


if __name__ == "__main__":
    unittest.main()
