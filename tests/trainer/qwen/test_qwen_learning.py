"""What a nano Qwen2.5-VL learns of scenes that it has not seen: through a VGGT alone, how far a wall is; from files, the way to a door, which two nodes
learn until nearly all answers are right (tests/e2e/navigation.py)."""

import json
import math
import pathlib
import random
import struct
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/trainer")]
import rooms  # noqa: E402
from ranked_training import RankedTraining  # noqa: E402


WIDTH, HIDDEN, HEADS, LAYERS, SIDE, REGISTERS = 32, 64, 2, 2, 6, 2


def write_safetensors(path, tensors):
    """`tensors`: name -> (shape, floats)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def vggt_that_sees_shades():
    """A VGGT whose patches say how bright they are on the average, much enlarged: its layers add nothing to that."""
    dice = random.Random(5)
    tensors = {}

    def fill(name, shape, value):
        tensors[name] = (shape, [value(at) for at in range(math.prod(shape))])

    def zeros(name, *shape):
        fill(name, list(shape), lambda at: 0.0)

    def layer(prefix, has_norms):
        for norm in ("norm1", "norm2"):
            fill(f"{prefix}{norm}.weight", [WIDTH], lambda at: 1.0)
            zeros(f"{prefix}{norm}.bias", WIDTH)
        for norm in ("q_norm", "k_norm") if has_norms else ():
            fill(f"{prefix}attn.{norm}.weight", [WIDTH // HEADS], lambda at: 1.0)
            zeros(f"{prefix}attn.{norm}.bias", WIDTH // HEADS)
        for name, out, of in (("attn.qkv", 3 * WIDTH, WIDTH), ("attn.proj", WIDTH, WIDTH), ("mlp.fc1", HIDDEN, WIDTH), ("mlp.fc2", WIDTH, HIDDEN)):
            zeros(f"{prefix}{name}.weight", out, of)
            zeros(f"{prefix}{name}.bias", out)
        for scale in ("ls1", "ls2"):
            zeros(f"{prefix}{scale}.gamma", WIDTH)

    embed = "aggregator.patch_embed."
    zeros(f"{embed}cls_token", 1, 1, WIDTH)
    zeros(f"{embed}pos_embed", 1, 1 + SIDE * SIDE, WIDTH)
    zeros(f"{embed}register_tokens", 1, REGISTERS, WIDTH)
    # A difference of 6 of 255 in brightness becomes one of about 2 between the two halves of a patch's values.
    values = 3 * 14 * 14
    fill(f"{embed}patch_embed.proj.weight", [WIDTH, 3, 14, 14], lambda at: (1 if at < values * WIDTH // 2 else -1) * 20 / values)
    # The middle of the shades, as VGGT normalises it, becomes 0.
    middle = sum((128 / 255 - mean) / deviation for mean, deviation in zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))) / 3
    fill(f"{embed}patch_embed.proj.bias", [WIDTH], lambda at: (-1 if at < WIDTH // 2 else 1) * 20 * middle + dice.uniform(-0.5, 0.5))
    for number in range(LAYERS):
        layer(f"{embed}blocks.{number}.", False)
    fill(f"{embed}norm.weight", [WIDTH], lambda at: 1.0)
    zeros(f"{embed}norm.bias", WIDTH)
    zeros("aggregator.camera_token", 1, 2, 1, WIDTH)
    zeros("aggregator.register_token", 1, 2, REGISTERS, WIDTH)
    for number in range(LAYERS):
        layer(f"aggregator.frame_blocks.{number}.", True)
        layer(f"aggregator.global_blocks.{number}.", True)
    return tensors


class Learning(RankedTraining):
    MODEL = "qwen-vggt-nano"

    def right_answers(self, out, said, *flags, ranks=2):
        self.data.write_text(json.dumps({"count": 65536} | said))
        held_out = self.folder / "held-out"
        held_out.write_text(json.dumps({"count": 512, "first": 1_000_000} | said))
        begun = time.monotonic()
        self.train(out, "--eval-data", held_out, "--eval-batches", "32", *flags, ranks=ranks)
        print(f"{out}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
        lines = [line for line in self.metrics(out) if line.get("event") == "eval"]
        print(f"{out}: {[(line['at_step'], round(line['eval_right_answers'], 3)) for line in lines]}", file=sys.stderr)
        return [line["eval_right_answers"] for line in lines]

    def test_what_vggt_alone_sees_reaches_the_answer(self):
        vggt = self.folder / "vggt.safetensors"
        write_safetensors(vggt, vggt_that_sees_shades())
        flags = ("--steps", "150", "--freeze", "visual.*", "--lr", "0.003")
        with_vggt = self.right_answers("seen", {"task": "depth", "history": 0}, "--vggt", vggt, "--vggt-weight", "1", *flags)
        without = self.right_answers("unseen", {"task": "depth", "history": 0}, "--vggt", "off", *flags)
        self.assertGreater(with_vggt[-1], 0.95)
        self.assertLess(without[-1], 0.85)


class Files(RankedTraining):
    """The same from files, with the trainer that people have, and answers by `trainer generate`."""

    MODEL = "qwen-vggt-nano"

    def test_rooms_of_files_are_learned_and_answered(self):
        path, _ = rooms.write_set(self.folder, 600)
        rooms.write_tokenizer(self.folder / "tokenizer.json")
        ask, answers = rooms.write_set(self.folder / "others", 12, seed=2)
        out = self.folder / "out"
        self.run_trainer("train", "--model", self.MODEL, "--data", path, "--tokenizer", self.folder / "tokenizer.json", "--out", out, "--steps", "300",
                         "--held-out", "0.1", "--eval-every", "100", "--log-dir", "off", "--tensorboard", "off", "--lr", "0.003")
        lines = [line for line in self.metrics("out") if line.get("event") == "eval"]
        print([(line["at_step"], line["eval_loss"], line["eval_right_answers"]) for line in lines], file=sys.stderr)
        self.assertGreater(lines[-1]["eval_right_answers"], lines[0]["eval_right_answers"])
        questions = [dict(each, conversations=each["conversations"][:1]) for each in json.loads(ask.read_text())]
        asked = self.folder / "others" / "ask.jsonl"
        asked.write_text("\n".join(json.dumps(each) for each in questions) + "\n")
        said, told = self.run_trainer("generate", "--from", out, "--conversation", asked)
        said = [json.loads(line)["answer"].strip() for line in said.splitlines()]
        print(list(zip(said, answers)), told, file=sys.stderr)
        self.assertLessEqual(set(said), set(rooms.WAYS))
        self.assertGreater(sum(one == other for one, other in zip(said, answers)), len(answers) // 2)
        alone = self.folder / "others" / "ask.json"
        alone.write_text(json.dumps(questions[0]))
        again, _ = self.run_trainer("generate", "--from", out, "--conversation", alone)
        self.assertEqual(again.strip(), said[0])
        one, _ = self.run_trainer("generate", "--from", out, "--conversation", alone, "--temperature", "5", "--tokens", "5", "--seed", "3")
        same, _ = self.run_trainer("generate", "--from", out, "--conversation", alone, "--temperature", "5", "--tokens", "5", "--seed", "3")
        self.assertEqual(one, same)
        alone.write_text("{}")
        _, err = self.run_trainer("generate", "--from", out, "--conversation", alone, code=65)
        self.assertIn("has neither conversations nor messages", err)


if __name__ == "__main__":
    unittest.main()
