"""Checkpoints of several ranks, beside the training, and how a run stops in each of its phases."""

import json
import os
import pathlib
import re
import select
import shutil
import signal
import time

from engine import REPORTS, EngineTest, free_port, tensors_of

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 8)
# Large enough for a save that a test can see: 3.2 million parameters, 38 MB.
LARGE = ("--layers", 4, "--width", 256, "--heads", 4, "--seq-len", 16, "--batch-size", 4)
SHARDS = ["00001-of-00002.safetensors", "00002-of-00002.safetensors"]


class Checkpoints(EngineTest):
    def wait_for(self, condition, process, what):
        """Polls until the condition holds while the process lives; its output is drained meanwhile."""
        deadline = time.monotonic() + self.SECONDS_MAX
        said = b""
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}: not within {self.SECONDS_MAX} s")
            if select.select([process.stdout], [], [], 0.001)[0]:
                chunk = os.read(process.stdout.fileno(), 65536)
                said += chunk
                self.assertTrue(chunk, f"{what}: the run ended before\n{said.decode()}")
        return said.decode()

    def drafts(self):
        return [path.name for path in self.out.glob(".draft-step-*")] if self.out.exists() else []

    def until_line(self, process, start):
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith(start):
                return "".join(said)
        self.fail(f"no line {start!r}:\n" + "".join(said) + process.stderr.read())

    # -- several writers

    def test_two_ranks_write_a_part_each_and_any_number_of_ranks_reads_it(self):
        (out, _), _ = self.train_ranks(2, *SMALL, "--steps", 4, "--save-every", 4)
        self.assertRegex(out, r"checkpoint writers +all 2 ranks +computed: they share --out")
        folder = self.out / "step-000004"
        self.assertEqual(
            sorted(path.name for path in folder.iterdir()),
            ["config.json", "manifest.json"]
            + [f"model-{shard}" for shard in SHARDS]
            + ["model.safetensors.index.json"]
            + [f"optimizer-{shard}" for shard in SHARDS]
            + ["optimizer.safetensors.index.json"],
        )
        sizes = [(folder / f"model-{shard}").stat().st_size for shard in SHARDS]
        sizes = [size + (folder / f"optimizer-{shard}").stat().st_size for size, shard in zip(sizes, SHARDS)]
        self.assertLess(abs(sizes[0] - sizes[1]) / sum(sizes), 0.1)
        model, optimizer = tensors_of(folder, "model"), tensors_of(folder, "optimizer")
        # One rank reads what two have written, and has nothing to do but to find the same.
        out, _ = self.train(*SMALL, "--steps", 5, "--resume")
        self.assertIn(f"resumed from {folder}: 4 steps done", out)
        one = self.out / "step-000005"
        self.assertTrue((one / "model.safetensors").exists())
        self.assertEqual(set(tensors_of(one, "model")), set(model))
        self.assertEqual(set(tensors_of(one, "optimizer")), set(optimizer))
        # And two what one has written.
        self.port = free_port()
        (out, _), _ = self.train_ranks(2, *SMALL, "--steps", 6, "--resume")
        self.assertIn(f"resumed from {one}: 5 steps done", out)

    def test_the_same_numbers_whoever_writes_them(self):
        self.train_ranks(2, *SMALL, "--steps", 3)
        shared = self.out / "step-000003"
        alone = self.folder / "alone"
        self.port = free_port()
        ranks = [
            self.start(*SMALL, "--steps", 3, "--out", out, rank=rank, world_size=2)
            for rank, out in enumerate((alone, self.folder / "not there"))
        ]
        (out, _), _ = (self.finish(rank) for rank in ranks)
        self.assertRegex(
            out, r"checkpoint writers +rank 0 alone +computed: rank 1 on node \S+ does not see rank 0's --out"
        )
        self.assertEqual([path.name for path in (self.folder / "not there").iterdir()], ["logs"])
        for stem in ("model", "optimizer"):
            self.assertEqual(tensors_of(shared, stem), tensors_of(alone / "step-000003", stem))

    def test_damaged_shards_fall_back_by_name_and_cause(self):
        self.train_ranks(2, *SMALL, "--steps", 8, "--save-every", 2, "--keep", 0)
        first, second = (f"model-{shard}" for shard in SHARDS)
        (self.out / "step-000008" / second).unlink()
        swapped = self.out / "step-000006"
        (swapped / first).rename(swapped / "x")
        (swapped / second).rename(swapped / first)
        (swapped / "x").rename(swapped / second)
        shutil.copy(self.out / "step-000002" / first, self.out / "step-000004" / first)
        out, _ = self.train(*SMALL, "--steps", 3, "--resume", "--keep", 0)
        self.assertIn(f"step-000008: {second}: can't be opened: No such file or directory", out)
        self.assertRegex(out, f"step-000006: {first}: (is damaged|is cut short|is too long).*\\(it is {second}\\)")
        self.assertRegex(out, f"step-000004: {first}: is damaged: .*\\(it is of step 2\\)")
        self.assertIn(f"resumed from {self.out}/step-000002", out)

    def test_a_rank_that_can_not_write_its_part_is_the_cause_and_the_old_checkpoint_stays(self):
        self.train_ranks(2, *SMALL, "--steps", 2)
        self.port = free_port()
        ranks = [self.start(*SMALL, "--steps", 100000, "--save-every", 50, "--resume", rank=0, world_size=2)]
        ranks.append(
            self.start(
                *SMALL,
                *("--steps", 100000, "--save-every", 50, "--resume"),
                rank=1,
                world_size=2,
                preexec_fn=self.limit_files,
            )
        )
        errors = [self.cause(self.finish(rank, 74)[1]) for rank in ranks]
        self.assertRegex(errors[0], r"rank 1 on node \S+: step 50 could not be saved: .*can't be written: File too large")
        self.assertRegex(errors[1], r"rank 1: step 50 could not be saved: .*can't be written: File too large")
        names = sorted(path.name for path in self.out.iterdir())
        self.assertEqual(names, [*REPORTS, "step-000002", "tensorboard"])

    @staticmethod
    def limit_files():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    # -- beside the training

    def test_what_a_save_costs_is_said_and_written_down(self):
        out, _ = self.train(*SMALL, "--steps", 30, "--save-every", 15)
        self.assertRegex(out, r"(?m)^checkpoint \S+/step-000015 \| stall \d+\.\d ms \| written in \d+\.\d\d s$")
        self.assertRegex(out, r"(?m)^checkpoint of step 15 \| time of a step beside it [+-]\d+\.\d % \(10 steps\)$")
        lines = [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]
        saved = [line for line in lines if line.get("event") == "checkpoint"]
        self.assertEqual([line["saved_step"] for line in saved], [15, 30])
        self.assertGreaterEqual(saved[0]["stall_ms"], 0)
        self.assertGreater(saved[0]["written_seconds"], 0)
        (cost,) = [line for line in lines if line.get("event") == "interference"]
        self.assertEqual((cost["saved_step"], cost["steps"]), (15, 10))

    def test_a_save_that_is_due_waits_for_the_one_before(self):
        out, _ = self.train(*LARGE, "--steps", 4, "--save-every", 1, "--keep", 0)
        self.assertRegex(out, r"the save of step \d waits: step \d is still being written")
        names = sorted(path.name for path in self.out.glob("step-*"))
        self.assertEqual(names, [f"step-00000{step}" for step in range(1, 5)])

    def test_multiples_are_kept_for_ever(self):
        self.train(*SMALL, "--steps", 7, "--save-every", 1, "--keep", 2, "--keep-every", 3)
        names = sorted(path.name for path in self.out.glob("step-*"))
        self.assertEqual(names, ["step-000003", "step-000006", "step-000007"])

    # -- asked to stop

    def assert_stopped_early(self, process):
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 75)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertIn("asked to stop by signal 15 before the first step; there is nothing to save", self.cause(err))
        self.assertEqual(self.words(1 if "rank 1" in err else 0)["reason"], "Interrupted")

    def test_sigterm_at_the_rendezvous(self):
        process = self.start(*SMALL, "--steps", 4, rank=0, world_size=2)

        def is_waiting():
            return f":{self.port:04X} " in pathlib.Path("/proc/net/tcp6").read_text()

        self.wait_for(is_waiting, process, "rank 0 serves the rendezvous")
        self.assert_stopped_early(process)
        self.assertEqual(list(self.out.glob("step-*")), [])

    def test_sigterm_while_a_checkpoint_is_verified(self):
        self.train(*SMALL, "--steps", 2)
        manifest = self.out / "step-000002" / "manifest.json"
        document = json.loads(manifest.read_text())
        # Takes long to read, and no place: a file with a hole.
        huge = self.out / "step-000002" / "zz.bin"
        with open(huge, "wb") as file:
            file.truncate(1 << 40)
        document["files"]["zz.bin"] = {"bytes": 1 << 40, "sha256": "0" * 64}
        manifest.write_text(json.dumps(document))
        process = self.start(*SMALL, "--steps", 4, "--resume")

        def is_reading():
            folder = f"/proc/{process.pid}/fd"
            return any(os.path.basename(target) == "zz.bin" for target in map(link_target, listed(folder)))

        self.wait_for(is_reading, process, "the checkpoint is verified")
        self.assert_stopped_early(process)
        self.assertTrue(manifest.exists())

    def test_sigterm_in_the_middle_of_an_accumulating_step_saves_the_last_finished_one(self):
        flags = (*SMALL, "--batch-size", 256, "--accumulation", 128)
        whole = self.folder / "whole"
        self.train(*flags, "--steps", 4, "--out", whole)
        process = self.start(*flags, "--steps", 4)
        self.until_line(process, "step 2/4")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 75)
        stopped_at = self.words()["step"]
        self.assertIn(stopped_at, (2, 3))
        self.assertIn(f"step {stopped_at} of 4 is saved, --resume goes on from there", self.cause(err))
        self.train(*flags, "--steps", 4, "--resume")
        self.assertEqual(self.losses(whole), self.losses())
        for name in ("model.safetensors", "optimizer.safetensors", "manifest.json"):
            self.assertEqual(
                (whole / "step-000004" / name).read_bytes(), (self.out / "step-000004" / name).read_bytes(), name
            )

    def test_sigterm_during_a_save_completes_it(self):
        process = self.start(*LARGE, "--steps", 100000, "--save-every", 3, "--keep", 0)
        self.wait_for(self.drafts, process, "a save begins")
        step = int(re.match(r"\.draft-step-(\d+)", self.drafts()[0]).group(1))
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 75)
        self.assertIn("is saved, --resume goes on from there", self.cause(err))
        self.assertEqual(self.drafts(), [])
        self.assertTrue((self.out / f"step-{step:06}" / "manifest.json").exists())
        self.assertTrue((self.out / f"step-{self.words()['step']:06}" / "manifest.json").exists())

    # -- weights from elsewhere

    def test_a_run_begins_with_the_weights_of_another(self):
        self.train_ranks(2, *SMALL, "--steps", 3)
        source = self.out / "step-000003"
        second = self.folder / "second"
        # A rate at which no weight changes: what is saved is what was read.
        still = ("--lr", "1e-30", "--min-lr", 0, "--warmup-steps", 0, "--weight-decay", 0)
        out, _ = self.train("--init-from", source, *still, "--steps", 1, "--batch-size", 8, "--out", second)
        self.assertIn(f"weights of {source}; the optimizer starts afresh", out)
        self.assertRegex(out, r"(?m)^ *layers +2 +init-from")
        before, after = tensors_of(source, "model"), tensors_of(second / "step-000001", "model")
        self.assertEqual(before, after)

    def test_flags_that_contradict_the_weights_are_refused_with_both_values(self):
        self.train(*SMALL, "--steps", 1)
        source = self.out / "step-000001"
        _, err = self.train("--init-from", source, "--layers", 3, "--out", self.folder / "b", code=78)
        self.assertEqual(self.cause(err), f'trainer: --layers: is "3"; {source} has 2')
        _, err = self.train("--init-from", self.folder / "none", "--out", self.folder / "b", code=65)
        self.assertIn(f"--init-from {self.folder}/none: does not exist", self.cause(err))
        self.assertEqual(self.words()["reason"], "InitFromNotUsable")

    def test_a_checkpoint_goes_before_weights_from_elsewhere(self):
        self.train(*SMALL, "--steps", 2)
        flags = ("--init-from", self.out / "step-000002", "--batch-size", 8, "--resume")
        second = self.folder / "second"
        out, _ = self.train(*flags, "--steps", 1, "--out", second)
        self.assertIn(f"--resume: no checkpoint in {second} yet; training starts from {self.out}/step-000002", out)
        out, _ = self.train(*flags, "--steps", 2, "--out", second)
        self.assertIn(f"resumed from {second}/step-000001: 1 steps done", out)


def listed(folder):
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


def link_target(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""
