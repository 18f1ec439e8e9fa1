"""`trainer prepare video`: an index that spares each start a look at all files, and changes nothing else."""

import json
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

import videos

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]
from ranked_training import TRAINER, RankedTraining  # noqa: E402
from support.processes import environment_of_a_program  # noqa: E402

INDEX, NOTES = "videos.index.jsonl", ".videos.index.jsonl.part"
STEPS = ("--steps", 3, "--batch-size", 4)
COPIES = 300  # enough to be killed among them
ATTEMPTS = 10  # a busy machine may look too late


class PrepareVideo(RankedTraining):
    MODEL = "taehv-nano"
    FLAGS = ("--threads", 1, "--deterministic", "--bad-data-max", "50%")

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-taehv-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        videos.make_some(cls.shared / "videos")
        videos.make(cls.shared / "videos/deeper/one.webm")

    def setUp(self):
        super().setUp()
        shutil.copytree(self.shared / "videos", self.data)

    def command(self, *flags):
        return [TRAINER, "prepare", "video", "--input", str(self.data), *map(str, flags)]

    def prepare(self, *flags, code=0):
        return self.finish(self.spawn(self.command(*flags), environment_of_a_program("TMPDIR")), code)

    def entries(self, folder=None):
        lines = ((folder or self.data) / INDEX).read_text().splitlines()
        return {entry["name"]: entry for entry in map(json.loads, lines)}

    def assert_row(self, said, row, value):
        self.assertRegex(said, rf"(?m)^(\[rank 0\] )?{row} +{value}")

    def test_the_index_says_what_the_files_hold(self):
        said = self.prepare("--threads", 2)[0]
        for row in ("videos  7, ", "frames  280", "sizes   96 x 64: 7", "codecs  ", "broken  0 of 7"):
            self.assertIn(row, said)
        for name, codec in (("000.mp4", "h264"), ("001.mkv", "ffv1"), ("002.avi", "mpeg4"), ("deeper/one.webm", "vp9")):
            entry = self.entries()[name]
            self.assertEqual((entry["codec"], entry["frames"], entry["width"], entry["height"]), (codec, 40, 96, 64))
            self.assertEqual(entry["bytes"], (self.data / name).stat().st_size)
            self.assertEqual(entry["rate"], [24, 1])
            self.assertAlmostEqual(entry["seconds"], 40 / 24, delta=0.1)
        self.assertFalse((self.data / NOTES).exists())

    def test_a_start_by_index_is_the_same_training(self):
        """With a file that is none, and one that is damaged inside: the same ones are left out on each rank."""
        (self.data / "none.mp4").write_bytes(b"no video" * 100)
        hurt = bytearray((self.data / "000.mp4").read_bytes())
        hurt[len(hurt) // 2:len(hurt) // 2 + 200] = bytes(200)
        (self.data / "000.mp4").write_bytes(hurt)
        scanned = self.train("scanned", *STEPS, "--frame-cache", 0)[0]
        self.assert_row(scanned, "videos by index", "0 of 8 +none; `trainer prepare video` makes one")
        said = self.prepare()[0]
        self.assertIn("broken  1 of 8\n  none.mp4: is no video, or ends early: ", said)
        for out, ranks in (("alone", 1), ("pair", 2)):
            indexed = self.train(out, *STEPS, ranks=ranks)[0]
            self.assert_row(indexed, "videos by index", f"8 of 8 +{self.data}/{INDEX}")
            self.assert_row(indexed, "videos left out", "1 of 8 videos +.*none.mp4: is no video, or ends early: ")
            self.assertEqual(self.losses(out), self.losses("scanned"))

    def test_what_has_not_changed_is_not_read_again(self):
        self.prepare()
        before = (self.data / INDEX).read_bytes()
        self.assertRegex(self.prepare()[0], r": 0\.0 MB looked through in ")
        self.assertEqual((self.data / INDEX).read_bytes(), before)
        videos.make(self.data / "000.mp4", frames=44)
        (self.data / "001.mkv").unlink()
        said = self.train("out", *STEPS)[0]
        self.assert_row(said, "videos by index", f"5 of 6 +{self.data}/{INDEX}; 000.mp4 has changed since")
        self.prepare()
        self.assertEqual(self.entries()["000.mp4"]["frames"], 44)
        self.assertNotIn("001.mkv", self.entries())

    def test_an_index_may_lie_elsewhere(self):
        self.prepare("--out", self.folder / "index")
        self.assertFalse((self.data / INDEX).exists())
        said = self.train("out", *STEPS, "--video-index", self.folder / "index" / INDEX)[0]
        self.assert_row(said, "videos by index", f"7 of 7 +{self.folder}/index/{INDEX}")
        err = self.train("out", *STEPS, "--video-index", self.folder / "gone", code=65)[1]
        self.assertIn("gone: can't be read: No such file", err)

    def test_what_an_index_can_not_mean_is_named_and_looked_at(self):
        self.prepare()
        lines = (self.data / INDEX).read_text().splitlines()
        lines[0] = lines[0].replace('"frames":40', '"frames":4000000')
        lines[1] = lines[1].replace('"version":1', '"version":7')
        lines[2] = "{" + lines[2]
        (self.data / INDEX).write_text("\n".join(lines) + "\n")
        said = self.train("out", *STEPS)[0]
        self.assert_row(said, "videos by index", "4 of 7 +.*; line 1: says 4000000 for frames; line 2: is of version 7, this "
                        "program reads 1; line 3: is no JSON object; and 3 more")

    def test_one_that_says_another_video_is_found_out_when_it_is_read(self):
        self.prepare()
        text = (self.data / INDEX).read_text().replace('"width":96', '"width":90')
        (self.data / INDEX).write_text(text)
        err = self.train("out", *STEPS, code=65)[1]
        self.assertIn("is another video than before", err)

    def test_killed_at_any_moment_it_goes_on(self):
        for number in range(COPIES):
            shutil.copy(self.data / "001.mkv", self.data / f"copy-{number}.mkv")
        self.prepare()
        whole = (self.data / INDEX).read_bytes()
        notes = self.data / NOTES
        for _ in range(ATTEMPTS):
            (self.data / INDEX).unlink(missing_ok=True)
            process = self.spawn(self.command("--threads", 1), environment_of_a_program("TMPDIR"))
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if notes.exists() and notes.stat().st_size > 5000:
                    break
            process.kill()
            process.wait(30)
            if notes.exists():
                break
        self.assertTrue(notes.exists(), "it had ended before it was killed")
        with open(notes, "ab") as file:
            file.write(b'{"version":1,"name":"co')
        said = self.prepare()[0]
        self.assertNotRegex(said, r", 0\.0 MB were known")
        self.assertEqual((self.data / INDEX).read_bytes(), whole)
        self.assertFalse(notes.exists())

    def test_wrong_flags_and_folders_are_named(self):
        self.assertIn("--threads", self.prepare("--threads", 0, code=64)[1])
        self.assertIn("--out names another folder", self.prepare("--out", self.data / "000.mp4/x", code=74)[1])
        (self.folder / "empty").mkdir()
        for name, code, cause in (("gone", 78, "is no folder"), ("data/000.mp4", 78, "is no folder"), ("empty", 65, "holds no video")):
            with self.subTest(name):
                self.data = self.folder / name
                self.assertIn(cause, self.prepare(code=code)[1])


if __name__ == "__main__":
    unittest.main()
