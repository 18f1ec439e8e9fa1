"""The last things a process does are bounded: it ends with its exit code whatever they wait for."""

import os

from engine import EngineTest

SMALL = ("--layers", 1, "--width", 16, "--heads", 2, "--seq-len", 16, "--batch-size", 4, "--steps", 2)


class Endings(EngineTest):
    SECONDS_MAX = 90  # of which the end takes ten

    def setUp(self):
        super().setUp()
        # Whoever opens it for writing waits for a reader, for ever.
        os.mkfifo(self.folder / "words-0")

    def test_a_run_that_went_well(self):
        out, _ = self.train(*SMALL)
        self.assertIn("finished 2 steps", out)

    def test_a_run_that_failed_in_mid_run(self):
        self.train(*SMALL, "--lr", "1e30", "--warmup-steps", 0, "--grad-clip", 0, "--steps", 20, code=78)

    def test_a_run_that_never_began(self):
        self.train(*SMALL, "--steps", "ten", code=78)

    def test_one_of_two_ranks_that_hangs_does_not_keep_the_other(self):
        ranks = [self.start(*SMALL, rank=rank, world_size=2) for rank in range(2)]
        for rank in ranks:
            self.finish(rank)
