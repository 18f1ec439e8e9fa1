"""`trainer sample`: a trained GPT-2 goes on with a text."""

import json
import math
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

from engine import ENGINE, TEXT, EngineTest, read_safetensors
from support.processes import environment_of_a_program

SMALL = ("--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 32, "--batch-size", 16, "--log-dir", "off", "--tensorboard", "off")
SENTENCE = "the quick brown fox jumps over the lazy dog and runs away. "
GPT2 = pathlib.Path(__file__).resolve().parents[1] / "data/gpt2"
SPEED = r"(\d+) tokens in \d+\.\d\d s \| \d+\.\d tokens/s \| prompt of (\d+) tokens read in \d+\.\d\d s"


class SampleTest(EngineTest):
    def start_sample(self, *flags, source=None, **popen):
        command = [ENGINE, "sample", "--from", source or self.trained, *flags]
        return self.spawn(list(map(str, command)), environment_of_a_program("TMPDIR"), **popen)

    def sample(self, *flags, code=0, source=None, **popen):
        return self.finish(self.start_sample(*flags, source=source, **popen), code)

    def text(self, *flags, **more):
        return self.sample(*flags, **more)[0]

    def assert_refused(self, code, cause, *flags, source=None):
        out, err = self.sample(*flags, source=source, code=code)
        self.assertIn(cause, self.cause(err))
        self.assertTrue(self.cause(err).startswith("trainer: "), err)
        self.assertEqual(out, "")

    def copy_of_checkpoint(self, name):
        folder = self.folder / name
        shutil.copytree(self.checkpoint, folder)
        return folder

    def with_config(self, name, **changes):
        folder = self.copy_of_checkpoint(name)
        config = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
        return folder


class Sample(SampleTest):
    @classmethod
    def setUpClass(cls):
        """Enough to know the sentence by heart."""
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tj-sample-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        (cls.shared / "text").mkdir()
        for number in range(60):
            (cls.shared / f"text/{number:02}.txt").write_text(SENTENCE * 5)
        cls.trained = cls.shared / "out"
        command = [ENGINE, "train", "--data", cls.shared / "text", "--out", cls.trained, *SMALL, "--steps", 250, "--lr", "0.01", "--save-every", 125]
        subprocess.run(list(map(str, command)), env=environment_of_a_program("TMPDIR"), check=True, timeout=cls.SECONDS_MAX, capture_output=True)
        cls.checkpoint = cls.trained / "step-000250"

    def test_goes_on_with_what_it_has_learnt_far_beyond_its_context(self):
        prompt = SENTENCE[:20]
        out, err = self.sample("--prompt", prompt, "--tokens", 300, "--temperature", 0)
        self.assertEqual(out, (SENTENCE * 6)[:320] + "\n")
        speed = re.search(rf"(?m)^{SPEED}$", err)
        self.assertEqual(speed.groups(), ("300", "20"), err)
        self.assertRegex(err, r"(?m)^peak memory: \d+ MB of the process")

    def test_a_seed_decides_all_and_nothing_else_does(self):
        flags = ("--prompt", "the ", "--tokens", 40, "--temperature", 1.5)
        one = self.text(*flags, "--seed", 7)
        self.assertEqual(self.text(*flags, "--seed", 7), one)
        self.assertEqual(self.text(*flags, "--seed", 7, source=self.checkpoint / "model.safetensors"), one)
        self.assertNotEqual(self.text(*flags, "--seed", 8), one)
        several = self.text(*flags, "--seed", 7, "--samples", 3)
        parts = several.split("---\n")
        self.assertEqual((len(parts), parts[0]), (3, one))
        self.assertEqual(len(set(parts)), 3)
        self.assertEqual(self.text(*flags, "--top-k", 1), self.text(*flags, "--temperature", 0))
        self.assertEqual(self.text(*flags, "--top-p", 1e-9), self.text(*flags, "--temperature", 0))

    def test_a_prompt_may_come_from_anywhere(self):
        flags = ("--tokens", 20, "--temperature", 0)
        expected = self.text("--prompt", SENTENCE, *flags)
        (self.folder / "prompt").write_text(SENTENCE)
        self.assertEqual(self.text("--prompt-file", self.folder / "prompt", *flags), expected)
        process = self.start_sample("--prompt-file", "-", *flags, stdin=subprocess.PIPE)
        out, _ = process.communicate(SENTENCE, timeout=self.SECONDS_MAX)
        self.assertEqual((process.returncode, out), (0, expected))
        # Without one a text begins: after the zero that ends each of the data.
        out, err = self.sample(*flags)
        self.assertIn("20 tokens in", err)
        self.assertIn("prompt of 1 tokens", err)
        self.assertEqual(self.text("--prompt", "", *flags), out)
        self.assert_refused(78, "--prompt-file: is given, and --prompt too", "--prompt", "a", "--prompt-file", "b")
        self.assert_refused(78, "--prompt-file: ", "--prompt-file", self.folder / "gone")

    def test_a_prompt_longer_than_the_context_counts_by_its_end(self):
        out, err = self.sample("--prompt", SENTENCE * 3, "--tokens", 10, "--temperature", 0)
        self.assertEqual(out, SENTENCE * 3 + SENTENCE[:10] + "\n")
        self.assertIn(f"the prompt has {len(SENTENCE) * 3} tokens; of these the last 32, the context of the model, count", err)

    def test_half_precision_says_the_same_of_what_is_sure(self):
        flags = ("--prompt", SENTENCE[:20], "--tokens", 60, "--temperature", 0)
        self.assertEqual(self.text(*flags, "--precision", "bf16"), self.text(*flags))

    def test_what_is_no_utf8_is_replaced_and_a_character_comes_whole(self):
        """At such a temperature all bytes are about as likely as each other."""
        process = self.start_sample("--tokens", 200, "--temperature", 100, "--samples", 3, text=False)
        out, _ = self.finish(process)
        out.decode()
        self.assertIn("\N{REPLACEMENT CHARACTER}".encode(), out)
        # A prompt of whole characters is shown as it is, with each of its bytes a token.
        self.assertTrue(self.text("--prompt", "naïve 中文 😀", "--tokens", 1).startswith("naïve 中文 😀"))

    def test_a_stop_ends_it_with_what_was_printed(self):
        for sent in (signal.SIGTERM, signal.SIGINT):
            process = self.start_sample("--prompt", SENTENCE, "--tokens", 1_000_000, "--temperature", 0)
            begin = process.stdout.read(len(SENTENCE) + 5)  # while it is at work
            process.send_signal(sent)
            out, err = self.finish(process, 75)
            self.assertRegex(self.cause(err), rf"^trainer: asked to stop by signal {int(sent)} after \d+ of 1000000 tokens$")
            self.assertEqual(begin, SENTENCE + SENTENCE[:5])
            self.assertTrue(out.endswith("\n"))
        process = self.start_sample("--prompt-file", "-", stdin=subprocess.PIPE)
        process.send_signal(signal.SIGTERM)  # at its start, or while it waits for a prompt that never comes
        process.wait(timeout=self.SECONDS_MAX)
        self.assertIn(process.returncode, (75, -signal.SIGTERM))

    def test_a_full_disk_ends_it(self):
        with open("/dev/full", "wb") as full:
            command = [ENGINE, "sample", "--from", self.trained, "--prompt", "a"]
            done = subprocess.run(list(map(str, command)), env=environment_of_a_program("TMPDIR"), stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=self.SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, 74)
        self.assertEqual(self.cause(done.stderr), "trainer: standard output: can't be written: No space left on device")

    def test_of_a_damaged_checkpoint_it_takes_the_one_before(self):
        damaged = self.folder / "damaged"
        shutil.copytree(self.trained, damaged)
        path = damaged / "step-000250/model.safetensors"
        path.write_bytes(path.read_bytes()[:1000])
        _, err = self.sample("--tokens", 3, source=damaged)
        self.assertIn(f"--from {damaged}: left out: step-000250: model.safetensors: ", err)

    def test_bad_flags_are_named(self):
        for cause, *flags in (
            ('--tokens: is "0"; it must be a whole number from 1 to 1000000', "--tokens", 0),
            ('--temperature: is "-1"; it must be a number from 0 to 100', "--temperature", -1),
            ('--temperature: is "nan"; it must be', "--temperature", "nan"),
            ('--top-k: is "-1"; it must be a whole number from 0', "--top-k", -1),
            ('--top-p: is "0"; it must be a number greater than 0, and 1 at most', "--top-p", 0),
            ('--top-p: is "1.1"; it must be', "--top-p", 1.1),
            ('--samples: is "many"; it must be', "--samples", "many"),
            ("of which `trainer sample` knows nothing; it must be one of gpt2-nano", "--model", "taehv"),
        ):
            with self.subTest(cause):
                self.assert_refused(78, cause, *flags)

    def test_hostile_files_are_named(self):
        text = self.folder / "text.safetensors"
        text.write_text("no tensors at all\n" * 100)
        empty = self.folder / "empty"
        empty.mkdir()
        cases = [(self.folder / "gone", "is not there"), (text, "is not a usable safetensors file"), (empty, "holds no checkpoint"),
                 (self.with_config("relu", activation_function="relu"), 'activation_function is "relu"; this trainer computes "gelu_new", ')]
        for number, heads in enumerate((0, -2, 3, 65, 2**62)):
            cases.append((self.with_config(f"heads{number}", n_head=heads), "they must divide the width, 64"))
        cases.append((self.with_config("text-heads", n_head="two"), "lacks a field of a GPT-2"))
        cases.append((self.with_config("padded", tokenizer_vocab_size=257), "tokenizer_vocab_size is 257; it must be from 1 to vocab_size, 256"))
        cases.append((self.with_config("layers", n_layer=3), "n_layer is 3; the weights have 2 layers"))
        unknown = self.with_config("unknown", tokenizer_vocab_size=200)
        cases.append((unknown, f"--tokenizer: is needed: no tokenizer.json beside {unknown} says what its 200 tokens are"))
        for name, content, cause in (("list", "[1, 2]", "tokenizer.json: "), ("cut", '{"model": {', "tokenizer.json: "),
                                     ("wrong", '{"model": {"vocab": 3, "merges": []}}', "tokenizer.json: ")):
            folder = self.copy_of_checkpoint(name)
            (folder / "tokenizer.json").write_text(content)
            cases.append((folder, cause))
        lone = self.folder / "lone.safetensors"
        shutil.copy(self.checkpoint / "model.safetensors", lone)
        cases.append((lone, f"--model: is needed: no config.json beside {lone} says how many heads the model has"))
        for source, cause in cases:
            with self.subTest(source=source.name):
                self.assert_refused(65, cause, "--prompt", "a", source=source)
        self.assertEqual(self.text("--tokens", 5, "--temperature", 0, "--model", "gpt2-nano", source=lone)[-1], "\n")
        self.assert_refused(65, f"--tokenizer {text}: ", "--tokenizer", text)

    def test_weights_that_are_no_numbers_are_told(self):
        folder = self.copy_of_checkpoint("nan")
        path = folder / "model.safetensors"
        raw = bytearray(path.read_bytes())
        (length,) = struct.unpack("<Q", raw[:8])
        begin = 8 + length + json.loads(raw[8 : 8 + length])["transformer.ln_f.bias"]["data_offsets"][0]
        raw[begin : begin + 4] = struct.pack("<f", math.nan)
        path.write_bytes(raw)
        out, err = self.sample("--prompt", "a", source=folder, code=65)
        self.assertIn("is not finite; the weights are damaged, or the precision is too low", self.cause(err))
        self.assertEqual(out, "a\n")


class Bpe(SampleTest):
    """A model of tokens that are no bytes, with rows that only fill up."""

    def setUp(self):
        super().setUp()
        vocab = json.loads((GPT2 / "vocab.json").read_text())
        merges = (GPT2 / "merges.txt").read_text().splitlines()[1:]
        self.tokenizer = json.dumps({"added_tokens": [{"id": 50256, "content": "<|endoftext|>", "special": True}],
                                     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
                                     "model": {"type": "BPE", "vocab": vocab, "merges": merges}})
        self.ids = [vocab["Ġ" if letter == " " else letter] for letter in TEXT[:6000]] + [50256]
        self.data = self.folder / "tokens"
        self.data.mkdir()
        header = struct.pack("<3i", 20240520, 1, len(self.ids)).ljust(1024, b"\0")
        (self.data / "train.bin").write_bytes(header + struct.pack(f"<{len(self.ids)}H", *self.ids))

    def test_the_tokenizer_beside_the_data_goes_with_each_checkpoint(self):
        (self.data / "tokenizer.json").write_text(self.tokenizer)
        self.train(*SMALL, "--layers", 1, "--width", 16, "--steps", 2, "--vocabulary", 50304)
        folder = self.out / "step-000002"
        self.assertEqual((folder / "tokenizer.json").read_text(), self.tokenizer)
        self.assertIn("tokenizer.json", json.loads((folder / "manifest.json").read_text())["files"])
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual((config["vocab_size"], config["tokenizer_vocab_size"]), (50304, 50257))
        self.assertEqual(read_safetensors(folder / "model.safetensors")[0]["transformer.wte.weight"][1], [50304, 16])
        # Nearly untrained, it would choose rows without text nearly always, if it could.
        out, err = self.sample("--prompt", "Hello world", "--tokens", 300, "--temperature", 2, source=self.out)
        made = int(re.search(SPEED, err)[1])
        self.assertIn("prompt of 2 tokens", err)
        self.assertTrue(out.startswith("Hello world"))
        self.assertGreater(len(out), len("Hello world") + made // 2)
        # One that was changed is damage, as with any other file.
        (folder / "tokenizer.json").write_text(self.tokenizer + " ")
        self.assert_refused(65, "holds no checkpoint that is whole", source=self.out)

    def test_without_one_it_must_be_named(self):
        self.train(*SMALL, "--layers", 1, "--width", 16, "--steps", 1)
        folder = self.out / "step-000001"
        self.assertFalse((folder / "tokenizer.json").exists())
        self.assert_refused(65, f"--tokenizer: is needed: no tokenizer.json beside {folder} says what its 50257 tokens are", source=self.out)
        file = self.folder / "tokenizer.json"
        file.write_text(self.tokenizer)
        flags = ("--prompt", "Hello world", "--tokens", 9, "--seed", 3)
        texts = {self.text(*flags, "--tokenizer", path, source=self.out) for path in (file, self.folder, GPT2)}
        self.assertEqual(len(texts), 1, texts)

    def test_a_tokenizer_of_more_tokens_than_the_model_is_refused(self):
        self.data = self.folder / "text"
        self.train(*SMALL, "--layers", 1, "--width", 16, "--steps", 1)
        self.assert_refused(65, f"--tokenizer {GPT2}: has 50257 tokens; the model of {self.out}/step-000001 has 256", "--tokenizer", GPT2,
                            source=self.out)


if __name__ == "__main__":
    unittest.main()
