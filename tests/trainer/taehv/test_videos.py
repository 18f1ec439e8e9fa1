"""Frames are those that ffmpeg itself gives, in any order, and what is damaged is said to be."""

import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import videos

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support.ffmpeg import ffmpeg  # noqa: E402
from support.processes import ProcessTest, environment_of_a_program  # noqa: E402

FRAME_SUMS = os.environ.get("TJ_FRAME_SUMS", "")
PLUGIN = os.environ.get("TJ_VIDEO_PLUGIN", "")
SEEKS, CLIPS = 1000, 40
CACHES = (0, 20_000, 1 << 30)  # bytes: nothing is kept, a frame or two, all
# Of a decoder's own buffers, which come and go.
MORE_KILOBYTES_MAX = 4096


def sums_by_ffmpeg(path):
    """Each frame's checksum, with the frames as they are: none left out or doubled for a rate."""
    told = ffmpeg("-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", "-pix_fmt", "rgb24", "-f", "framecrc", "-").decode()
    return [line.rsplit(",", 1)[1].strip() for line in told.splitlines() if not line.startswith("#")]


class Videos(ProcessTest):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-video-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def frame_sums(self, path, *more, code=0):
        command = [FRAME_SUMS, PLUGIN, str(path), *map(str, more)]
        return self.finish(self.spawn(command, environment_of_a_program("TMPDIR")), code)

    def assert_same_frames(self, path):
        ours = self.frame_sums(path)[0].split()
        self.assertEqual(ours, sums_by_ffmpeg(path), path.name)
        return ours

    def assert_same_clips(self, path):
        """Parts of frames, of a video known by its index, with and without a cache."""
        said = self.frame_sums(path, "clips", CLIPS, *CACHES)[0]
        self.assertEqual(said, f"{CLIPS} clips are parts of their frames\n", path.name)

    def test_frames_are_those_of_ffmpeg(self):
        for number, source in enumerate(videos.SOURCES):
            for ending in videos.CODECS:
                path = videos.make(self.folder / f"{number}.{ending}", source, frames=20)
                self.assertEqual(len(self.assert_same_frames(path)), 20)
                if number == 0:
                    self.assert_same_clips(path)

    def test_frames_that_no_other_needs_are_left_out_unseen(self):
        """Long ways from a key frame, with B-frames that others refer to and that none does, of frames and of fields."""
        for name, codec in (
            ("pyramid.mp4", ["-c:v", "libx264", "-g", "250", "-bf", "5", "-b_strategy", "0", "-b-pyramid", "normal"]),
            ("open.mkv", ["-c:v", "libx264", "-g", "20", "-bf", "3", "-x264-params", "open-gop=1:scenecut=0"]),
            ("fields.mp4", ["-c:v", "libx264", "-g", "30", "-bf", "3", "-flags", "+ilme+ildct"]),
            ("part-2.mp4", ["-c:v", "mpeg4", "-g", "60", "-bf", "2", "-q:v", "3"]),
            ("hevc.mp4", ["-c:v", "libx265", "-x265-params", "log-level=none:keyint=40:bframes=4:pools=none:frame-threads=1"]),
        ):
            path = videos.make(self.folder / name, "mandelbrot", frames=60, codec=[*codec, "-pix_fmt", "yuv420p", "-threads", "1"])
            with self.subTest(name):
                self.assert_same_frames(path)
                self.assert_same_clips(path)

    def test_what_is_kept_does_not_change_what_a_damaged_video_gives(self):
        path = videos.make(self.folder / "hurt.mp4", "mandelbrot", frames=90, codec=[*videos.CODECS["mp4"], "-g", "30"])
        raw = bytearray(path.read_bytes())
        for place in range(2, 9):
            at = len(raw) * place // 10
            raw[at:at + 40] = bytes(40)
        path.write_bytes(raw)
        outcomes = {cache: self.frame_sums(path, "outcomes", 4 * CLIPS, cache)[0] for cache in CACHES}
        self.assertEqual(set(outcomes.values()), {outcomes[0]})
        self.assertIn("failed", outcomes[0])
        self.assertIn("0x", outcomes[0])

    def test_odd_sizes_other_ranges_and_kinds_of_pixels(self):
        for name, size, codec in (
            ("even.mkv", "102x66", ["-c:v", "ffv1", "-pix_fmt", "yuv420p"]),
            ("wide.mkv", "160x96", ["-c:v", "ffv1", "-pix_fmt", "yuv422p"]),
            ("odd.mkv", "95x63", ["-c:v", "ffv1", "-pix_fmt", "yuv444p"]),
            ("ten.mkv", "96x64", ["-c:v", "ffv1", "-pix_fmt", "yuv420p10le"]),
            ("grey.mkv", "96x64", ["-c:v", "ffv1", "-pix_fmt", "gray"]),
            ("full.avi", "96x64", ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"]),
            ("rgb.mkv", "97x65", ["-c:v", "ffv1", "-pix_fmt", "bgr0"]),
            ("hd.mp4", "96x64", [*videos.CODECS["mp4"], "-colorspace", "bt709", "-color_range", "tv"]),
            ("short.gif", "96x64", ["-c:v", "gif"]),
        ):
            with self.subTest(name):
                path = videos.make(self.folder / name, size=size, frames=12, codec=codec)
                self.assert_same_frames(path)
                self.assert_same_clips(path)

    def test_pictures_of_a_folder_are_the_frames_of_a_video(self):
        whole = videos.make(self.folder / "whole.mkv", frames=5, codec=["-c:v", "ffv1", "-pix_fmt", "bgr0"])
        for ending in ("png", "bmp", "jpg"):
            pictures = self.folder / ending
            pictures.mkdir()
            ffmpeg("-i", whole, pictures / f"%d.{ending}")
            ours = self.frame_sums(pictures)[0].split()
            self.assertEqual(ours, [sums_by_ffmpeg(path)[0] for path in sorted(pictures.iterdir())])

    def test_a_stream_without_times_is_counted(self):
        path = videos.make(self.folder / "raw.h264", frames=25, codec=[*videos.CODECS["mp4"], "-f", "h264"])
        self.assertEqual(len(self.assert_same_frames(path)), 25)
        self.assert_same_clips(path)

    def test_a_video_that_is_cut_out_of_another_begins_where_it_says(self):
        whole = videos.make(self.folder / "whole.mp4", frames=60)
        for name in ("cut.mp4", "cut.mkv", "cut.ts"):
            cut = self.folder / name
            ffmpeg("-ss", "1.0", "-i", whole, "-c", "copy", cut)
            with self.subTest(name):
                self.assert_same_frames(cut)

    def test_a_thousand_random_frames_are_right_and_leave_nothing(self):
        for ending in videos.CODECS:
            path = videos.make(self.folder / f"seek.{ending}", frames=48)
            for cache in CACHES[::2]:
                said = self.frame_sums(path, "seeks", SEEKS, cache)[0]
                kilobytes, files = map(int, re.fullmatch(r"(-?\d+) kB more, (-?\d+) files more\n", said).groups())
                self.assertLess(kilobytes, MORE_KILOBYTES_MAX, ending)
                self.assertEqual(files, 0, ending)

    def test_what_is_no_video_is_said_to_be_none(self):
        text = self.folder / "text.mp4"
        text.write_text("no video at all\n" * 100)
        self.assertIn("text.mp4: is no video", self.frame_sums(text, code=1)[1])
        sound = self.folder / "sound.mkv"
        ffmpeg("-f", "lavfi", "-i", "sine=duration=1", sound)
        self.assertIn("has no video stream that can be decoded", self.frame_sums(sound, code=1)[1])

    def test_a_file_that_ends_early_is_damaged(self):
        for ending in ("mp4", "mkv", "avi", "webm"):
            path = videos.make(self.folder / f"cut.{ending}", frames=30)
            raw = path.read_bytes()
            for share in (0.3, 0.6, 0.95):
                with self.subTest(ending=ending, share=share):
                    path.write_bytes(raw[: int(len(raw) * share)])
                    self.assertRegex(self.frame_sums(path, code=1)[1], rf"cut\.{ending}: (is no video|ends early|has no video stream)")
            if ending in ("mkv", "webm"):
                self.assertRegex(self.frame_sums(path, code=1)[1], rf"it has {len(raw) * 95 // 100} of {len(raw)} bytes")

    def test_a_stream_that_says_no_length_is_as_long_as_it_is(self):
        path = self.folder / "live.mkv"
        path.write_bytes(ffmpeg("-i", videos.make(self.folder / "whole.mkv", frames=20), "-c", "copy", "-f", "matroska", "-"))
        self.assertEqual(len(self.assert_same_frames(path)), 20)


if __name__ == "__main__":
    unittest.main()
