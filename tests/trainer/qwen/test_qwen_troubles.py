"""What can be wrong with what somebody trains a Qwen2.5-VL on and begins with: the last line names the file, the place in it, what was found there
and what would be right."""

import itertools
import json
import math
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/trainer")]
import rooms  # noqa: E402
from ranked_training import RankedTraining  # noqa: E402
from test_qwen_learning import WIDTH, vggt_that_sees_shades, write_safetensors  # noqa: E402

PICTURES = ROOT / "tests/trainer/data/pictures"
BAD_DATA, BAD_CONFIG = 65, 78


def with_header(path, change):
    """Rewrites the header of a safetensors file; the tensors' bytes stay."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length:])


def wider(tensors, extents):
    """The same tensors with other sizes, of zeros."""
    made = {}
    for name, (shape, _) in tensors.items():
        shape = [extents.get(extent, extent) for extent in shape]
        count = 1
        for extent in shape:
            count *= extent
        made[name] = (shape, [0.0] * count)
    return made


class Troubles(RankedTraining):
    MODEL = "qwen-vggt-nano"

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-qwen-troubles-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        rooms.write_tokenizer(cls.shared / "tokenizer.json")
        shutil.copytree(PICTURES, cls.shared / "pictures")
        (cls.shared / "pictures/cut.jpg").write_bytes((PICTURES / "photo.jpg").read_bytes()[:-20])

    def train_words(self, *flags):
        return ("train", "--model", self.MODEL, "--out", self.folder / "out", "--steps", "1", "--batch-size", "2", "--log-dir", "off",
                "--tensorboard", "off", "--tokenizer", self.shared / "tokenizer.json", *flags)

    def assert_fails(self, code, words, *command, **variables):
        """`words`: a regular expression for the last line."""
        last = self.run_trainer(*command, code=code, **variables)[1].strip().splitlines()[-1]
        print(last, file=sys.stderr)
        self.assertRegex(last, words)

    def write_rows(self, *rows):
        path = self.folder / "data.json"
        path.write_text(json.dumps(list(rows)))
        return path

    def test_conversations(self):
        asked, answered = {"from": "human", "value": "<image>?"}, {"from": "gpt", "value": "left"}
        good = {"image": "photo.jpg", "conversations": [asked, answered]}
        many = {"image": "photo.jpg", "conversations": [asked | {"value": "<image><image>?"}, answered]}
        place = r"data\.json: conversation 2, at byte 1\d\d: "
        rows = [(good | {"conversations": [asked]}, r"has no answer \(a turn of gpt or assistant\): there is nothing to learn"),
                (many, "has 2 marks <image> and 1 pictures: each needs the other"),
                (good | {"image": "cut.jpg"}, r"/pictures/cut\.jpg: a JPEG of 24 x 16 pixels is damaged: "),
                (good | {"image": "wide.png"}, r"/pictures/wide\.png: 20000 x 3 pixels: one side is more than 200 times the other")]
        for row, words in rows:
            with self.subTest(words):
                data = self.write_rows(good, row)
                self.assert_fails(BAD_DATA, place + ".*" + words + ".*; 1 of 2 conversations can't be used, --bad-data-max allows 1%",
                                  *self.train_words("--data", data, "--data-root", self.shared / "pictures"))

    def test_a_root_that_is_not_set(self):
        words = [word for word in map(str, self.train_words())]
        self.assert_fails(BAD_CONFIG, r"--data-root.*it must be the folder in which the pictures' paths begin: is DATA_ROOT set on this node\?",
                          *words, "--data", self.write_rows({}), "--data-root", "")
        self.assert_fails(BAD_CONFIG, r"--data.*DATA_ROOT", *words)
        self.assert_fails(BAD_CONFIG, r"--data.*DATA_ROOT", *words, DATA_ROOT="")
        self.assert_fails(BAD_CONFIG, r"--data-root /nowhere: is no folder; it must be that in which the pictures' paths begin", *words, "--data",
                          self.write_rows({}), DATA_ROOT="/nowhere")

    def weights(self):
        """A checkpoint of a coupled nano, and a VGGT of its own."""
        good = {"image": "photo.jpg", "conversations": [{"from": "human", "value": "<image>?"}, {"from": "gpt", "value": "left"}]}
        self.vggt = self.folder / "vggt.safetensors"
        write_safetensors(self.vggt, vggt_that_sees_shades())
        self.good = ("--data", self.write_rows(good), "--data-root", self.shared / "pictures")
        self.run_trainer(*self.train_words(*self.good, "--vggt", self.vggt))
        base = self.folder / "base"
        base.mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(self.folder / "out/step-000001" / name, base / name)
        shutil.rmtree(self.folder / "out")
        return base

    def test_weights(self):
        base, numbers = self.weights(), itertools.count()

        def changed():
            return pathlib.Path(shutil.copytree(base, self.folder / f"base-{next(numbers)}"))

        def refused(words, folder, vggt=self.vggt):
            with self.subTest(words):
                self.assert_fails(BAD_DATA, words, *self.train_words(*self.good, "--init-from", folder, "--vggt", vggt))

        shards = changed()
        (shards / "model.safetensors").rename(shards / "model-00001-of-00002.safetensors")
        (shards / "model.safetensors.index.json").write_text(json.dumps(
            {"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors", "lm_head.weight": "model-00002-of-00002.safetensors"}}))
        refused(r"--init-from \S+base-0: model-00002-of-00002\.safetensors: is missing; model\.safetensors\.index\.json says that "
                r"tensor lm_head\.weight is in it, and it must lie beside that file", shards)
        flat = changed()
        with_header(flat / "model.safetensors", lambda header: header["model.norm.weight"].update(shape=[32, 2]))
        refused(r"--init-from \S+base-1: tensor model\.norm\.weight is \[32, 2\], and by config\.json it is \[64\]", flat)
        other = changed()
        config = json.loads((other / "config.json").read_text()) | {"model_type": "llava"}
        (other / "config.json").write_text(json.dumps(config))
        refused(r'--init-from \S+base-2/config\.json: model_type is "llava"; it must be qwen2_5_vl', other)
        odd = config | {"model_type": "qwen2_5_vl", "hidden_size": None}
        for flaw, text in {"is not a JSON object": "[" * 200_000 + "]" * 200_000,
                           "lacks a field of .*: hidden_size: must be a whole number": json.dumps(odd)}.items():
            folder = changed()
            (folder / "config.json").write_text(text)
            refused(rf"--init-from \S+base-\d/config\.json: {flaw}", folder)
        # Pictures whose colours another training saw otherwise.
        toned = changed()
        (toned / "preprocessor_config.json").write_text(json.dumps({"patch_size": 14, "image_mean": [0.5] * 3}))
        flaw = r"base-\d/preprocessor_config\.json: image_mean is \[0\.5,0\.5,0\.5\]; it must be \[0\.48145466,0\.4578275,0\.40821073\] for this model"
        refused(rf"--init-from \S+{flaw}", toned)
        self.assert_fails(BAD_DATA, rf"--from \S+{flaw}", "generate", "--from", toned, "--vggt", "off", "--conversation", self.folder / "none.json")
        # A VGGT that is another: wider than that with which the coupling was trained, of other patches, and of two that don't agree.
        wide, large, torn = (self.folder / f"{name}.safetensors" for name in ("wide", "large", "torn"))
        write_safetensors(wide, wider(vggt_that_sees_shades(), {32: 64, 96: 192}))
        write_safetensors(large, wider(vggt_that_sees_shades(), {14: 28}))
        shutil.copy(self.vggt, torn)
        with_header(torn, lambda header: header["aggregator.camera_token"].update(shape=[2, 1, 1, 32]))
        refused(r"--init-from \S+base: tensor merger\.ln_q\.weight is \[64\], and for this VGGT it must be \[128\]", base, wide)
        refused(r"--vggt \S+torn\.safetensors: tensor aggregator\.camera_token is \[2, 1, 1, 32\], and by the other tensors' shapes "
                r"it is \[1, 2, 1, 32\]", base, torn)
        cut, gone = self.folder / "cut.safetensors", self.folder / "gone.pt"
        cut.write_bytes(self.vggt.read_bytes()[:100])
        flaws = {large: r"its patches have sides of 28 pixels, and those of the Qwen2\.5-VL 14; the two must be equal",
                 cut: r"is not a usable safetensors file: its header of \d+ bytes does not fit",
                 gone: r"does not exist; it must be a file of torch\.save"}
        for file, flaw in flaws.items():
            with self.subTest(file.name):
                self.assert_fails(BAD_CONFIG, rf"--vggt \S+/{file.name}: {flaw}", *self.train_words(*self.good, "--init-from", base, "--vggt", file))
        # No learning rate can be blamed for what the first step finds.
        tensors = vggt_that_sees_shades()
        name = "aggregator.frame_blocks.0.mlp.fc2.bias"
        tensors[name] = (tensors[name][0], [math.nan] * WIDTH)
        write_safetensors(self.vggt, tensors)
        self.assert_fails(BAD_CONFIG, r"the loss of step 1 is -?nan before any weight has changed: those that it began with, frozen ones too, or",
                          *self.train_words(*self.good, "--vggt", self.vggt))


if __name__ == "__main__":
    unittest.main()
