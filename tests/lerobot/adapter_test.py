"""Adapters that the trainer exports, in PEFT: it loads them, and computes with them what the trainer's merged weights compute."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import GPT2LMHeadModel

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent / "interop")]
import pi0_model  # noqa: E402
from support import robot_arm  # noqa: E402
from support.places import BUILD  # noqa: E402

TRAINER = BUILD / "trainer/trainer"
SECONDS_MAX = 120
GPT2 = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 16, "--batch-size", 8, "--lr", 1e-2, "--warmup-steps", 0)


class Adapters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tj-adapters-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_trainer(self, *words, code=0):
        done = subprocess.run([TRAINER, *map(str, words)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS_MAX, check=False, env=dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull))
        self.assertEqual(done.returncode, code, done.stdout[-2000:])
        return done.stdout

    def tune(self, *flags):
        """(checkpoint that the adapters begin with, that with them)"""
        (self.folder / "text").mkdir()
        (self.folder / "text/a.txt").write_text("the quick brown fox jumps over the lazy dog. " * 100)
        train = ("train", "--data", "text", *GPT2)
        self.run_trainer(*train, "--steps", 2, "--out", "first")
        self.run_trainer(*train, "--init-from", "first/step-000002", "--steps", 6, "--out", "out", *flags)
        return self.folder / "first/step-000002", self.folder / "out/step-000006"

    def check_same(self, tuned, merged, prefix=""):
        """PEFT's model has what the file has, and merges to our weights."""
        file = load_file(self.folder / "adapters/adapter_model.safetensors")
        own = get_peft_model_state_dict(tuned, save_embedding_layers=False)
        self.assertEqual(set(own), set(file))
        for name, tensor in file.items():
            self.assertTrue(torch.equal(own[name], tensor), name)
        weights = tuned.merge_and_unload().state_dict()
        for name, tensor in merged.items():
            torch.testing.assert_close(weights[prefix + name], tensor, rtol=0, atol=1e-6, msg=lambda said: f"{name}: {said}")

    def test_those_of_a_gpt2_are_loaded_and_compute_the_same(self):
        begun, saved = self.tune("--lora", 4, "--lora-alpha", 8, "--lora-targets", "*.attn.c_*.weight,*.mlp.c_fc.weight", "--lora-also", "*.ln_f.weight")
        said = self.run_trainer("export", "--from", "out", "--to", "adapters", "--adapter")
        self.assertRegex(said, r"^exported adapters of out/step-000006 \(step 6\) to adapters: rank 4, 6 modules, and 1 as a whole, [\d,]+ bytes\n$")
        tuned = PeftModel.from_pretrained(GPT2LMHeadModel.from_pretrained(begun), self.folder / "adapters").eval()
        merged = GPT2LMHeadModel.from_pretrained(saved).eval()
        tokens = torch.arange(16)[None] * 7 % 250
        with torch.no_grad():
            before, wanted = GPT2LMHeadModel.from_pretrained(begun).eval()(tokens).logits, merged(tokens).logits
            got = tuned(tokens).logits
        self.assertGreater((before - wanted).abs().max(), 0.1)
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-5)
        self.check_same(tuned, load_file(saved / "model.safetensors"))

    def tune_a_pi0(self):
        """As tune(), of a pi0 on episodes of an arm."""
        robot_arm.record(sys.executable, self.folder / "arm", 2)
        train = ("train", "--model", "pi0-nano", "--data", "arm/set", "--tokenizer", "arm/tokenizer.model", "--cameras", "top,wrist",
                 "--batch-size", 4, "--lr", 1e-2, "--warmup-steps", 0, "--threads", 1)
        self.run_trainer(*train, "--steps", 1, "--out", "first")
        self.run_trainer(*train, "--init-from", "first/step-000001", "--steps", 3, "--out", "out", "--lora", 4, "--lora-targets",
                         "*.self_attn.q_proj.weight,*.mlp.up_proj.weight", "--lora-also", "action_out_proj.weight")
        return self.folder / "first/step-000001", self.folder / "out/step-000003"

    def test_those_of_a_pi0_are_loaded_in_the_module_and_in_one_that_holds_it(self):
        begun, saved = self.tune_a_pi0()
        merged = load_file(saved / "model.safetensors")
        for prefix in ("", "model."):
            with self.subTest(prefix):
                module = pi0_model.Pi0("pi0-nano")
                module.load_state_dict(load_file(begun / "model.safetensors"))
                self.run_trainer("export", "--from", "out", "--to", "adapters", "--adapter", *(("--module-prefix", prefix) if prefix else ()))
                tuned = PeftModel.from_pretrained(pi0_model.holder(model=module) if prefix else module, self.folder / "adapters")
                self.check_same(tuned, merged, prefix)
        self.assertFalse(torch.equal(merged["action_out_proj.weight"], load_file(begun / "model.safetensors")["action_out_proj.weight"]))

    def test_what_peft_has_no_words_for_is_named(self):
        self.tune("--lora", 2, "--lora-targets", "transformer.wte.weight")
        said = self.run_trainer("export", "--from", "out", "--to", "adapters", "--adapter", code=65)
        self.assertIn("transformer.wte: is a table whose rows are looked up", said)
        said = self.run_trainer("export", "--from", "first", "--to", "adapters", "--adapter", code=65)
        self.assertIn("has no adapters; trainer train --lora makes them", said)
        self.assertFalse((self.folder / "adapters").exists())
        for flags, words in ((("--adapter", "--weights", "ema"), "it must be raw with --adapter"), (("--module-prefix", "model."), "--adapter"),
                             (("--adapter", "--module-prefix", "a b"), "of letters, digits, _ and .")):
            self.assertIn(words, self.run_trainer("export", "--from", "out", "--to", "adapters", *flags, code=64))
