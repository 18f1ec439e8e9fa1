"""The same training whoever does it: ranks, passes, precision, recomputation, and a change of world size on the way."""

import itertools

from engine import EngineTest

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 16)
BY_LOGICAL_SHARDS = (*SMALL, "--deterministic")


class Exactness(EngineTest):
    def train_to(self, name, world_size, *flags):
        """Trains into a folder of its own."""
        out = self.folder / name
        self.train_ranks(world_size, *flags, "--out", out)
        return out

    def assert_close(self, one, other, bound):
        wanted, got = self.losses(one), self.losses(other)
        self.assertEqual(wanted.keys(), got.keys())
        for step, loss in wanted.items():
            self.assertLess(abs(got[step] - loss) / loss, bound, f"{other.name}, step {step}: {got[step]}, not {loss}")

    def test_deterministic_ranks_and_passes_give_the_same_bits(self):
        flags = (*BY_LOGICAL_SHARDS, "--steps", 6, "--dropout", 0.1)
        first = self.train_to("1x1", 1, *flags)
        for world_size, accumulation in itertools.product((1, 2, 4), (1, 2, 4)):
            if (world_size, accumulation) == (1, 1):
                continue
            name = f"{world_size}x{accumulation}"
            other = self.train_to(name, world_size, *flags, "--accumulation", accumulation)
            self.assert_same_bits(first, other, 6)

    def test_a_job_stops_on_4_ranks_goes_on_with_2_then_1_with_the_same_bits(self):
        flags = (*BY_LOGICAL_SHARDS, "--lr", 3e-3, "--warmup-steps", 0, "--schedule", "constant")
        whole = self.train_to("whole", 1, *flags, "--steps", 9)
        parts = self.folder / "parts"
        for world_size, steps in ((4, 3), (2, 6), (1, 9)):
            resume = () if world_size == 4 else ("--resume",)
            self.train_ranks(world_size, *flags, "--steps", steps, "--out", parts, *resume)
        self.assert_same_bits(whole, parts, 9)

    def test_ranks_and_passes_stay_within_a_bound_without_it(self):
        for precision, bound in (("fp32", 1e-5), ("bf16", 5e-3)):
            flags = (*SMALL, "--steps", 8, "--precision", precision)
            first = self.train_to(f"{precision}-1x1", 1, *flags)
            for world_size, accumulation in ((1, 4), (2, 1), (2, 2), (4, 1), (4, 4)):
                name = f"{precision}-{world_size}x{accumulation}"
                other = self.train_to(name, world_size, *flags, "--accumulation", accumulation)
                self.assert_close(first, other, bound)

    def test_recomputation_changes_no_bit(self):
        flags = (*SMALL, "--steps", 4, "--dropout", 0.2)
        kept = self.train_to("kept", 1, *flags)
        again = self.train_to("again", 1, *flags, "--recompute")
        self.assert_same_bits(kept, again, 4)

    def test_bf16_and_fp16_learn_like_fp32(self):
        flags = (*SMALL, "--steps", 12)
        exact = self.train_to("fp32", 1, *flags)
        for precision in ("bf16", "fp16"):
            self.assert_close(exact, self.train_to(precision, 1, *flags, "--precision", precision), 0.02)

    def test_targets_that_do_not_count_change_no_mean(self):
        """Unevenly spread, so that a mean of the ranks' means would be another number."""
        words = self.data / "a.txt"
        words.write_text(words.read_text()[:9000] + "#" * 9000)
        flags = (*SMALL, "--steps", 6, "--ignore-token", ord("#"))
        alone = self.train_to("alone", 1, *flags)
        for world_size, accumulation in ((1, 4), (2, 2), (4, 1)):
            name = f"{world_size}x{accumulation}"
            self.assert_close(alone, self.train_to(name, world_size, *flags, "--accumulation", accumulation), 1e-5)

    def test_a_step_without_any_target_is_refused(self):
        (self.data / "a.txt").write_text("#" * 9000)
        _, err = self.train(*SMALL, "--steps", 2, "--ignore-token", ord("#"), code=65)
        self.assertEqual(
            self.cause(err),
            "trainer: step 1, samples 0 and following: every target is the token 35 of --ignore-token",
        )

    def test_a_resumed_run_must_have_the_same_logical_shards_batch_and_threads(self):
        self.train(*BY_LOGICAL_SHARDS, "--steps", 2)
        for flags, cause in (
            (("--logical-shards", 8), "--logical-shards is 8, the checkpoint step 2"),
            (("--threads", 2), "--threads is 2, the checkpoint step 2"),
            (("--batch-size", 32), "--batch-size is 32, the checkpoint step 2"),
        ):
            _, err = self.train(*BY_LOGICAL_SHARDS, "--steps", 4, "--resume", *flags, code=78)
            self.assertIn(cause, self.cause(err))
        _, err = self.train(*SMALL, "--steps", 4, "--resume", code=78)
        self.assertIn("--logical-shards is 0, the checkpoint step 2", self.cause(err))
