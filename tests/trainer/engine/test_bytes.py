"""Paths, flags and variables are any bytes; what is made of them for others is UTF-8."""

import json
import os
import re
import subprocess

from engine import ENGINE, EngineTest

SMALL = ("--layers", 1, "--width", 16, "--heads", 2, "--seq-len", 16, "--batch-size", 4, "--steps", 2)
BAD = os.fsdecode(b"r\xe9s")  # Latin-1
SHOWN = "r\N{REPLACEMENT CHARACTER}s"


class Bytes(EngineTest):
    def setUp(self):
        super().setUp()
        named = self.folder / BAD
        named.mkdir()
        self.data = self.data.rename(named / "text")
        self.out = named / "out"

    def assert_valid_and_shown(self):
        lines = self.metrics()  # decodes
        saved = [line["path"] for line in lines if line.get("event") == "checkpoint"]
        self.assertTrue(saved)
        for path in saved:
            self.assertIn(SHOWN, path)
        for log in self.out.glob("logs/*"):
            log.read_text(encoding="utf-8")
        for file in self.out.glob("tensorboard/*"):
            self.assertIn(SHOWN.encode(), file.read_bytes())
            self.assertNotIn(os.fsencode(BAD), file.read_bytes())

    def test_a_run_with_all_its_folders(self):
        flags = (*SMALL, "--save-every", 1, "--eval-data", self.data)
        out, _ = self.train(*flags, environment={"NODE_NAME": BAD})
        self.assertRegex(out, rf"(?m)^checkpoint \S*{SHOWN}/out/step-000002 \|")
        self.assertIn("joined in", out)
        self.assert_valid_and_shown()
        self.train(*flags, "--steps", 3, "--resume", "--log-dir", self.out / BAD, "--tensorboard", self.out / BAD)
        self.assert_valid_and_shown()
        self.train(*SMALL, "--init-from", self.out / "step-000003", "--out", self.folder / (BAD + "2"))

    def test_two_ranks(self):
        ranks = [
            self.start(*SMALL, "--save-every", 1, rank=rank, world_size=2, environment={"NODE_NAME": BAD})
            for rank in range(2)
        ]
        for rank in ranks:
            self.finish(rank)
        self.assert_valid_and_shown()

    def test_a_cause_keeps_its_own_exit_code(self):
        _, err = self.train(*SMALL, "--data", self.folder / BAD / "none", code=65)
        self.assertIn(f"{SHOWN}/none: does not exist", self.cause(err))
        self.assertIn(f"{SHOWN}/none: does not exist", self.words()["message"])
        (self.out / "step-000002").mkdir(parents=True)
        _, err = self.train(*SMALL, "--resume", code=65)
        self.assertIn(SHOWN, self.words()["message"])

    def test_a_save_that_fails_in_mid_run_says_so_with_74(self):
        self.train(*SMALL, "--steps", 2)
        (self.out / ".draft-step-000003").write_text("")
        process = self.start(*SMALL, "--steps", 100000, "--save-every", 5, "--resume")
        for line in process.stdout:
            if line.startswith("step 3/"):
                break
        # Nobody may make a draft from here on: the folder is a file.
        self.out.rename(self.folder / "away")
        self.out.write_text("")
        _, err = self.finish(process, 74)
        self.assertIn("could not be saved", self.cause(err))
        self.assertIn(SHOWN, self.cause(err))

    def test_no_flag_and_no_variable_ends_in_a_bug(self):
        """Each flag of the command line, and each variable that is read, with bytes that are no UTF-8."""
        text = subprocess.run([ENGINE, "train", "--help"], capture_output=True, text=True, check=True).stdout
        flags = re.findall(r"(?m)^  (--[a-z-]+) VALUE", text)
        self.assertGreater(len(flags), 30)
        cases = [((flag, BAD), {}) for flag in flags]
        cases += [((os.fsdecode(b"--r\xe9s"), "1"), {}), ((BAD,), {})]
        names = ("NODE_NAME", "TRAININGJOB_NAME", "TRAININGJOB_NAMESPACE", "TRAININGJOB_UID", "TRAININGJOB_ATTEMPT",
                 "POD_IP", "WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES",
                 "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "SLURM_JOB_ID", "TERM")
        cases += [(("--progress-port", "off"), {name: BAD}) for name in names]
        for more, environment in cases:
            with self.subTest(flags=[os.fsencode(word) for word in more], environment=list(environment)):
                self.out = self.folder / BAD / f"out-{len(list((self.folder / BAD).iterdir()))}"
                process = self.start(*SMALL, "--steps", 1, "--rendezvous-timeout-seconds", 1, *more,
                                     environment=environment, cwd=self.folder)
                out, err = process.communicate(timeout=self.SECONDS_MAX)
                self.assertIn(process.returncode, (0, 64, 65, 69, 74, 78), f"{out}\n{err}")
                json.loads((self.folder / "words-0").read_text(encoding="utf-8"))
