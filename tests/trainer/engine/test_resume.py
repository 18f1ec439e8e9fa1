"""Stopping and going on: bit for bit on one worker, from the newest checkpoint that is whole."""

import json
import re
import signal

from engine import BAD_DISK, EngineTest, free_port, read_safetensors

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 8)


def cut_in_half(path):
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


class Resume(EngineTest):
    def assert_same_state(self, one, other):
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual((one / name).read_bytes(), (other / name).read_bytes(), name)

    def stop_after(self, process, step):
        """Sends SIGTERM once `step` was said; returns what was said before."""
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith(f"step {step}/"):
                process.send_signal(signal.SIGTERM)
                return "".join(said)
        self.fail("the run ended before: " + "".join(said) + process.stderr.read())

    def test_stopped_at_25_and_resumed_equals_uninterrupted_bit_for_bit(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.train("--steps", 50, "--batch-size", 8, "--out", whole)
        process = self.start("--steps", 50, "--batch-size", 8, "--save-every", 25, "--out", parts)
        self.stop_after(process, 25)
        _, err = self.finish(process, 75)
        self.assertRegex(self.cause(err), r"asked to stop by signal 15; step \d+ of 50 is saved, --resume goes on")
        self.assertEqual(self.words()["reason"], "Interrupted")
        stopped_at = self.words()["step"]
        self.assertGreaterEqual(stopped_at, 25)
        self.assertLess(stopped_at, 50)
        out, _ = self.train("--steps", 50, "--batch-size", 8, "--resume", "--out", parts)
        self.assertIn(f"resumed from {parts}/step-{stopped_at:06}", out)
        self.assertEqual(self.losses(whole), self.losses(parts))
        self.assert_same_state(whole / "step-000050", parts / "step-000050")

    def test_a_checkpoint_of_step_25_goes_on_bit_for_bit(self):
        whole = self.folder / "whole"
        self.train(*SMALL, "--steps", 50, "--save-every", 25, "--out", whole)
        wanted = self.folder / "wanted"
        (whole / "step-000050").rename(wanted)
        losses = self.losses(whole)
        (whole / "metrics.jsonl").unlink()
        out, _ = self.train(*SMALL, "--steps", 50, "--resume", "--out", whole)
        self.assertIn("step-000025: 25 steps done, next sample 200", out)
        self.assertEqual(self.losses(whole), {step: losses[step] for step in range(26, 51)})
        self.assert_same_state(wanted, whole / "step-000050")

    def test_a_folder_that_a_person_has_named_is_read_by_all_ranks(self):
        self.train(*SMALL, "--steps", 10)
        (self.out / "step-000010").rename(self.out / "step-10")
        for out, _ in self.train_ranks(2, *SMALL, "--steps", 12, "--resume"):
            self.assertNotIn("not usable", out)
        self.assertEqual(max(self.losses()), 12)
        self.assertIn(10, [event["at_step"] for event in self.events() if event["event"] == "resume"])

    def test_two_workers_resume_what_only_rank_0_can_see(self):
        whole = self.folder / "whole"
        self.train(*SMALL, "--steps", 20, "--save-every", 10, "--out", whole)
        losses = self.losses(whole)
        for path in (whole / "step-000020").iterdir():
            path.unlink()
        (whole / "step-000020").rmdir()
        flags = (*SMALL, "--steps", 20, "--resume")
        ranks = [
            self.start(*flags, "--out", out, rank=rank, world_size=2)
            for rank, out in enumerate((whole, self.folder / "nothing here"))
        ]
        for rank in ranks:
            self.finish(rank)
        self.assertEqual([path.name for path in (self.folder / "nothing here").iterdir()], ["logs"])
        for step, loss in losses.items():
            self.assertLess(abs(loss - self.losses(whole)[step]) / loss, 1e-4, step)

    def test_without_a_checkpoint_it_starts_from_scratch_and_says_so(self):
        out, _ = self.train(*SMALL, "--steps", 2, "--resume")
        self.assertIn(f"--resume: no checkpoint in {self.out} yet; training starts from scratch", out)
        self.assertIn("step 1/2", out)

    def test_a_newest_cut_in_half_falls_back_by_name_and_cause(self):
        self.train(*SMALL, "--steps", 6, "--save-every", 3)
        cut_in_half(self.out / "step-000006" / "model.safetensors")
        out, _ = self.train(*SMALL, "--steps", 8, "--resume")
        self.assertRegex(
            out,
            r"checkpoint not usable: step-000006: model.safetensors: is cut short: "
            r"\d+ bytes where the manifest says \d+",
        )
        self.assertIn(f"resumed from {self.out}/step-000003: 3 steps done", out)
        self.assertEqual(re.findall(r"(?m)^step (\d)/8", out), ["4", "5", "6", "7", "8"])

    def damage_the_newest_then_stop_the_next_run(self, *flags, world_size=1):
        """Steps 10 and 20 are saved, 20 is cut by 100 bytes; the run that goes on from 10 is stopped. Returns where."""
        self.train_ranks(world_size, *SMALL, "--steps", 20, "--save-every", 10, *flags)
        newest = max(self.out.glob("step-000020/optimizer*.safetensors"))
        newest.write_bytes(newest.read_bytes()[:-100])
        self.port = free_port()
        ranks = [
            self.start(*SMALL, "--steps", 4000, "--resume", "--keep", 1, *flags, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        self.assertIn(f"resumed from {self.out}/step-000010", self.stop_after(ranks[0], 14))
        for rank in ranks:
            self.finish(rank, 75)
        stopped_at = self.words()["step"]
        self.assertIn(f"step {stopped_at} of 4000 is saved, --resume goes on from there", self.words()["message"])
        return stopped_at

    def test_what_was_just_saved_outlives_a_damaged_newer_one(self):
        stopped_at = self.damage_the_newest_then_stop_the_next_run()
        out, _ = self.train(*SMALL, "--steps", stopped_at + 1, "--resume")
        self.assertIn(f"resumed from {self.out}/step-{stopped_at:06}", out)

    def test_two_ranks_with_zero_keep_what_they_just_saved(self):
        stopped_at = self.damage_the_newest_then_stop_the_next_run("--zero", 3, "--keep-every", 20, world_size=2)
        out, _ = self.train(*SMALL, "--steps", stopped_at + 1, "--resume")
        self.assertIn(f"resumed from {self.out}/step-{stopped_at:06}", out)

    def test_a_damaged_one_is_set_aside_and_said(self):
        self.train(*SMALL, "--steps", 6, "--save-every", 3)
        cut_in_half(self.out / "step-000006" / "model.safetensors")
        out, _ = self.train(*SMALL, "--steps", 7, "--resume")
        self.assertIn("step-000006 is set aside as damaged-step-000006, and may be removed", out)
        self.assertTrue((self.out / "damaged-step-000006" / "manifest.json").exists())
        (event,) = [line for line in self.events() if line["event"] == "damaged"]
        self.assertEqual((event["checkpoint"], event["set_aside_as"]), ("step-000006", "damaged-step-000006"))
        self.assertRegex(event["cause"], "^model.safetensors: is cut short: ")
        out, _ = self.train(*SMALL, "--steps", 8, "--resume")
        self.assertNotIn("not usable", out)

    def test_none_usable_is_an_error(self):
        self.train(*SMALL, "--steps", 4, "--save-every", 2)
        cut_in_half(self.out / "step-000004" / "manifest.json")
        cut_in_half(self.out / "step-000002" / "optimizer.safetensors")
        _, err = self.train(*SMALL, "--steps", 8, "--resume", code=65)
        self.assertIn(
            f"--resume: none of the 2 checkpoints in {self.out} is usable; the newest: step-000004: "
            "manifest.json: is not a JSON object",
            self.cause(err),
        )
        self.assertEqual(self.words()["reason"], "NoUsableCheckpoint")

    def test_a_disk_that_fails_while_weights_are_read_is_worth_another_attempt(self):
        """What is verified and can then not be read any more is no damage that the next attempt would meet, too."""
        self.train(*SMALL, "--steps", 2)
        weights = self.out / "step-000002/model.safetensors"
        bad = {"LD_PRELOAD": BAD_DISK, "BAD_SECTOR": str(weights)}
        why = rf"{weights}: can't be read at byte \d+: Input/output error"
        for flags, reason, named in (
            (("--resume",), "NoUsableCheckpoint", "--resume: "),
            (("--init-from", weights.parent, "--out", self.folder / "other"), "InitFromNotUsable", "--init-from "),
        ):
            with self.subTest(reason):
                ranks = [self.start(*SMALL, "--steps", 3, *flags, rank=rank, world_size=2, environment=bad if rank == 0 else None) for rank in range(2)]
                for rank in ranks:
                    self.assertRegex(self.cause(self.finish(rank, 74)[1]), f"{named}{why}$")
                self.assertEqual(self.words()["reason"], reason)

    def test_two_workers_hear_that_none_is_usable(self):
        self.train(*SMALL, "--steps", 2)
        cut_in_half(self.out / "step-000002" / "model.safetensors")
        outputs = self.train_ranks(2, *SMALL, "--steps", 4, "--resume", code=65)
        for _, err in outputs:
            self.assertIn("is usable; the newest: step-000002: model.safetensors: is cut short", self.cause(err))

    def test_another_model_or_seed_is_refused_with_both_values(self):
        self.train(*SMALL, "--steps", 2)
        _, err = self.train(*SMALL, "--layers", 3, "--steps", 4, "--resume", code=78)
        self.assertIn("--layers is 3, the checkpoint step 2", self.cause(err))
        self.assertIn("was made with 2", self.cause(err))
        _, err = self.train(*SMALL, "--seed", 7, "--steps", 4, "--resume", code=78)
        self.assertIn("--seed is 7", self.cause(err))
        self.assertIn("was made with 1337", self.cause(err))

    def test_another_form_of_gelu_is_refused_with_both_values(self):
        self.train(*SMALL, "--steps", 2)
        _, err = self.train(*SMALL, "--steps", 4, "--resume", "--gelu", "erf", code=78)
        self.assertEqual(self.cause(err), f"trainer: --gelu is erf, the checkpoint step 2 in {self.out} was made with tanh; give the same, or "
                                          "another --out")
        # Of before there was a choice: it was tanh.
        path = self.out / "step-000002/manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["model"]["gelu"]
        path.write_text(json.dumps(manifest))
        _, err = self.train(*SMALL, "--steps", 4, "--resume", "--gelu", "erf", code=78)
        self.assertIn("was made with tanh", self.cause(err))
        self.train(*SMALL, "--steps", 3, "--resume")
        other = self.folder / "other"
        self.train(*SMALL, "--steps", 2, "--gelu", "erf", "--out", other)
        weights = [(out / "step-000002/model.safetensors").read_bytes() for out in (self.out, other)]
        self.assertNotEqual(*weights)
        _, err = self.train(*SMALL, "--steps", 4, "--resume", "--out", other, code=78)
        self.assertIn(f"--gelu is tanh, the checkpoint step 2 in {other} was made with erf", self.cause(err))
        # Weights say theirs.
        out, _ = self.train("--init-from", other / "step-000002", "--batch-size", 8, "--steps", 1, "--out", self.folder / "third")
        self.assertRegex(out, r"(?m)^gelu +erf +init-from$")
        _, err = self.train("--init-from", other / "step-000002", "--gelu", "tanh", code=78)
        self.assertEqual(self.cause(err), f'trainer: --gelu: is "tanh"; {other}/step-000002 has erf')

    def test_a_finished_run_has_nothing_to_do(self):
        self.train(*SMALL, "--steps", 2)
        before, _ = read_safetensors(self.out / "step-000002" / "model.safetensors")
        out, _ = self.train(*SMALL, "--steps", 2, "--resume")
        self.assertRegex(out, r"nothing to do: 2 of 2 steps are done \| final loss .* \| checkpoint .*step-000002\ngoodput .*\n$")
        after, _ = read_safetensors(self.out / "step-000002" / "model.safetensors")
        self.assertEqual(before, after)

    def test_an_earlier_run_is_not_overwritten_by_accident(self):
        self.train(*SMALL, "--steps", 2)
        _, err = self.train(*SMALL, "--steps", 2, code=78)
        self.assertIn("already holds step-000002; --resume goes on from it, or another folder is needed", err)

    def test_sigterm_to_one_of_two_workers_stops_both_with_a_checkpoint(self):
        flags = (*SMALL, "--steps", 100000)
        ranks = [self.start(*flags, rank=rank, world_size=2) for rank in range(2)]
        for line in ranks[0].stdout:
            if line.startswith("step 3/"):
                break
        ranks[1].send_signal(signal.SIGTERM)
        (out, err0), (_, err1) = (self.finish(rank, 75) for rank in ranks)
        self.assertIn("asked to stop by signal 15", self.cause(err1))
        self.assertRegex(self.cause(err0), r"rank 1 on node \S+ was asked to stop by signal 15; step \d+ of 100000 is saved")
        self.assertEqual(self.words(0)["step"], self.words(1)["step"])
        self.assertTrue((self.out / f"step-{self.words(0)['step']:06}" / "manifest.json").exists())
