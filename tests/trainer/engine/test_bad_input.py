"""Each bad input ends with its own exit code, and the cause is the last thing said."""

import os
import resource
import subprocess

from engine import ENGINE, REPORTS, EngineTest

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 8, "--steps", 4)


class BadInput(EngineTest):
    def assert_fails(self, code, reason, message, *flags, **start):
        _, err = self.train(*flags, code=code, **start)
        self.assertEqual(self.cause(err), "trainer: " + message)
        words = self.words()
        self.assertEqual((words["reason"], words["message"]), (reason, message))

    def test_an_empty_folder(self):
        self.data = self.folder / "empty"
        self.data.mkdir()
        self.assert_fails(
            65, "BadData", f"--data {self.data}: is empty: 0 files with 0 bytes in them; it must hold text"
        )

    def test_a_missing_folder(self):
        self.data = "/no/text"
        self.assert_fails(
            65, "BadData", "--data /no/text: does not exist; it must be a folder of text files, or tokens"
        )

    def test_an_unreadable_file(self):
        (self.data / "b.txt").symlink_to("b.txt")
        self.assert_fails(65, "BadData", f"{self.data}/b.txt: can't be read: Too many levels of symbolic links")

    def test_too_little_text_for_one_sequence(self):
        (self.data / "a.txt").write_text("x" * 63)
        self.assert_fails(
            65, "BadData", f"--data {self.data}: holds 64 tokens in 1 files; one sequence of --seq-len 64 needs 65"
        )

    def test_just_enough_text_for_one_sequence(self):
        (self.data / "a.txt").write_text("x" * 32)
        self.train(*SMALL)

    def test_an_out_folder_that_can_not_be(self):
        blocked = self.data / "a.txt" / "out"
        self.assert_fails(
            74, "OutNotWritable", f"--out {blocked}: can't be created: Not a directory", "--out", blocked
        )

    def test_a_disk_that_is_full_at_the_save(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        _, err = self.train(*SMALL, code=74, preexec_fn=limit)
        self.assertRegex(
            self.cause(err),
            r"^trainer: step 4 could not be saved: .*model\.safetensors: can't be written: File too large$",
        )
        self.assertEqual(self.words()["reason"], "SaveFailed")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), [*REPORTS, "tensorboard"])

    def test_a_disk_that_fills_up_leaves_the_old_checkpoint(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        self.train(*SMALL)
        before = {path: path.read_bytes() for path in (self.out / "step-000004").iterdir()}
        _, err = self.train(*SMALL, "--steps", 8, "--resume", code=74, preexec_fn=limit)
        self.assertRegex(self.cause(err), r"^trainer: step 8 could not be saved: ")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), [*REPORTS, "step-000004", "tensorboard"])
        self.assertEqual(before, {path: path.read_bytes() for path in (self.out / "step-000004").iterdir()})

    def test_a_folder_that_nobody_may_write_to(self):
        self.assert_fails(
            74, "OutNotWritable", "--out /sys/out: can't be created: Operation not permitted", *SMALL, "--out", "/sys/out"
        )

    def test_two_workers_hear_of_a_save_that_failed(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        ranks = [
            self.start(*SMALL, rank=rank, world_size=2, preexec_fn=limit if rank == 0 else None) for rank in range(2)
        ]
        errors = [self.cause(self.finish(rank, 74)[1]) for rank in ranks]
        self.assertRegex(errors[0], r"^trainer: rank 0: step 4 could not be saved: ")
        self.assertRegex(errors[1], r"^trainer: rank 1: rank 0 on node \S+: step 4 could not be saved: ")

    def test_a_batch_that_does_not_divide(self):
        self.assert_fails(
            78,
            "BadConfig",
            '--batch-size: is "8"; it must be a multiple of ranks x accumulation = 1 x 3 = 3, such as 6',
            *SMALL,
            "--accumulation",
            3,
        )

    def test_bad_flags(self):
        self.assert_fails(78, "BadConfig", '--steps: is "ten"; it must be a whole number from 1', "--steps", "ten")
        self.assert_fails(
            78,
            "BadConfig",
            '--model: is "gpt5"; it must be one of gpt2-nano, gpt2-tiny, gpt2-tiny-zh, gpt2-small, gpt2-medium, gpt2-large, gpt2-xl, '
            "pi0, pi05, pi0-dummy, pi05-dummy, pi0-nano, pi05-nano, qwen-vggt-nano, qwen2.5-vl-3b, qwen2.5-vl-7b, taehv-nano, taehv-nano-super, taehv, taew2_1, taecvx, taeos1_3, taehv1_5, taehv1_5_super, taeh3, taew2_2, taew2_2_super, taeltx, taeltx_2, taeltx2_3, "
            "taeltx2_3_wide",
            "--model",
            "gpt5",
        )
        _, err = self.train("--stepz", 3, code=64)
        self.assertIn("--stepz", self.cause(err))
        self.assertEqual(self.words()["reason"], "BadUsage")

    def test_missing_flags(self):
        run = subprocess.run([ENGINE, "train", "--data", "/text"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 64)
        self.assertIn("--out is required", run.stderr)

    def test_a_rate_that_makes_the_loss_explode(self):
        _, err = self.train(*SMALL, "--lr", "1e30", "--warmup-steps", 0, "--grad-clip", 0, code=78)
        self.assertRegex(self.cause(err), r"the loss of step \d is -?(nan|inf); --lr is 1e\+30 and should be lower$")

    def test_bad_launch_environments(self):
        good = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        for name, value in (("WORLD_SIZE", "two"), ("RANK", "2"), ("MASTER_PORT", "70000")):
            _, err = self.train(*SMALL, code=78, environment={**good, name: value})
            self.assertIn(name, self.cause(err))
            self.assertIn(value, self.cause(err))
        without = {name: value for name, value in good.items() if name != "WORLD_SIZE"}
        _, err = self.train(*SMALL, code=78, environment=without)
        self.assertIn("WORLD_SIZE", self.cause(err))

    def test_help_is_not_a_failure(self):
        run = subprocess.run([ENGINE, "train", "--help"], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("--rendezvous-timeout-seconds", run.stdout)
        self.assertNotIn(os.environ.get("HOME", "?") + "/", run.stdout)
