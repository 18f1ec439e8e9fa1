"""Ranks that are made the same one step late or each few steps: what they save, how they go on, and how they end."""

import re
import signal
import struct
import time

from engine import EngineTest, bits_of

SMALL = ("--layers", 1, "--width", 32, "--heads", 2, "--seq-len", 16, "--batch-size", 8)
KINDS = {
    "late": ("--sync", "late", "--accumulation", 2),
    "local": ("--sync", "local", "--sync-every", 4),
    "diloco": ("--sync", "diloco", "--sync-every", 4),
}
STEPS = 12
END_SECONDS_MAX = 15


class Sync(EngineTest):
    def stems(self, folder):
        return {re.split(r"[.-]", path.name)[0] for path in folder.glob("*.safetensors")}

    def start_two(self, *flags):
        return [self.start(*SMALL, *flags, rank=rank, world_size=2) for rank in range(2)]

    def wait_for_step(self, process, step):
        for line in process.stdout:
            if line.startswith(f"step {step}/"):
                return
        self.fail("no step: " + process.stderr.read())

    def assert_goes_on(self, kind, at, stems):
        """From step `at`, of which these groups were saved, with the bits of a run that was never stopped."""
        flags = (*SMALL, *KINDS[kind], "--steps", STEPS)
        self.out = self.folder / f"{kind}-{at}"
        self.train_ranks(2, *flags, "--save-every", at)
        self.assertEqual(self.stems(self.out / f"step-{at:06}"), {"model", "optimizer", *stems})
        end = self.out / f"step-{STEPS:06}"
        wanted = {stem: bits_of(end, stem) for stem in self.stems(end)}
        losses = self.losses()
        end.rename(self.folder / f"wanted-{kind}-{at}")
        (self.out / "metrics.jsonl").unlink()
        self.train_ranks(2, *flags, "--resume")
        self.assertEqual(self.losses(), {step: losses[step] for step in range(at + 1, STEPS + 1)})
        for stem, bits in wanted.items():
            self.assertEqual(bits_of(end, stem), bits, f"{stem} of {kind} from step {at}")

    def weights_after(self, steps, *flags):
        self.out = self.folder / "-".join(map(str, (steps, *flags)))
        self.train_ranks(2, *SMALL, "--steps", steps, "--schedule", "constant", "--warmup-steps", 0, *flags)
        tensors = bits_of(self.out / f"step-{steps:06}", "model").values()
        return [number for _, raw in tensors for number in struct.unpack(f"<{len(raw) // 4}f", raw)]

    def farthest(self, one, other):
        return max(abs(left - right) for left, right in zip(one, other, strict=True))

    def test_late_applies_in_the_second_step_what_the_first_has_found(self):
        first, second = (self.weights_after(steps) for steps in (1, 2))
        late = self.weights_after(2, "--sync", "late")
        self.assertLess(self.farthest(late, first), 1e-4)
        self.assertGreater(self.farthest(late, second), 1e-3, "an update moves weights by about the learning rate, 3e-3")

    def test_diloco_that_goes_all_the_way_is_an_average(self):
        averaged = self.weights_after(1, "--sync", "local")
        moved = self.weights_after(1, "--sync", "diloco", "--outer-lr", 1, "--outer-momentum", 0)
        alone = self.weights_after(1)
        self.assertLess(self.farthest(averaged, moved), 1e-5)
        self.assertGreater(self.farthest(averaged, alone), 1e-3, "AdamW's first step goes by signs, which ranks have of their own")

    def test_late_goes_on_with_the_gradient_that_waits(self):
        self.assert_goes_on("late", 7, {"sync"})

    def test_local_goes_on_from_a_synchronisation_and_from_between_two(self):
        self.assert_goes_on("local", 8, set())
        self.assert_goes_on("local", 7, {"ranks", "round"})

    def test_diloco_goes_on_from_a_synchronisation_and_from_between_two(self):
        self.assert_goes_on("diloco", 8, {"sync", "ranks"})
        self.assert_goes_on("diloco", 7, {"sync", "ranks", "round"})

    def test_a_stop_between_two_synchronisations_costs_nothing(self):
        flags = (*KINDS["diloco"][:2], "--sync-every", 1000, "--steps", 30)
        for rank in self.start_two(*flags):
            self.finish(rank)
        wanted, self.out = self.out, self.folder / "stopped"
        ranks = self.start_two(*flags)
        self.wait_for_step(ranks[0], 5)
        ranks[1].send_signal(signal.SIGTERM)
        for rank in ranks:
            self.finish(rank, 75)
        stopped_at = self.words()["step"]
        self.assertLess(stopped_at, 30)
        self.assertIn("round", self.stems(self.out / f"step-{stopped_at:06}"))
        for rank in self.start_two(*flags, "--resume"):
            self.finish(rank)
        self.assert_same_bits(wanted, self.out, 30)

    def test_without_a_shared_disk_rank_0_writes_for_all(self):
        flags = (*SMALL, *KINDS["diloco"], "--steps", STEPS)
        self.train_ranks(2, *flags)
        wanted, self.out = self.out, self.folder / "first"
        other = self.folder / "other"

        def train_apart(*more):
            ranks = [
                self.start(*flags, *more, "--out", out, rank=rank, world_size=2)
                for rank, out in enumerate((self.out, other))
            ]
            return [self.finish(rank) for rank in ranks]

        train_apart("--save-every", 7)
        (self.out / f"step-{STEPS:06}").rename(self.folder / "away")
        (out, _), _ = train_apart("--resume")
        self.assertIn("7 steps done", out)
        self.assert_same_bits(wanted, self.out, STEPS)

    def test_other_ranks_go_on_from_the_last_synchronisation_and_say_so(self):
        self.train_ranks(2, *SMALL, *KINDS["diloco"], "--steps", 7, "--save-every", 6)
        (self.out / "step-000007").rename(self.folder / "away")
        out, _ = self.train(*SMALL, *KINDS["diloco"], "--steps", 9, "--resume")
        self.assertIn("the checkpoint was made with --sync diloco on 2 ranks, this run is --sync diloco on 1 rank: ", out)
        self.assertIn("6 steps done", out)
        out, _ = self.train(*SMALL, "--steps", 10, "--resume")
        self.assertIn("this run is --sync step: the outer momentum begins afresh", out)
        self.assertEqual(max(self.losses()), 10)

    def test_a_killed_rank_is_missed_at_once(self):
        for kind in (KINDS["late"], ("--sync", "local", "--sync-every", 1_000_000)):
            self.out = self.folder / kind[1]
            ranks = self.start_two(*kind, "--steps", 1_000_000)
            self.wait_for_step(ranks[0], 3)
            begun = time.monotonic()
            ranks[1].kill()
            _, err = self.finish(ranks[0], 76)
            self.assertLess(time.monotonic() - begun, END_SECONDS_MAX)
            self.assertRegex(self.cause(err), r"^trainer: rank 0: rank 1 on node \S+ was lost, in phase step after step \d+")

    def test_each_step_tells_how_long_it_waited_for_others(self):
        self.train_ranks(2, *SMALL, *KINDS["local"], "--steps", 3)
        waits = [line["exposed_communication_ms"] for line in self.metrics() if "step" in line]
        self.assertEqual(len(waits), 3)
        self.assertTrue(all(wait > 0 for wait in waits), waits)

    def test_buckets_are_chosen_by_what_the_first_steps_show(self):
        (out, _), (other, _) = self.train_ranks(2, *SMALL, "--bucket-mib", "auto", "--steps", 5)
        self.assertRegex(out, r"buckets of \d+ MiB: \d+ ms of each step's reduction can't be hidden \(")
        self.assertNotIn("buckets of", other)
        plain, self.out = self.losses(), self.folder / "plain"
        self.train_ranks(2, *SMALL, "--steps", 5)
        self.assertEqual(self.losses(), plain, "two ranks add in one order, whatever the buckets")
