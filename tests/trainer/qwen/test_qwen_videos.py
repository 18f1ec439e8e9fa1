"""Videos in conversations, from MP4 files to answers: looked through, trained on and asked about; and each that can't be used is named."""

import itertools
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/trainer", "tests/trainer/taehv")]
import rooms  # noqa: E402
import videos  # noqa: E402
from ranked_training import PROGRAM, RankedTraining  # noqa: E402
from support.ffmpeg import ffmpeg  # noqa: E402

RATE, SECONDS = 8, 2  # of each clip: 16 frames, of which 0, 5, 10 and 15 are seen
QUESTION = "which colour is last?"


def two_colours(path, first, last):
    """A second of each."""
    source = ["color={}:size=64x64:rate={}:duration={}".format(colour, RATE, SECONDS / 2) for colour in (first, last)]
    ffmpeg("-f", "lavfi", "-i", source[0], "-f", "lavfi", "-i", source[1], "-filter_complex", "concat=n=2", "-bitexact", *videos.CODECS["mp4"],
           path)


def conversation(form, video, answer):
    """In one of the ways in which data sets write one."""
    if form == 0:
        return {"video": video, "conversations": [{"from": "human", "value": f"<video>\n{QUESTION}"}, {"from": "gpt", "value": answer}]}
    if form == 1:
        return {"messages": [{"role": "user", "content": [{"type": "video", "video": video}, {"type": "text", "text": f"\n{QUESTION}"}]},
                             {"role": "assistant", "content": answer}]}
    if form == 2:  # without a mark
        return {"videos": [video], "messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": answer}]}
    return {"images": ["still.png"], "videos": [video],
            "conversations": [{"from": "human", "value": f"<image>\n<video>\n{QUESTION}"}, {"from": "gpt", "value": answer}]}


class Videos(RankedTraining):
    MODEL = "qwen-vggt-nano"

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-qwen-videos-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.clips = list(itertools.permutations(rooms.COLOURS, 2))
        for first, last in cls.clips:
            two_colours(cls.shared / f"{first}-{last}.mp4", first, last)
        (cls.shared / "still.png").write_bytes(rooms.png([[(90, 90, 90)] * 56] * 56))
        rooms.write_tokenizer(cls.shared / "tokenizer.json")

    def write_set(self, rows):
        path = self.shared / f"{self.id()}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def prepare(self, rows, *flags, **how):
        path = self.write_set(rows)
        return self.run_trainer("prepare", "conversations", "--input", path, "--out", self.folder / "index", "--threads", 1, *flags, **how)

    def clip_rows(self):
        return [conversation(number % 4, f"{first}-{last}.mp4", last) for number, (first, last) in enumerate(self.clips)]

    def test_clips_are_looked_through_learned_and_answered(self):
        rows = self.clip_rows()
        said, _ = self.prepare(rows)
        self.assertRegex(said, r"(?m)^videos +12, 192 frames$")
        self.assertRegex(said, r"(?m)^conversations +12, 24 turns$")
        data = self.write_set(rows)
        out = self.folder / "out"
        self.run_trainer("train", "--model", self.MODEL, "--data", data, "--tokenizer", self.shared / "tokenizer.json", "--out", out, "--steps", 200,
                         "--batch-size", 12, "--lr", "0.003", "--video-pixels-max", 3136, "--data-index", self.folder / "index", "--log-dir", "off",
                         "--tensorboard", "off")
        losses = self.losses("out")
        print(f"losses {losses[1]:.3f}, {losses[100]:.3f}, {losses[200]:.3f}", file=sys.stderr)
        self.assertLess(losses[200], losses[1] / 2)
        said = json.loads((out / "step-000200" / "video_preprocessor_config.json").read_text())
        self.assertEqual((said["size"], said["fps"], said["max_frames"]), ({"shortest_edge": 3136, "longest_edge": 3136}, 2, 32))
        # Asked as it was trained: what the checkpoint says of videos counts.
        asked = self.write_set(rows)
        answers, told = self.run_trainer("generate", "--from", out, "--conversation", asked)
        answers = [json.loads(line)["answer"].strip() for line in answers.splitlines()]
        print(answers, told, file=sys.stderr)
        right = sum(answer == last for answer, (_, last) in zip(answers, self.clips, strict=True))
        self.assertGreater(right, len(rows) // 2)

    def flawed_files(self):
        """Of each the piece of a regular expression that names it."""
        whole = videos.make(self.shared / "whole.mp4", frames=48).read_bytes()
        (self.shared / "cut.mp4").write_bytes(whole[:len(whole) // 2])
        (self.shared / "words.mp4").write_bytes(b"no video" * 100)
        ffmpeg("-f", "lavfi", "-i", "sine=duration=0.3", "-c:a", "aac", self.shared / "sound.mp4")
        return {"cut.mp4": r"cut\.mp4: is no video, or ends early: ", "words.mp4": r"words\.mp4: is no video, or ends early: ",
                "sound.mp4": r"sound\.mp4: has no video stream that can be decoded", "gone.mp4": r"gone\.mp4 is not there"}

    def test_each_that_can_not_be_used_is_named(self):
        flaws = self.flawed_files()
        rows = [*self.clip_rows(), *(conversation(0, name, "red") for name in flaws)]
        rows.append(rows[0] | {"videos": ["blue-red.mp4"]})
        said, _ = self.prepare(rows)
        self.assertRegex(said, r"(?m)^broken +5 of 17 conversations$")
        for number, flaw in enumerate([*flaws.values(), "has 1 marks <video> and 2 videos: each needs the other"], len(self.clips) + 1):
            self.assertRegex(said, rf"(?m)^broken +\S+\.jsonl: conversation {number}, at byte \d+: .*{flaw}")
        # A training of it ends, and says the same.
        _, err = self.run_trainer("train", "--model", self.MODEL, "--data", self.write_set([conversation(0, "cut.mp4", "red")]), "--tokenizer",
                                  self.shared / "tokenizer.json", "--out", self.folder / "out", "--log-dir", "off", "--tensorboard", "off", code=65)
        self.assertRegex(err, r"\.jsonl: conversation 1, at byte 0: \S+cut\.mp4: is no video, or ends early: .*1 of 1 conversations can't be used")

    def test_damage_inside_shows_when_all_is_decoded(self):
        hurt = bytearray(videos.make(self.shared / "inside.mp4", "mandelbrot", frames=48).read_bytes())
        at = hurt.index(b"mdat") + 4 + len(hurt) // 3
        hurt[at:at + 400] = bytes(400)
        (self.shared / "inside.mp4").write_bytes(hurt)
        rows = [conversation(0, "inside.mp4", "red"), conversation(0, "red-blue.mp4", "blue")]
        self.assertRegex(self.prepare(rows)[0], r"(?m)^videos +2, 64 frames$")
        self.assertRegex(self.prepare(rows, "--decode")[0], r"(?m)^broken +\S+ conversation 1, at byte 0: \S+inside\.mp4: is damaged")

    def test_without_the_reader_of_videos_it_says_so(self):
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("trainer", "libtrainer_picture.so"):
            shutil.copy(pathlib.Path(PROGRAM).parent / name, programs / name)
        _, err = self.prepare([conversation(0, "red-blue.mp4", "blue")], code=78, program=programs / "trainer")
        self.assertRegex(err, r"^trainer prepare conversations: \S+/libtrainer_video\.so: is missing; it must lie beside trainer-engine, with FFmpeg's")


if __name__ == "__main__":
    unittest.main()
