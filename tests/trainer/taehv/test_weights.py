"""Weights of a TAEHV out of a training and into another: trainer export, averages, and the larger decoders."""
import json
import pathlib
import struct
import sys
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]
from ranked_training import TRAINER, RankedTraining, environment_of_a_program  # noqa: E402


def tensors_in(path):
    """Of a .safetensors: name -> (shape, bytes)."""
    whole = path.read_bytes()
    (length,) = struct.unpack_from("<Q", whole)
    header = json.loads(whole[8 : 8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {name: (entry["shape"], whole[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]])
            for name, entry in header.items()}


def joined(paths):
    """Several files, with the slices of a tensor one behind the other."""
    pieces = {}
    for path in paths:
        for name, (_, content) in tensors_in(path).items():
            tensor, _, rest = name.partition("[")
            pieces.setdefault(tensor, {})[int(rest.split(":")[0]) if rest else 0] = content
    return {tensor: b"".join(content for _, content in sorted(parts.items())) for tensor, parts in pieces.items()}


class Weights(RankedTraining):
    MODEL = "taehv-nano"
    FLAGS = ("--threads", 1, "--batch-size", 2, "--clip-size", 16)

    def setUp(self):
        super().setUp()
        for video in range(2):
            folder = self.data / str(video)
            folder.mkdir(parents=True)
            for frame in range(16):
                pixels = bytes((frame * 9 + video * 40, 70, (pixel * 7) % 256)[channel] for pixel in range(1024) for channel in range(3))
                (folder / f"{frame:03}.ppm").write_bytes(b"P6 32 32 255\n" + pixels)

    def export(self, source, target, *flags, code=0):
        words = [TRAINER, "export", "--from", self.folder / source, "--to", self.folder / target, *flags]
        return self.finish(self.spawn(list(map(str, words)), environment_of_a_program("TMPDIR")), code)

    def test_averages_are_those_of_the_checkpoint(self):
        self.train("out", "--steps", 4, "--ema", 0.5, "--zero", 2, ranks=2)
        files = sorted((self.folder / "out/step-000004").glob("ema-*.safetensors"))
        self.assertEqual(len(files), 2)
        said, _ = self.export("out", "average.safetensors", "--weights", "ema")
        self.assertRegex(said, r"^exported averages of \S+out/step-000004 \(step 4\) to \S+: 128 tensors, 277,139 parameters, ")
        self.export("out", "raw.safetensors")
        average, raw = (tensors_in(self.folder / name) for name in ("average.safetensors", "raw.safetensors"))
        kept = joined(files)
        self.assertEqual({name: content for name, (_, content) in average.items()}, kept)
        self.assertEqual({name: shape for name, (shape, _) in average.items()}, {name: shape for name, (shape, _) in raw.items()})
        self.assertNotEqual(average, raw)
        model = sorted((self.folder / "out/step-000004").glob("model*.safetensors"))
        self.assertEqual({name: content for name, (_, content) in raw.items()}, joined(model))

    def test_a_pth_is_a_zip_and_training_goes_on_from_it(self):
        self.train("out", "--steps", 3)
        self.export("out/step-000003", "weights.pth")
        names = sorted(tensors_in(self.folder / "out/step-000003/model.safetensors"))
        model = tensors_in(self.folder / "out/step-000003/model.safetensors")
        with zipfile.ZipFile(self.folder / "weights.pth") as archive:
            self.assertIsNone(archive.testzip())
            for number, name in enumerate(names):
                self.assertEqual(archive.read(f"archive/data/{number}"), model[name][1], name)
        for out, weights in (("from-pth", "weights.pth"), ("from-checkpoint", "out/step-000003")):
            self.train(out, "--steps", 2, "--init-from", self.folder / weights)
        self.assertEqual(self.losses("from-pth"), self.losses("from-checkpoint"))
        self.assertNotEqual(self.losses("from-pth")[1], self.losses("out")[1])

    def test_damage_is_named_and_an_older_checkpoint_taken(self):
        self.train("out", "--steps", 4, "--save-every", 2)
        damaged = self.folder / "out/step-000004/model.safetensors"
        content = damaged.read_bytes()
        damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        said, err = self.export("out", "x.pth")
        self.assertIn("step-000002 (step 2)", said)
        self.assertIn("passed over step-000004: model.safetensors: is damaged", err)
        _, err = self.export("out/step-000004", "y.pth", code=65)
        self.assertIn("step-000004: model.safetensors: is damaged", err)
        _, err = self.export("out", "y.pth", "--weights", "ema", code=65)
        self.assertIn("step-000002: has no averages of the weights; trainer train --ema makes them", err)
        _, err = self.export("out", "y.onnx", code=64)
        self.assertIn('y.onnx"; it must end in .pth, .pt or .safetensors', err)
        self.assertEqual([path.name for path in self.folder.glob("*y.*")], [])

    def test_the_super_decoder_learns_and_is_no_plain_one(self):
        self.MODEL = "taehv-nano-super"
        flags = ("--steps", 20, "--lr", 3e-3, "--save-every", 10)
        self.train("alone", *flags)
        psnrs = self.of_steps("alone", "psnr")
        self.assertGreater(psnrs[20], psnrs[1] + 3)
        self.train("stage-3", *flags[:4], "--zero", 3, ranks=2)
        for step, psnr in self.of_steps("stage-3", "psnr").items():
            self.assertAlmostEqual(psnr, psnrs[step], delta=0.05)
        self.MODEL = "taehv-nano"
        _, err = self.train("alone", *flags, "--resume", code=78)
        self.assertIn("--model is taehv-nano, the checkpoint step 20 in", err)
        self.export("alone", "super.pth")
        _, err = self.train("out", "--steps", 2, "--init-from", self.folder / "super.pth", code=65)
        self.assertIn("super.pth: has no tensor decoder.1.weight", err)


if __name__ == "__main__":
    unittest.main()
