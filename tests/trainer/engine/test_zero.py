"""What ranks share out: real processes over Gloo, and checkpoints from any stage and number of ranks to any other."""

import json
import signal

from engine import EngineTest, bits_of

SMALL = ("--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 32, "--batch-size", 16)
BY_LOGICAL_SHARDS = (*SMALL, "--deterministic", "--ema", 0.9, "--lr", 3e-3, "--warmup-steps", 0, "--schedule", "constant")
LAW = {0: 2, 1: 2, 2: 2, 3: 3}


class Zero(EngineTest):
    GROUPS = ("model", "optimizer", "ema")

    def event(self, out):
        lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
        return [line for line in lines if line.get("event") == "zero"][-1]

    def test_a_job_changes_stage_and_ranks_on_the_way_with_the_same_bits(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.train(*BY_LOGICAL_SHARDS, "--steps", 8, "--out", whole)
        walk = ((3, 2, 2, 2), (1, 4, 4, 3), (0, 1, 0, 4), (2, 4, 2, 5), (3, 4, 4, 6), (3, 4, 2, 7), (2, 2, 1, 8))
        for stage, ranks, group, steps in walk:
            resume = () if steps == 2 else ("--resume",)
            groups = ("--zero-group", group) if group else ()
            self.train_ranks(ranks, *BY_LOGICAL_SHARDS, "--zero", stage, *groups, "--steps", steps, "--out", parts, *resume)
        self.assert_same_bits(whole, parts, 8)

    def test_groups_of_any_size_have_the_same_bits(self):
        whole = self.folder / "whole"
        self.train(*BY_LOGICAL_SHARDS, "--steps", 3, "--out", whole)
        for ranks, group in ((2, 1), (2, 2), (4, 1), (4, 2), (4, 4)):
            out = self.folder / f"{ranks}-{group}"
            flags = (*BY_LOGICAL_SHARDS, "--zero", 3, "--zero-persist", 0, "--zero-group", group)
            printed, _ = self.train_ranks(ranks, *flags, "--steps", 3, "--out", out)[0]
            self.assert_same_bits(whole, out, 3)
            self.assertEqual(f"zero 3 on {ranks} ranks in groups of {group} | state " in printed, 1 < group < ranks)
            self.assertRegex(printed, rf"\nzero-group +{group} +flag")

    def test_each_stage_moves_and_learns_as_it_should(self):
        alone = self.folder / "alone"
        self.train(*SMALL, "--steps", 4, "--out", alone)
        wanted = self.losses(alone)
        for stage, law in LAW.items():
            out = self.folder / f"stage-{stage}"
            printed, _ = self.train_ranks(2, *SMALL, "--zero", stage, "--steps", 4, "--out", out)[0]
            for step, loss in self.losses(out).items():
                self.assertLess(abs(loss - wanted[step]) / wanted[step], 1e-5, f"stage {stage}, step {step}")
            self.assertLess(abs(self.event(out)["volume_in_parameters"] / law - 1), 0.05, self.event(out))
            self.assertEqual(f"zero {stage} on 2 ranks | state " in printed, stage > 0)

    def test_a_killed_job_goes_on_with_the_same_bits(self):
        flags = (*BY_LOGICAL_SHARDS, "--zero", 3, "--zero-persist", 0, "--save-every", 2)
        whole, killed = self.folder / "whole", self.folder / "killed"
        self.train(*BY_LOGICAL_SHARDS, "--steps", 8, "--out", whole)
        endless = (*flags, "--steps", 1_000_000, "--out", killed)
        ranks = [self.start(*endless, rank=rank, world_size=2) for rank in (0, 1)]
        for line in ranks[0].stdout:
            if line.startswith("checkpoint ") and "step-000004" in line:
                break
        ranks[1].send_signal(signal.SIGKILL)
        self.finish(ranks[0], 76)
        ranks[1].communicate()
        for path in killed.glob("step-*"):
            if int(path.name[5:]) > 4:
                self.assertTrue((path / "manifest.json").exists())
        last = max(int(path.name[5:]) for path in killed.glob("step-*"))
        steps = last + 2
        if steps != 8:
            self.train(*BY_LOGICAL_SHARDS, "--steps", steps, "--out", self.folder / "again")
            whole = self.folder / "again"
        self.train_ranks(2, *flags, "--steps", steps, "--out", killed, "--resume")
        for stem in self.GROUPS:
            name = f"step-{steps:06}"
            self.assertEqual(bits_of(whole / name, stem), bits_of(killed / name, stem), stem)

    def test_a_rank_that_is_killed_ends_those_of_other_groups_too(self):
        flags = (*BY_LOGICAL_SHARDS, "--zero", 3, "--zero-persist", 0, "--zero-group", 2, "--steps", 1_000_000, "--save-every", 2)
        ranks = [self.start(*flags, rank=rank, world_size=4) for rank in range(4)]
        for line in ranks[0].stdout:
            if line.startswith("checkpoint "):
                break
        ranks[3].send_signal(signal.SIGKILL)
        for rank in ranks[:3]:  # rank 0 shares nothing with it: neither its group nor its shard
            _, err = self.finish(rank, 76)
            self.assertIn("rank 3", self.cause(err))
        ranks[3].communicate()

    def test_flags_of_stage_3_need_stage_3(self):
        _, err = self.train(*SMALL, "--zero", 2, "--zero-prefetch", 5, code=78)
        self.assertEqual(self.cause(err), 'trainer: --zero-prefetch: is "5"; it needs --zero 3')
        _, err = self.train(*SMALL, "--zero", 2, "--zero-group", 2, code=78)
        self.assertEqual(self.cause(err), 'trainer: --zero-group: is "2"; it must divide the number of ranks, 1')
        _, err = self.train(*SMALL, "--zero", 4, code=78)
        self.assertEqual(self.cause(err), 'trainer: --zero: is "4"; it must be a whole number from 0 to 3')
