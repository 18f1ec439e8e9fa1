"""What a training step moves, counted where it cannot be mistaken: by the network interface between two nodes. Needs root."""

import json
import os
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import nodes  # noqa: E402
from engine import EngineTest, tensors_of  # noqa: E402

FLAGS = ("--layers", 4, "--width", 128, "--heads", 4, "--seq-len", 32, "--batch-size", 4)
LAW = {0: 2, 1: 2, 2: 2, 3: 3}  # elements moved in a step, in parameters, times N / (N - 1)
STEPS_FEW, STEPS_MORE = 2, 12
RANKS = 2
FLOAT_BYTES = 4
# Headers and acknowledgements of TCP, losses, votes and signs of life: two thousandths when it was written.
WIRE_SHARE_MAX = 0.05


@unittest.skipIf(os.geteuid() != 0, "network namespaces need root")
class Wire(EngineTest):
    def setUp(self):
        super().setUp()
        self.nodes = nodes.Nodes()
        self.addCleanup(self.nodes.close)

    def sent_bytes(self, node):
        lines = self.nodes.run(node, "cat /proc/net/dev").splitlines()
        return next(int(line.split()[9]) for line in lines if line.strip().startswith("eth0:"))

    def bytes_of_run(self, stage, steps, *more):
        """What each rank has sent, and what the run says that it has moved."""
        out = self.folder / "-".join(map(str, (stage, steps, *more)))
        before = [self.sent_bytes(node) for node in range(RANKS)]
        ranks = [self.start(*FLAGS, "--zero", stage, "--steps", steps, *more, "--out", out, rank=rank, world_size=RANKS,
                            within=self.nodes.within(rank), environment={"MASTER_ADDR": nodes.ADDRESSES[0]})
                 for rank in range(RANKS)]
        for rank in ranks:
            self.finish(rank)
        said = [line for line in map(json.loads, (out / "metrics.jsonl").read_text().splitlines()) if line.get("event") == "zero"]
        return [self.sent_bytes(node) - sent for node, sent in enumerate(before)], said[-1]["volume_in_parameters"]

    def test_each_stage_sends_what_the_law_says(self):
        for stage, law in LAW.items():
            few, _ = self.bytes_of_run(stage, STEPS_FEW)
            more, said = self.bytes_of_run(stage, STEPS_MORE)
            saved = tensors_of(self.folder / f"{stage}-{STEPS_FEW}" / f"step-{STEPS_FEW:06}", "model")
            parameters = sum(len(raw) for _, _, raw in saved.values()) / FLOAT_BYTES
            for rank in range(RANKS):
                sent = (more[rank] - few[rank]) / (STEPS_MORE - STEPS_FEW) / FLOAT_BYTES
                moved = sent * RANKS / (RANKS - 1) / parameters
                what = f"stage {stage}, rank {rank}: {moved:.4f} parameters on the wire, {said:.4f} counted by the run, law {law}"
                print(what, flush=True)
                self.assertLess(abs(moved / law - 1), WIRE_SHARE_MAX, what)
                self.assertLess(abs(moved / said - 1), WIRE_SHARE_MAX, what)

    def test_a_codec_sends_the_bytes_that_the_run_counts(self):
        flags = ("--reduce", "int8", "--reduce-check-every", 0)
        few, _ = self.bytes_of_run(0, STEPS_FEW, *flags)
        more, _ = self.bytes_of_run(0, STEPS_MORE, *flags)
        lines = (self.folder / "-".join(map(str, (0, STEPS_MORE, *flags))) / "metrics.jsonl").read_text().splitlines()
        (counted,) = [line["bytes_sent_in_a_step"] for line in map(json.loads, lines) if line.get("event") == "zero"]
        for rank in range(RANKS):
            sent = (more[rank] - few[rank]) / (STEPS_MORE - STEPS_FEW)
            what = f"int8, rank {rank}: {sent:.0f} bytes on the wire, {counted} counted by the run"
            print(what, flush=True)
            self.assertLess(abs(sent / counted - 1), WIRE_SHARE_MAX, what)

    def test_a_save_sends_no_moments_and_weights_only_where_no_rank_has_them_whole(self):
        """Both nodes see the same --out."""
        for stage, weights_max in {2: 0, 3: 1}.items():
            rare, _ = self.bytes_of_run(stage, STEPS_MORE)
            often, _ = self.bytes_of_run(stage, STEPS_MORE, "--save-every", 1)
            saved = tensors_of(self.folder / f"{stage}-{STEPS_MORE}" / f"step-{STEPS_MORE:06}", "model")
            weights_bytes = sum(len(raw) for _, _, raw in saved.values())
            sent = sum(often) - sum(rare)
            in_weights = sent / (STEPS_MORE - 1) / weights_bytes
            what = f"stage {stage}: a save sends {in_weights:.4f} of the bytes of the weights, at most {weights_max}"
            print(what, flush=True)
            self.assertLess(in_weights, weights_max + WIRE_SHARE_MAX, what)


if __name__ == "__main__":
    unittest.main()
