"""Limits of --limit: a rank that works at a slow disk ends nobody, and one that stands still is named.

`tests/trainer/repeat` runs them beside processes that are busy, and the stages of `make test` beside each other."""

from engine import BAD_DISK, EngineTest

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 12)
LARGER = ("--layers", 2, "--width", 256, "--heads", 2, "--seq-len", 32, "--batch-size", 4)  # 20 MB with moments


class Limits(EngineTest):
    def start_ranks(self, world_size, *flags, slow=None):
        """`slow`: variables of the slow disk, by rank."""
        ranks = []
        for rank in range(world_size):
            environment = {"NODE_NAME": f"node-{rank}"}
            if rank in (slow or {}):
                environment |= {"LD_PRELOAD": BAD_DISK} | slow[rank]
            ranks.append(self.start(*flags, rank=rank, world_size=world_size, environment=environment))
        return ranks

    def finish_all(self, ranks):
        return [self.finish(rank)[0] for rank in ranks]

    def test_a_save_that_waits_for_the_one_before_may_last_longer_than_a_step(self):
        """Rank 1 waits for rank 0 in a step meanwhile, longer than a step may stand still."""
        flags = (*SMALL, "--steps", 6, "--save-every", 2, "--limit", "step=5,save=60")
        slow = {"SLOW_FSYNC": "*step-000002*/model-00001-of-*=12"}
        out, _ = self.finish_all(self.start_ranks(2, *flags, slow={0: slow}))
        self.assertIn("the save of step 4 waits: step 2 is still being written", out)
        self.assertIn("finished 6 steps", out)

    def test_a_save_that_stands_still_is_named_with_the_limit_of_a_save(self):
        flags = (*SMALL, "--steps", 4, "--limit", "save=3")
        slow = {"SLOW_FSYNC": "*/model-00002-of-*=600"}
        ranks = self.start_ranks(2, *flags, slow={1: slow})
        _, err0 = self.finish(ranks[0], 76)
        _, err1 = self.finish(ranks[1], 70)
        sentence = (
            r"rank 1 on node node-1 stands still for \d s \(limit save=3 s\), in phase save after step 4, "
            r"after [a-z -]+ no\. \d+; it is in "
        )
        self.assertRegex(self.cause(err0), "^trainer: rank 0: " + sentence)
        self.assertRegex(self.cause(err1), "^trainer: " + sentence)

    def test_a_save_that_moves_may_last_longer_than_its_limit(self):
        """Two files of six seconds each."""
        out, _ = self.train(
            *SMALL, "--steps", 2, "--limit", "save=9",
            environment={"LD_PRELOAD": BAD_DISK, "SLOW_FSYNC": "*.safetensors=6"},
        )
        self.assertIn("finished 2 steps", out)

    def test_nobody_gives_up_after_ten_minutes_of_a_save_that_may_last_longer(self):
        """Each rank's ten minutes would be six seconds here."""
        flags = (*SMALL, "--steps", 4, "--limit", "save=900")
        quick = {"SHORT_GLOO": "100"}
        slow = quick | {"SLOW_FSYNC": "*/model-00001-of-*=12"}
        out, _ = self.finish_all(self.start_ranks(2, *flags, slow={0: slow, 1: quick}))
        self.assertIn("finished 4 steps", out)

    def test_hashing_a_large_checkpoint_may_last_longer_than_the_start(self):
        self.train(*LARGER, "--steps", 1)
        flags = (*LARGER, "--steps", 2, "--resume", "--limit", "start=8")
        slow = {"SLOW_READ": "*/optimizer.safetensors=1"}  # each megabyte of a dozen
        out, _ = self.finish_all(self.start_ranks(2, *flags, slow={0: slow}))
        self.assertIn("1 steps done", out)
        self.assertIn("finished 2 steps", out)
