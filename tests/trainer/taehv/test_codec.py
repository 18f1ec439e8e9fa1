"""`trainer encode`, `decode` and `reconstruct`: videos to latents and back, as a person does it."""

import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import videos

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parents[1] / "engine")]
from engine import read_safetensors  # noqa: E402
from ranked_training import engine_of  # noqa: E402
from support import waiting  # noqa: E402
from support.ffmpeg import pixels  # noqa: E402
from support.processes import ProcessTest, environment_of_a_program  # noqa: E402

ENGINE = engine_of(os.environ.get("TJ_TRAINER", ""))
LOSSLESS = ["-c:v", "ffv1", "-pix_fmt", "bgr0"]


def facts(path):
    """Width, height, rate and number of frames, by ffprobe."""
    shown = "stream=width,height,avg_frame_rate,nb_read_frames"
    command = ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries", shown, "-of", "json", path]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    stream = json.loads(done.stdout)["streams"][0]
    return stream["width"], stream["height"], stream["avg_frame_rate"], int(stream["nb_read_frames"])


def psnr(one, other):
    error = sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / len(one)
    return 10 * math.log10(255**2 / error)


def latents_file(path, shape, metadata=None, kind="F32", size=None):
    """Zeros of this shape, or of another size than it says."""
    count = math.prod(shape) * (4 if kind == "F32" else 2)
    header = {"latents": {"dtype": kind, "shape": shape, "data_offsets": [0, count]}}
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(count if size is None else size))
    return path


