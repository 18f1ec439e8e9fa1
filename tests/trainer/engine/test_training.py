"""One rank, several ranks: what training says, learns and leaves."""

import hashlib
import json
import math
import re
import struct
import time

from engine import REPORTS, EngineTest, read_safetensors

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32)


class Training(EngineTest):
    def test_learns_a_repetitive_text(self):
        out, _ = self.train("--steps", 60, "--batch-size", 16)
        losses = self.losses()
        self.assertEqual(sorted(losses), list(range(1, 61)))
        self.assertAlmostEqual(losses[1], math.log(256), delta=0.2)
        self.assertLess(losses[60], 2.0, out)

    def test_says_who_joined_what_it_uses_and_each_step(self):
        out, _ = self.train(*SMALL, "--batch-size", 8, "--steps", 3, "--save-every", 2)
        self.assertRegex(out, r"(?m)^rank 0/1 joined in \d+\.\d s on node \S+ \(no master: a single rank\)$")
        for row in (
            r"setting +value +from",
            r"model +gpt2-nano +default",
            r"layers +2 +flag",
            r"lr +0\.003 +preset gpt2-nano",
            r"parameters +34,\d{3} +computed from the model",
            r"tokens +23,601 +computed: .*",
            r"threads +1 +environment OMP_NUM_THREADS",
            r"world size +1 +launch environment",
        ):
            self.assertRegex(out, rf"(?m)^{row}$")
        steps = re.findall(
            r"(?m)^step (\d)/3 \| loss \d\.\d{4} \| lr \d\.\de[-+]\d\d \| \d+ tok/s \| \d+\.\d{3} s(?: \| eta 0:\d\d)?$", out
        )
        self.assertEqual(steps, ["1", "2", "3"])
        last = out.strip().splitlines()[-2]  # then comes where the time went
        self.assertRegex(
            last, rf"^finished 3 steps \| final loss \d\.\d{{4}} \| checkpoint {self.out}/step-000003$"
        )

    def test_log_every_thins_the_lines_but_not_the_first_and_last_one(self):
        out, _ = self.train(*SMALL, "--batch-size", 8, "--steps", 7, "--log-every", 3)
        self.assertEqual(re.findall(r"(?m)^step (\d)/7", out), ["1", "3", "6", "7"])
        self.assertEqual(len(self.losses()), 7)

    def test_starts_within_seconds(self):
        begun = time.monotonic()
        process = self.start(*SMALL, "--batch-size", 8, "--steps", 1)
        for line in process.stdout:
            if line.startswith("step 1/1"):
                break
        else:
            self.fail("no step was taken")
        # About 0.6 s on an idle machine; the bound leaves room for a busy one.
        self.assertLess(time.monotonic() - begun, 10)
        self.finish(process)

    def test_the_checkpoint_is_a_hugging_face_folder(self):
        self.train(*SMALL, "--batch-size", 8, "--steps", 2)
        folder = self.out / "step-000002"
        self.assertEqual(
            sorted(path.name for path in folder.iterdir()),
            ["config.json", "manifest.json", "model.safetensors", "optimizer.safetensors"],
        )
        tensors, metadata = read_safetensors(folder / "model.safetensors")
        self.assertEqual(metadata, {"format": "pt", "step": "2"})
        shapes = {name: shape for name, (_, shape, _) in tensors.items()}
        expected = {"transformer.wte.weight": [256, 32], "transformer.wpe.weight": [32, 32]}
        for layer in ("transformer.h.0.", "transformer.h.1."):
            for norm in ("ln_1", "ln_2"):
                expected[layer + norm + ".weight"] = expected[layer + norm + ".bias"] = [32]
            for name, inputs, outputs in (
                ("attn.c_attn", 32, 96),
                ("attn.c_proj", 32, 32),
                ("mlp.c_fc", 32, 128),
                ("mlp.c_proj", 128, 32),
            ):
                expected[layer + name + ".weight"] = [inputs, outputs]
                expected[layer + name + ".bias"] = [outputs]
        expected["transformer.ln_f.weight"] = expected["transformer.ln_f.bias"] = [32]
        self.assertEqual(shapes, expected)
        for name, (dtype, shape, raw) in tensors.items():
            self.assertEqual((dtype, len(raw)), ("F32", 4 * math.prod(shape)), name)
            self.assertTrue(all(math.isfinite(x) for (x,) in struct.iter_unpack("<f", raw)), name)
        moments, _ = read_safetensors(folder / "optimizer.safetensors")
        self.assertEqual(
            {name: shape for name, (_, shape, _) in moments.items()},
            {f"{moment}.{name}": shape for moment in ("exp_avg", "exp_avg_sq") for name, shape in expected.items()},
        )
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual((config["n_layer"], config["n_embd"], config["n_positions"]), (2, 32, 32))

    def test_the_manifest_tells_the_truth(self):
        self.train(*SMALL, "--batch-size", 8, "--steps", 2)
        folder = self.out / "step-000002"
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual((manifest["step"], manifest["next_sample"], manifest["seed"]), (2, 16, 1337))
        self.assertEqual(manifest["loss"], self.losses()[2])
        for name, digest in manifest["files"].items():
            raw = (folder / name).read_bytes()
            self.assertEqual(digest, {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()})

    def test_only_the_newest_checkpoints_are_kept(self):
        self.train(*SMALL, "--batch-size", 8, "--steps", 10, "--save-every", 2, "--keep", 2)
        kept = sorted(path.name for path in self.out.iterdir())
        self.assertEqual(kept, [*REPORTS, "step-000008", "step-000010", "tensorboard"])


class Ranks(EngineTest):
    def assert_same_losses(self, one, other):
        self.assertEqual(sorted(one), sorted(other))
        for step, loss in one.items():
            self.assertLess(abs(loss - other[step]) / loss, 1e-4, f"step {step}: {loss} and {other[step]}")

    def test_one_and_two_workers_have_the_same_losses_for_50_steps(self):
        flags = ("--steps", 50, "--batch-size", 8)
        self.train(*flags, "--out", self.folder / "one")
        outputs = self.train_ranks(2, *flags, "--out", self.folder / "two")
        self.assert_same_losses(self.losses(self.folder / "one"), self.losses(self.folder / "two"))
        for rank, (out, _) in enumerate(outputs):
            self.assertRegex(
                out, rf"(?m)^rank {rank}/2 joined in \d+\.\d s on node \S+ \(master 127.0.0.1:{self.port}\)$"
            )
        self.assertNotIn("step 1/50", outputs[1][0])

    def test_neither_accumulation_nor_three_workers_change_the_losses(self):
        flags = (*SMALL, "--batch-size", 12, "--steps", 20)
        self.train(*flags, "--out", self.folder / "one")
        self.train(*flags, "--accumulation", 3, "--out", self.folder / "passes")
        self.train_ranks(3, *flags, "--accumulation", 2, "--out", self.folder / "three")
        one = self.losses(self.folder / "one")
        self.assert_same_losses(one, self.losses(self.folder / "passes"))
        self.assert_same_losses(one, self.losses(self.folder / "three"))
