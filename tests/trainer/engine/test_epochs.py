"""--epochs in place of --steps: counted in steps of the data that is there, also where a run goes on or ranks disagree."""

import math
import re
import unittest

from engine import TEXT, EngineTest

TOKENS = len(TEXT) + 1  # and the one that ends a document
CONTEXT, BATCH = 32, 8
SMALL = ("--layers", 1, "--width", 16, "--heads", 2, "--seq-len", CONTEXT, "--batch-size", BATCH)
SAMPLES = (TOKENS - 1) // CONTEXT


def steps_of(epochs):
    return math.ceil(epochs * SAMPLES / BATCH)


class Epochs(EngineTest):
    def test_two_passes_over_the_data_and_a_row_that_says_so(self):
        out, _ = self.train(*SMALL, "--epochs", 2, "--log-every", 1000)
        steps = steps_of(2)
        self.assertEqual(max(self.losses()), steps)
        self.assertRegex(out, rf"(?m)^steps +{steps} +computed: 2 epochs of {SAMPLES} samples / {BATCH}$")
        self.assertEqual(re.findall(r"(?m)^epochs +(.*?) +(flag|computed.*)$", out), [("2", "flag")])
        self.assertIn(f"finished {steps} steps", out)
        rates = {line["step"]: line["lr"] for line in self.metrics() if "loss" in line}
        self.assertEqual(max(rates, key=rates.get), steps // 10)  # the end of the warm-up
        self.assertAlmostEqual(rates[steps], 3e-4)

    def test_half_an_epoch_goes_on_to_a_whole_one_as_with_steps(self):
        """Bit for bit what --steps of the same numbers does: the schedule is that of the flag of each run."""
        by_steps, by_epochs = self.folder / "steps", self.folder / "epochs"
        for out, flags in ((by_steps, [("--steps", steps_of(share)) for share in (0.5, 1)]),
                           (by_epochs, [("--epochs", share) for share in (0.5, 1)])):
            for length in flags:
                self.train(*SMALL, *length, "--resume", "--log-every", 1000, "--out", out)
        self.assertEqual(max(self.losses(by_epochs)), steps_of(1))
        self.assert_same_bits(by_steps, by_epochs, steps_of(1))

    def test_ranks_with_other_data_are_told_before_the_first_step(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "a.txt").write_text(TEXT * 2)
        ranks = [self.start(*SMALL, "--epochs", 1, rank=0, world_size=2)]
        self.data = other
        ranks.append(self.start(*SMALL, "--epochs", 1, rank=1, world_size=2))
        more = math.ceil((2 * len(TEXT)) // CONTEXT / BATCH)
        told = (f"the run has {more} steps here, and {steps_of(1)} on rank 0: --epochs counts the samples of --data, which must "
                "be the same everywhere")
        for rank, process in enumerate(ranks):
            _, err = self.finish(process, 78)
            self.assertIn(told, self.cause(err))
            self.assertEqual(self.words(rank)["reason"], "StepsDiffer")
        self.assertFalse(list(self.out.glob("step-*")))


if __name__ == "__main__":
    unittest.main()
