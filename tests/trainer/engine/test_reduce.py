"""Compressed reduction between processes: resumed, with other numbers of ranks, given up, refused, and with a peer killed."""

import signal
import time

from engine import EngineTest, free_port, tensors_of

SMALL = ("--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 32, "--batch-size", 12)
END_SECONDS_MAX = 8  # with a machine that is busy; nobody waits for a limit


def floats_of(raw):
    return memoryview(raw).cast("f")


class Reduce(EngineTest):
    GROUPS = ("model", "optimizer", "reduction")

    def again(self, world_size, *flags, **more):
        self.port = free_port()
        return self.train_ranks(world_size, *SMALL, *flags, **more)

    def owed(self, step):
        """What all ranks owe together, by tensor, and how many they are."""
        total, ranks = {}, set()
        for name, (_, _, raw) in tensors_of(self.out / f"step-{step:06}", "reduction").items():
            if not name.startswith("error."):
                continue
            elements = len(tensors_of(self.out / f"step-{step:06}", "model")[name.removeprefix("error.")][2]) // 4
            errors = floats_of(raw)
            ranks.add(len(errors) // elements)
            total[name] = [sum(errors[at::elements]) for at in range(elements)]
        (count,) = ranks
        return total, count

    def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(self):
        """Also where its first step has other buckets."""
        for codec, ranks in (("int8", 2), ("int8", 3), ("powersgd", 2)):
            with self.subTest(codec=codec, ranks=ranks):
                whole, parts = self.folder / f"{codec}-{ranks}-whole", self.folder / f"{codec}-{ranks}-parts"
                flags = ("--reduce", codec, "--steps", 24)
                self.again(ranks, *flags, "--out", whole)
                self.again(ranks, *flags, "--save-every", 14, "--keep", 0, "--out", parts)
                (parts / "step-000024").rename(self.folder / f"{codec}-{ranks}-first")
                (parts / "metrics.jsonl").unlink()
                self.again(ranks, *flags, "--resume", "--out", parts)
                losses = self.losses(whole)
                self.assertEqual(self.losses(parts), {step: losses[step] for step in range(15, 25)})
                for stem in self.GROUPS:
                    self.assertEqual(tensors_of(whole / "step-000024", stem), tensors_of(parts / "step-000024", stem), stem)

    def test_what_is_owed_is_the_same_on_any_number_of_ranks(self):
        self.again(2, "--reduce", "int8", "--steps", 6)
        before, ranks = self.owed(6)
        self.assertEqual(ranks, 2)
        self.again(4, "--reduce", "int8", "--steps", 7, "--resume")
        # Four ranks that have nothing to do would save nothing: a step later they owe what that step has left.
        self.assertEqual(self.owed(7)[1], 4)
        self.again(1, "--reduce", "int8", "--steps", 8, "--resume")
        paid, ranks = self.owed(8)
        self.assertEqual(ranks, 1)
        self.assertEqual({value for values in paid.values() for value in values}, {0.0}, "one rank pays all")
        self.assertNotEqual({value for values in before.values() for value in values}, {0.0})
        out, _ = self.again(2, "--reduce", "powersgd", "--steps", 9, "--resume")[0]
        self.assertIn("resumed from", out)
        out, _ = self.again(2, "--steps", 10, "--resume")[0]
        self.assertIn("still owed in the checkpoint is left out: --reduce is fp32", out)

    def test_one_that_loses_too_much_is_given_up_and_stays_so(self):
        flags = ("--reduce", "int8", "--reduce-check-every", 3, "--reduce-check-min", 1)
        (out, err), _ = self.again(2, *flags, "--steps", 8)
        self.assertRegex(out, r"\nreduce int8 \| cosine to the exact gradient 0\.9\d{3} at step 3\n")
        self.assertRegex(err, r"reduce int8 is given up: the cosine 0\.9\d+ is below 1 \(--reduce-check-min\); from step 4 on gradients are")
        self.assertNotIn("at step 6", out)
        (event,) = [line for line in self.events() if line["event"] == "reduce"]
        self.assertEqual((event["at_step"], event["codec"], event["gave_up"]), (3, "int8", True))
        (out, _), _ = self.again(2, *flags, "--steps", 16, "--resume")
        self.assertNotIn("cosine to", out)

    def test_a_good_one_is_said_and_goes_on(self):
        (out, _), _ = self.again(2, "--reduce", "bf16", "--reduce-check-every", 4, "--steps", 8)
        self.assertEqual([line.split(" 1.0000 ")[1] for line in out.splitlines() if line.startswith("reduce bf16")], ["at step 4", "at step 8"])

    def test_a_peer_that_is_killed_in_the_middle_ends_the_others_at_once(self):
        for codec in ("int8", "powersgd"):
            self.port = free_port()
            flags = (*SMALL, "--reduce", codec, "--steps", 1_000_000, "--log-every", 1, "--out", self.folder / codec)
            ranks = [self.start(*flags, rank=rank, world_size=3) for rank in range(3)]
            for line in ranks[0].stdout:
                if line.startswith("step 20/"):
                    break
            begun = time.monotonic()
            ranks[1].send_signal(signal.SIGKILL)
            causes = [self.cause(self.finish(ranks[rank], 76)[1]) for rank in (0, 2)]
            self.assertLess(time.monotonic() - begun, END_SECONDS_MAX)
            for cause in causes:
                self.assertRegex(cause, r"rank 1 on node \S+ was lost, in phase step after step \d+")

    def test_a_peer_that_freezes_in_the_middle_is_named(self):
        """Its bytes never come, and no connection breaks: the watchdog's clock is what it was."""
        self.port = free_port()
        flags = (*SMALL, "--reduce", "int8", "--steps", 1_000_000, "--log-every", 1, "--limit", "silence=3")
        ranks = [self.start(*flags, rank=rank, world_size=2) for rank in range(2)]
        for line in ranks[0].stdout:
            if line.startswith("step 300/"):  # later than the first look at it
                break
        ranks[1].send_signal(signal.SIGSTOP)
        cause = self.cause(self.finish(ranks[0], 76)[1])
        self.assertRegex(cause, r"rank 1 on node \S+ is frozen or unreachable: no sign of life for 3 s")

    def test_where_it_can_not_be_it_is_refused(self):
        for flags, wanted in (
            (("--reduce", "int4"), '--reduce: is "int4"; it must be fp32, bf16, fp16, int8 or powersgd'),
            (("--reduce", "int8", "--zero", 2), '--reduce: is "int8"; it must be fp32 with --zero 2, '),
            (("--reduce", "bf16", "--deterministic"), '--reduce: is "bf16"; it must be fp32 with --deterministic, '),
            (("--reduce", "int8", "--reduce-rank", 4), '--reduce-rank: is "4"; it needs --reduce powersgd'),
            (("--reduce-check-every", 4), '--reduce-check-every: is "4"; it needs another --reduce than fp32'),
            (("--reduce", "powersgd", "--reduce-rank", 65), "--reduce-rank: "),
        ):
            _, err = self.train(*SMALL, "--steps", 1, *flags, code=78)
            self.assertIn(wanted, self.cause(err))
