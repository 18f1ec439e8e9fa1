"""Adapters in place of weights (--lora): what checkpoints hold, and that any ranks and groups go on with the same bits."""

import struct

from engine import EngineTest, bits_of, tensors_of

SMALL = ("--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 32, "--batch-size", 16, "--lr", 3e-3, "--warmup-steps", 0,
         "--schedule", "constant")
TARGETS = ("transformer.h.0.attn.c_attn.weight", "transformer.h.1.attn.c_attn.weight")
RANK, ALPHA = 4, 8
LORA = ("--lora", RANK, "--lora-alpha", ALPHA, "--lora-targets", "*.attn.c_attn.weight", "--lora-also", "*.ln_f.*")


def adapter(weight, part):
    return f"base_model.model.{weight.removesuffix('.weight')}.{part}.weight"


def numbers(raw):
    return struct.unpack(f"<{len(raw) // 4}f", raw)


class Lora(EngineTest):
    GROUPS = ("model", "optimizer", "ema", "training")

    def test_a_checkpoint_holds_merged_weights_and_what_they_are_made_of(self):
        first = self.folder / "first"
        self.train(*SMALL, "--steps", 3, "--out", first)
        begun = first / "step-000003"
        printed, _ = self.train_ranks(2, *SMALL, *LORA, "--zero", 2, "--init-from", begun, "--steps", 5)[0]
        adapters = len(TARGETS) * RANK * (64 + 3 * 64)
        self.assertRegex(printed, rf"\nadapters +{adapters:,} +computed: what --lora-targets matches")
        saved = self.out / "step-000005"
        before, after, apart = bits_of(begun, "model"), tensors_of(saved, "model"), tensors_of(saved, "training")
        self.assertEqual(set(after), set(before))
        for name, (dtype, raw) in before.items():
            is_trained = name in TARGETS or ".ln_f." in name
            self.assertEqual((dtype, raw) != (after[name][0], after[name][2]), is_trained, name)
        self.assertEqual(set(apart), {adapter(name, part) for name in TARGETS for part in ("base_layer", "lora_A", "lora_B")})
        for name in TARGETS:
            self.assertEqual(apart[adapter(name, "base_layer")][2], before[name][1])
            self.assert_merged(after[name], *(apart[adapter(name, part)] for part in ("base_layer", "lora_A", "lora_B")))
        # So whoever reads the weights reads the merged ones.
        self.train(*SMALL, "--init-from", saved, "--steps", 1, "--lr", 1e-9, "--out", self.folder / "again")

    def assert_merged(self, weight, base, a, b):
        rows, columns = weight[1]
        merged, base, a, b = (numbers(tensor[2]) for tensor in (weight, base, a, b))
        for row in range(0, rows, 7):  # of inputs: a Conv1D's
            for column in range(0, columns, 11):
                change = sum(b[column * RANK + i] * a[i * rows + row] for i in range(RANK))
                at = row * columns + column
                self.assertAlmostEqual(merged[at], base[at] + ALPHA / RANK * change, delta=1e-6)

    def test_a_resumed_run_has_the_bits_of_one_that_went_through_on_any_ranks_and_groups(self):
        self.assert_resumes_on_any_ranks_and_groups(*SMALL, *LORA, "--deterministic", "--ema", 0.9)

    def test_ranks_learn_as_one_alone(self):
        self.train(*SMALL, *LORA, "--steps", 4, "--out", self.folder / "alone")
        wanted = self.losses(self.folder / "alone")
        for flags in ((), ("--accumulation", 2), ("--reduce", "bf16"), ("--zero", 3, "--zero-prefetch", 0)):
            out = self.folder / "-".join(map(str, ("ranks", *flags)))
            self.train_ranks(2, *SMALL, *LORA, *flags, "--steps", 4, "--out", out)
            for step, loss in self.losses(out).items():
                self.assertAlmostEqual(loss, wanted[step], delta=1e-3 if "bf16" in flags else 1e-5 * wanted[step], msg=f"{flags}, step {step}")

    def test_what_was_trained_must_be_so_again(self):
        self.train(*SMALL, *LORA, "--steps", 2)
        _, err = self.train(*SMALL, "--steps", 3, "--resume", code=78)
        self.assertIn(" was made with lora_rank 4, which no flag asks for now", self.cause(err))
        other = ("--lora", 2, *LORA[2:])
        _, err = self.train(*SMALL, *other, "--steps", 3, "--resume", code=78)
        self.assertIn("--lora is 2, ", self.cause(err))
