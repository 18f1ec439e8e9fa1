"""What --freeze leaves as it was: in checkpoints, after a resume, at every stage of ZeRO."""

from engine import EngineTest, bits_of

SMALL = ("--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 32, "--batch-size", 16, "--lr", 3e-3, "--warmup-steps", 0,
         "--schedule", "constant")
FROZEN = ("transformer.w?e.weight", "transformer.h.0.*")
FREEZE = tuple(word for pattern in FROZEN for word in ("--freeze", pattern))


def is_frozen(name):
    return name.startswith(("transformer.wte", "transformer.wpe", "transformer.h.0."))


class Freeze(EngineTest):
    GROUPS = ("model", "optimizer", "ema")

    def test_checkpoints_hold_it_whole_and_no_moments_of_it(self):
        first, out = self.folder / "first", self.folder / "tuned"
        self.train(*SMALL, "--steps", 3, "--out", first)
        begun = first / "step-000003"
        flags = (*SMALL, *FREEZE, "--ema", 0.9, "--init-from", begun, "--steps", 5, "--out", out)
        printed, _ = self.train_ranks(2, *flags, "--zero", 2)[0]
        self.assertRegex(printed, r"\nfrozen +[\d,]+ +computed: what --freeze matches")
        before, after = bits_of(begun, "model"), bits_of(out / "step-000005", "model")
        self.assertEqual(set(before), set(after))
        for name, bits in before.items():
            self.assertEqual(bits == after[name], is_frozen(name), name)
        trained = {name for name in before if not is_frozen(name)}
        self.assertEqual(set(bits_of(out / "step-000005", "ema")), trained)
        moments = {f"{moment}.{name}" for moment in ("exp_avg", "exp_avg_sq") for name in trained}
        self.assertEqual(set(bits_of(out / "step-000005", "optimizer")), moments)

    def test_a_resumed_run_has_the_bits_of_one_that_went_through_on_any_ranks_and_groups(self):
        self.assert_resumes_on_any_ranks_and_groups(*SMALL, *FREEZE, "--deterministic", "--ema", 0.9)

    def test_what_was_frozen_must_be_so_again(self):
        self.train(*SMALL, *FREEZE, "--steps", 2)
        _, err = self.train(*SMALL, "--steps", 3, "--resume", code=78)
        self.assertIn("step 2 in ", self.cause(err))
        self.assertIn(" was made with frozen ", self.cause(err))
        _, err = self.train(*SMALL, "--freeze", FROZEN[0], "--steps", 3, "--resume", code=78)
        self.assertIn("--freeze is ", self.cause(err))
        self.train(*SMALL, *FREEZE, "--steps", 3, "--resume")

    def test_a_pattern_without_a_match_is_told_with_names_near_it(self):
        _, err = self.train(*SMALL, "--freeze", "h.0.mpl.*", code=78)
        self.assertIn('--freeze: is "h.0.mpl.*"; it must match the name of a trained tensor, such as transformer.h.0.mlp.', err)