class Codec(ProcessTest):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-codec-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        videos.make_some(cls.shared / "videos", count=2)
        command = [ENGINE, "train", "--model", "taehv-nano", "--data", cls.shared / "videos", "--out", cls.shared / "out", "--steps", "2",
                   "--save-every", "1", "--batch-size", "2", "--threads", "1", "--log-dir", "off", "--tensorboard", "off"]
        subprocess.run(list(map(str, command)), check=True, env=environment_of_a_program("TMPDIR"), capture_output=True, timeout=240)
        cls.weights = cls.shared / "out"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-codec-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, command, *flags, weights=None, **popen):
        words = [ENGINE, command, "--weights", weights or self.weights, "--device", "cpu", "--threads", 1, *flags]
        return self.spawn(list(map(str, words)), environment_of_a_program("TMPDIR"), **popen)

    def run_to_end(self, command, *flags, code=0, **start):
        return self.finish(self.start(command, *flags, **start), code)

    def assert_refused(self, code, cause, command, *flags, **start):
        _, err = self.run_to_end(command, *flags, code=code, **start)
        self.assertIn(cause, err.strip().splitlines()[-1])

    def video(self, name, **shape):
        return videos.make(self.folder / name, codec=LOSSLESS, **shape)

    def test_frames_sizes_and_rates_come_back(self):
        for name, source, size, frames, rate in (
            ("even", "testsrc2", "64x48", 16, "25/1"),
            ("odd", "gradients=seed=7", "95x63", 13, "24000/1001"),
            ("single", "testsrc2", "16x8", 1, "24/1"),
        ):
            with self.subTest(name):
                video = self.video(f"{name}.mkv", source=source, size=size, frames=frames, rate=rate)
                latents = self.folder / f"{name}.safetensors"
                again = self.folder / f"{name}-again.mkv"
                said, _ = self.run_to_end("encode", "--in", video, "--out", latents)
                width, height = map(int, size.split("x"))
                shape = [math.ceil((frames + 3) / 4), 16, math.ceil(height / 8), math.ceil(width / 8)]
                self.assertIn(f"encoded {frames} frames of {width} x {height} to latents {shape}", said)
                self.assertRegex(said, r"\| [\d.]+ frames/s \|")
                self.assertRegex(said, r"peak memory: \d+ MB of the process\n")
                tensors, metadata = read_safetensors(latents)
                self.assertEqual(tensors["latents"][:2], ("F32", shape))
                self.assertEqual(metadata, {"format": "pt", "model": "taehv-nano", "frames": str(frames), "height": str(height),
                                            "width": str(width), "frame_rate": rate.removesuffix("/1"), "patch": "1",
                                            "frames_before": "3"})
                self.run_to_end("decode", "--in", latents, "--out", again)
                self.assertEqual(facts(again), (width, height, rate, frames))
                names = {video.name, latents.name, again.name}
                self.assertEqual({path.name for path in self.folder.glob(f"{name}*")}, names)

    def test_what_is_told_of_a_reconstruction_is_so(self):
        video = self.video("a.mkv", source="mandelbrot", size="62x45", frames=11)
        said, _ = self.run_to_end("reconstruct", "--in", video, "--out", self.folder / "b.mkv")
        told = re.search(r"^PSNR ([\d.]+) dB \| SSIM (-?[\d.]+) \| 11 frames compared$", said, re.MULTILINE)
        self.assertIsNotNone(told, said)
        one, other = pixels(video), pixels(self.folder / "b.mkv")
        self.assertEqual(len(one), 11 * 62 * 45 * 3)
        self.assertAlmostEqual(float(told[1]), psnr(one, other), delta=0.0051)
        # In two steps it is the same, and without a file the same is told.
        self.run_to_end("encode", "--in", video, "--out", self.folder / "a.safetensors")
        self.run_to_end("decode", "--in", self.folder / "a.safetensors", "--out", self.folder / "c.mkv")
        self.assertEqual(pixels(self.folder / "c.mkv"), other)
        again, _ = self.run_to_end("reconstruct", "--in", video)
        self.assertIn(told[0], again)

    def test_each_frame_becomes_itself_and_not_its_neighbour(self):
        """The decoder's own first frames are of before the video: by weights that let brightness through, who is who is seen."""
        data = self.folder / "data"
        data.mkdir()
        values = [40, 200, 90, 230, 20, 140, 250, 70, 180, 110, 0, 160, 60, 220, 130, 30]
        for number in range(48):
            (data / f"{number:03}.ppm").write_bytes(b"P6 32 32 255\n" + bytes([values[number * 7 % 16]]) * 32 * 32 * 3)
        out = self.folder / "out"
        command = [ENGINE, "train", "--model", "taehv-nano", "--data", data, "--out", out, "--steps", 200, "--batch-size", 4, "--frame-stride", 1,
                   "--clip-size", 16, "--threads", 1, "--log-dir", "off", "--tensorboard", "off"]
        self.finish(self.spawn(list(map(str, command)), environment_of_a_program("TMPDIR")))
        self.run_to_end("reconstruct", "--in", data, "--out", self.folder / "pictures", weights=out)
        wanted = [values[number * 7 % 16] for number in range(48)]
        made = []
        for number in range(48):
            raw = (self.folder / f"pictures/{number:08}.ppm").read_bytes()
            body = raw[-32 * 32 * 3:]
            made.append(sum(body) / len(body))

        def error(shift):
            pairs = [(made[i], wanted[i + shift]) for i in range(4, 44)]
            return sum((a - b) ** 2 for a, b in pairs) / len(pairs)

        errors = {shift: error(shift) for shift in range(-4, 5)}
        self.assertEqual(min(errors, key=errors.get), 0, errors)

    def test_other_outputs(self):
        video = self.video("a.mkv", size="32x24", frames=9, rate=25)
        latents = self.folder / "a.safetensors"
        self.run_to_end("encode", "--in", video, "--out", latents, "--latent-type", "fp16")
        self.assertEqual(read_safetensors(latents)[0]["latents"][0], "F16")
        self.run_to_end("decode", "--in", latents, "--out", self.folder / "a.mp4", "--frame-rate", "30000/1001")
        self.assertEqual(facts(self.folder / "a.mp4"), (32, 24, "30000/1001", 9))
        self.run_to_end("decode", "--in", latents, "--out", f"{self.folder / 'pictures'}/")
        names = sorted(path.name for path in (self.folder / "pictures").iterdir())
        self.assertEqual(names, [f"{number:08}.ppm" for number in range(9)])
        self.run_to_end("decode", "--in", latents, "--out", self.folder / "b.mkv")
        raw = b"".join((self.folder / "pictures" / name).read_bytes()[-32 * 24 * 3:] for name in names)
        self.assertEqual(pixels(self.folder / "b.mkv"), raw)
        # Pictures go in, too; and of an odd size H.264 comes out.
        self.run_to_end("reconstruct", "--in", self.folder / "pictures")
        odd = latents_file(self.folder / "odd.safetensors", [2, 16, 2, 2], {"frames": "4", "height": "15", "width": "13"})
        self.run_to_end("decode", "--in", odd, "--out", self.folder / "odd.mp4")
        self.assertEqual(facts(self.folder / "odd.mp4"), (13, 15, "24/1", 4))

    def test_latents_that_somebody_else_wrote(self):
        """They say no video: all that they are is decoded."""
        latents = latents_file(self.folder / "a.safetensors", [3, 16, 2, 5])
        self.run_to_end("decode", "--in", latents, "--out", self.folder / "a.mkv")
        self.assertEqual(facts(self.folder / "a.mkv"), (40, 16, "24/1", 9))

    def test_weights_are_found_where_they_may_be(self):
        video = self.video("a.mkv", size="16x16", frames=5)
        checkpoint = self.weights / "step-000002"
        told = {self.run_to_end("reconstruct", "--in", video, weights=weights)[0].split("PSNR")[1].splitlines()[0]
                for weights in (self.weights, checkpoint, checkpoint / "model.safetensors")}
        self.assertEqual(len(told), 1, told)
        alone = self.folder / "alone.safetensors"
        shutil.copy(checkpoint / "model.safetensors", alone)
        self.assert_refused(65, f"--model: is needed: no config.json beside {alone}", "reconstruct", "--in", video, weights=alone)
        said, _ = self.run_to_end("reconstruct", "--in", video, "--model", "taehv-nano", weights=alone)
        self.assertIn(told.pop(), said)
        # Of a damaged checkpoint it says so, and takes the one before.
        damaged = self.folder / "out"
        shutil.copytree(self.weights, damaged)
        with (damaged / "step-000002/model.safetensors").open("r+b") as file:
            file.seek(-8, os.SEEK_END)
            file.write(b"\xff" * 8)
        _, err = self.run_to_end("reconstruct", "--in", video, weights=damaged)
        self.assertIn(f"--weights {damaged}: left out: step-000002: model.safetensors: is damaged", err)

    def test_half_precision_is_nearly_as_close(self):
        video = self.video("a.mkv", size="64x64", frames=8)
        told = {}
        for precision in ("fp32", "bf16"):
            said, _ = self.run_to_end("reconstruct", "--in", video, "--precision", precision)
            told[precision] = float(re.search(r"PSNR ([\d.]+) dB", said)[1])
        self.assertAlmostEqual(told["fp32"], told["bf16"], delta=0.5)

    def test_memory_does_not_grow_with_the_video(self):
        """The pixels of the longer one alone are 13 MB more, as numbers of four bytes 53."""
        megabytes = []
        for frames in (40, 400):
            video = self.video(f"{frames}.mkv", source="color=c=teal", size="128x96", frames=frames)
            said, _ = self.run_to_end("reconstruct", "--in", video)
            megabytes.append(int(re.search(r"peak memory: (\d+) MB", said)[1]))
        self.assertLess(megabytes[1], megabytes[0] + 10)

    def test_bad_input_is_named(self):
        video = self.video("a.mkv", size="16x16", frames=5)
        text = self.folder / "text.mkv"
        text.write_text("no video at all\n" * 100)
        gone = self.folder / "gone.mkv"
        other = self.folder / "b.safetensors"
        for code, cause, flags in (
            (65, f"--in {gone}: is not there", ("--in", gone)),
            (65, f"--in {text}: is no video", ("--in", text)),
            (65, f"--in {self.shared / 'videos'}: holds 2 videos", ("--in", self.shared / "videos")),
            (65, "another --model has other shapes", ("--in", video, "--model", "taehv")),
            (78, "of which `trainer encode` knows nothing; it must be one of taehv-nano, ", ("--in", video, "--model", "gpt2-nano")),
            (78, "--latent-type: is \"int8\"; it must be fp32 or fp16", ("--in", video, "--latent-type", "int8")),
            (78, "--device: is \"tpu\"; it must be auto, cpu or cuda", ("--in", video, "--device", "tpu")),
            (64, "--in is required", ()),
            (64, "--inn", ("--in", video, "--inn", "1")),
        ):
            with self.subTest(cause):
                self.assert_refused(code, cause, "encode", *flags, "--out", other)
                self.assertFalse(other.exists())
        for weights, cause in (("gone", "is not there"), ("text.mkv", "is not a usable safetensors file"), (".", "holds no checkpoint")):
            _, err = self.run_to_end("encode", "--in", video, "--out", other, "--model", "taehv-nano", weights=self.folder / weights, code=65)
            self.assertRegex(err.strip().splitlines()[-1], f"^trainer: --weights {self.folder / weights}: .*{cause}")
        self.assertEqual(list(self.folder.glob("*part*")), [])

    def test_bad_latents_are_named(self):
        """What else a file may say that is not so is in latents_file_test.cc."""
        shape = [3, 16, 2, 2]
        video = {"frames": "9", "height": "16", "width": "16"}
        made = [0]

        def file(*arguments, **more):
            made[0] += 1
            return latents_file(self.folder / f"{made[0]}.safetensors", *arguments, **more)

        for cause, latents in (
            ("is not there", self.folder / "gone.safetensors"),
            ("is not a usable safetensors file: shorter", latents_text(self.folder / "text", "short")),
            ("is not a usable safetensors file: tensor latents ends 668 bytes behind the end of the file (cut short?)", file(shape, size=100)),
            ("holds latents of taew2_1, and --weights are of taehv-nano", file(shape, {"model": "taew2_1"})),
            ("holds latents of 32 channels; those of taehv-nano have 16", file([3, 32, 2, 2])),
            ("are of 10 frames of 16 x 16; they are not", file(shape, video | {"frames": "10"})),
            ("are of 5 frames of 16 x 16; they are not", file(shape, video | {"frames": "5"})),
            ("are of 9 frames of 8 x 16; they are not", file(shape, video | {"width": "8"})),
            ("are of 9223372036854775807 frames", file(shape, video | {"frames": str(2**63 - 1)})),
        ):
            with self.subTest(cause):
                self.assert_refused(65, cause, "decode", "--in", latents, "--out", self.folder / "x.mkv")
        # A sparse file is as long as it says, and holds nothing.
        sparse = file([1, 16, 40000, 40000], size=0)
        os.truncate(sparse, sparse.stat().st_size + 16 * 40000 * 40000 * 4)
        self.assert_refused(65, "holds latents of a video that is 320000 x 320000 pixels", "decode", "--in", sparse, "--out", self.folder / "x.mkv")
        self.assert_refused(78, "--frame-rate: is \"fast\"; it must be a number such as 24", "decode", "--in", file(shape), "--out",
                            self.folder / "x.mkv", "--frame-rate", "fast")
        self.assertEqual(list(self.folder.glob("x.mkv*")), [])

    def test_an_output_that_can_not_be_is_named(self):
        latents = latents_file(self.folder / "a.safetensors", [2, 16, 2, 2])
        taken = self.folder / "taken.mkv"
        taken.write_text("mine")
        for code, cause, out in (
            (78, f"--out {taken}: is there already", taken),
            (78, "ends with .webm; it must be .mkv", self.folder / "x.webm"),
            (74, "none/x.mkv: can't be created: No such file or directory", self.folder / "none/x.mkv"),
            (74, "--out /proc/x: can't be created", "/proc/x"),
        ):
            with self.subTest(cause):
                self.assert_refused(code, cause, "decode", "--in", latents, "--out", out)
        self.assertEqual(taken.read_text(), "mine")
        video = self.video("a.mkv", size="64x64", frames=8)
        self.assert_refused(74, "none/x: can't be created: No such file or directory", "encode", "--in", video, "--out", self.folder / "none/x")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

        self.assert_refused(74, "can't be written: File too large", "encode", "--in", video, "--out", self.folder / "x.safetensors", preexec_fn=limit)
        self.assert_refused(74, "can't be written: File too large", "reconstruct", "--in", video, "--out", self.folder / "x.mkv", preexec_fn=limit)
        self.assertEqual(list(self.folder.glob("x*")), [])

    def test_who_is_stopped_leaves_nothing_under_the_name(self):
        video = self.video("a.mkv", source="color=c=teal", size="256x192", frames=400)
        for sent, code in ((signal.SIGTERM, 75), (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(sent):
                out = self.folder / f"{sent.name}.mkv"
                process = self.start("reconstruct", "--in", video, "--out", out)
                waiting.until(120, "a file in the making", lambda out=out: list(self.folder.glob(f"{out.name}.part-*")))
                process.send_signal(sent)
                _, err = self.finish(process, code)
                self.assertFalse(out.exists())
                if sent == signal.SIGTERM:
                    self.assertEqual(err.strip().splitlines()[-1], "trainer: asked to stop by signal 15; nothing is written")
                    self.assertEqual(list(self.folder.glob("*.part-*")), [])


def latents_text(path, text):
    path.write_text(text)
    return path


if __name__ == "__main__":
    unittest.main()
