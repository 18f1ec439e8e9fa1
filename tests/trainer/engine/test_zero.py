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
        self.train(*BY_LOGICAL_SHARDS, "--steps", 6, "--out", whole)
        walk = ((3, 2, 2), (1, 4, 3), (0, 1, 4), (2, 2, 5), (3, 4, 6))
        for stage, ranks, steps in walk:
            resume = () if steps == 2 else ("--resume",)
            self.train_ranks(ranks, *BY_LOGICAL_SHARDS, "--zero", stage, "--steps", steps, "--out", parts, *resume)
        self.assert_same_bits(whole, parts, 6)

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

    def test_flags_of_stage_3_need_stage_3(self):
        _, err = self.train(*SMALL, "--zero", 2, "--zero-prefetch", 5, code=78)
        self.assertEqual(self.cause(err), 'trainer: --zero-prefetch: is "5"; it needs --zero 3')
        _, err = self.train(*SMALL, "--zero", 4, code=78)
        self.assertEqual(self.cause(err), 'trainer: --zero: is "4"; it must be a whole number from 0 to 3')
