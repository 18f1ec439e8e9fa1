"""manifests/examples/run_2nodes: two machines without a cluster, and the same training as the manifests beside it."""

import pathlib
import re
import unittest

from engine import ENGINE, EngineTest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "manifests/examples"
SCRIPT = EXAMPLES / "run_2nodes"
# So small that it trains in a second; flags behind -- go before those of the script.
LITTLE = ("--", "--layers", 1, "--width", 16, "--heads", 2, "--seq-len", 16, "--batch-size", 8, "--accumulation", 2,
          "--log-every", 1)
OF_A_PLACE = ("--data", "--out")


class TwoNodes(EngineTest):
    def run_script(self, *words, path=None, **variables):
        environment = self.environment(0, 1, **{"DATA": str(self.data), "MASTER_PORT": str(self.port), **variables})
        environment["PATH"] = f"{path or pathlib.Path(ENGINE).parent}:{environment['PATH']}"
        return self.spawn([SCRIPT, *map(str, words)], environment)

    def train_pair(self, epochs, outs):
        pair = [self.run_script(rank, "127.0.0.1", "tiny", epochs, *LITTLE, OUT=str(out),
                                TRAININGJOB_TERMINATION_LOG=str(self.folder / f"words-{rank}")) for rank, out in enumerate(outs)]
        return [self.finish(process)[0] for process in pair]

    def test_two_machines_train_together_and_go_on(self):
        outs = [self.out, self.folder / "out of the other"]
        first, second = self.train_pair(0.1, outs)
        samples = (len((self.data / "a.txt").read_text())) // 16
        steps = -(-samples // 80)
        self.assertRegex(first, rf"(?m)\bsteps +{steps} +computed: 0.1 epochs of {samples:,} samples / 8$")
        for rank, out in enumerate((first, second)):
            self.assertRegex(out, rf"rank {rank}/2 joined in .* \(master 127.0.0.1:{self.port}\)")
        self.assertRegex(first, rf"step {steps}/{steps} \| loss")
        self.assertTrue(list((self.out / "tensorboard").iterdir()))
        first, _ = self.train_pair(0.2, outs)
        self.assertIn(f"{steps} steps done", first)

    def test_it_asks_for_what_the_manifests_ask_for(self):
        """By a trainer that only tells its words."""
        fake = self.folder / "bin"
        fake.mkdir()
        (fake / "trainer").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (fake / "trainer").chmod(0o755)
        for size in ("tiny", "small"):
            out, _ = self.finish(self.run_script(1, "node-a", size, path=fake))
            launch, train = (part.split("\n") for part in out.strip().split("\n--\n"))
            self.assertEqual(launch, ["launch", "--world-size", "2", "--gpus-per-node", "1", "--node-rank", "1", "--master-addr",
                                      "node-a"])
            self.assertEqual(train[:2], ["trainer", "train"])
            asked = re.findall(r"^(--\S+)(?:\n([^-].*))?$", "\n".join(train[2:]), re.MULTILINE)
            manifest = (EXAMPLES / f"gpt2-{size}-2node.yaml").read_text()
            wanted = re.findall(r"(?m)^ +- (--[a-z-]+)=?(\S*)", manifest)
            self.assertEqual(*(sorted(flag for flag in flags if flag[0] not in OF_A_PLACE) for flags in (asked, wanted)))
            self.assertIn(("--out", f"out/gpt2-{size}-2node"), asked)
            self.assertIn(f"/gpt2-{size}-2node", dict(wanted)["--out"])

    def test_wrong_words_are_named_with_what_is_right(self):
        rank = "it must be 0 on the master, 1 on the other machine"
        for words, told in (
            ((), f"the rank is missing; {rank}"),
            ((2, "node-a"), f'the rank is "2"; {rank}'),
            ((0,), "the master is missing; it must be a name or an address of machine 0"),
            ((0, "http://node-a/"), 'the master is "http://node-a/"; it must be a name or an address of machine 0'),
            ((0, "node-a", "medium"), 'the size is "medium"; it must be tiny or small'),
            ((0, "node-a", "tiny", "five"), 'the epochs are "five"; it must be a number such as 5 or 0.5'),
            ((0, "node-a", "tiny", 5, "--lr"), '"--lr" is one word too many; flags of trainer train stand behind --'),
        ):
            _, err = self.finish(self.run_script(*words), 64)
            self.assertEqual(err.splitlines()[0], f"run_2nodes: {told}")
            self.assertIn("usage: run_2nodes <rank> <master> [tiny|small] [epochs]", err)
        _, err = self.finish(self.run_script(0, "node-a", DATA="/no/text"), 64)
        self.assertIn("DATA is /no/text, and there is no such file or folder on this machine", err)
        _, err = self.finish(self.run_script(0, "node-a", "tiny", 0), 78)  # what only the trainer knows, it says
        self.assertIn('--epochs: is "0"; it must be a number greater than 0', err)


if __name__ == "__main__":
    unittest.main()
