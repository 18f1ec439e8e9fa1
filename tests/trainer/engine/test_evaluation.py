"""The loss on data that is not trained on: what it is, that it changes nothing, and what ends it."""

import json
import pathlib
import re
import signal
import subprocess

from engine import ENGINE
from test_reports import ReportTest

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 16)
PREPARE = pathlib.Path(ENGINE).with_name("trainer"), "prepare"
OTHER = "pack my box with five dozen liquor jugs, and how vexingly quick daft zebras jump! " * 200


class Evaluation(ReportTest):
    def setUp(self):
        super().setUp()
        self.other = self.folder_with("other", OTHER)

    def folder_with(self, name, text):
        folder = self.folder / name
        folder.mkdir()
        (folder / "b.txt").write_text(text)
        return folder

    def prepared(self, name, text, *flags):
        """A folder of tokens."""
        folder, text = self.folder / name, self.folder_with(f"text-{name}", text)
        subprocess.run([*PREPARE, "--input", text, "--output", folder, *flags], capture_output=True, check=True,
                       env=self.environment(0, 1))
        return folder

    def start_long(self, *flags):
        """Two ranks in an evaluation of minutes, after step 3."""
        minutes = self.folder_with("minutes", OTHER * 400)
        flags = (*SMALL, "--steps", 1000, "--eval-data", minutes, "--eval-every", 3, "--eval-batches", 10**9, *flags)
        ranks = [self.quiet(*flags, rank=rank, world_size=2) for rank in range(2)]
        spent = re.compile(r'^trainer_goodput_seconds_total\{kind="eval"\} (.*)$', re.MULTILINE)
        # Not less: a rank tells the others four times a second what it does.
        self.until(ranks[0], lambda seen: seen["phase"] == "eval" and float(spent.search(self.get("/metrics"))[1]) > 1)
        return ranks

    def evaluations(self, out=None):
        """{step: mean loss}"""
        return {line["at_step"]: line["eval_loss"] for line in self.metrics(out) if line.get("event") == "eval"}

    def test_it_comes_when_due_and_changes_no_bit_of_the_training(self):
        plain, watched = self.folder / "plain", self.folder / "watched"
        flags = (*SMALL, "--steps", 5, "--dropout", 0.2)
        self.train(*flags, "--out", plain)
        out, _ = self.train(*flags, "--out", watched, "--eval-data", self.other, "--eval-every", 2)
        self.assert_same_bits(plain, watched, 5)
        self.assertEqual(list(self.evaluations(watched)), [2, 4, 5])
        self.assertRegex(out, r"\neval after step 5 \| loss \d\.\d{4} \| 8192 targets in \d+\.\d\d s\n")

    def test_a_val_part_of_the_data_is_evaluated_unless_a_flag_says_otherwise(self):
        self.data = self.prepared("tokens", OTHER.replace("! ", "!\n") * 20, "--val", "20%")
        losses = {}
        for name, more in (("default", ()), ("named", ("--eval-data", self.data)), ("each", ("--eval-every", 1)),
                           ("none", ("--eval-data", "none"))):
            said, _ = self.train(*SMALL, "--steps", 2, *more, "--out", self.folder / name)
            losses[name] = self.evaluations(self.folder / name)
            if name == "default":
                self.assertRegex(said, r"(?m)^ *eval-data +\S+/tokens +default: the val part of --data; --eval-data none leaves it out$")
        self.assertEqual(list(losses["default"]), [2])
        self.assertEqual(losses["named"], losses["default"])
        self.assertEqual(list(losses["each"]), [1, 2])
        self.assertEqual(losses["none"], {})
        self.assert_same_bits(self.folder / "none", self.folder / "each", 2)

    def test_a_val_part_of_less_than_a_sequence_is_left_out_and_named(self):
        self.data = self.prepared("tokens", '{"text": "abc"}\n' * 200, "--val", "2%", "--format", "jsonl")
        said, _ = self.train(*SMALL, "--steps", 2)
        self.assertRegex(said, r"(?m)^ *eval-data +none +default: the val part of \S+/tokens holds \d+ tokens; one sequence needs 33$")
        self.assertEqual(self.evaluations(), {})
        _, err = self.train(*SMALL, "--steps", 2, "--eval-every", 1, "--out", self.folder / "other", code=78)
        self.assertIn('--eval-every: is "1"; it needs --eval-data, or a val part of --data (`trainer prepare --val 1%`)', self.cause(err))

    def test_it_is_the_loss_that_training_there_begins_with(self):
        first, there = self.folder / "first", self.folder / "there"
        self.train(*SMALL, "--steps", 4, "--out", first, "--eval-data", self.other, "--eval-batches", 1)
        self.data = self.other
        self.train("--init-from", first / "step-000004", "--batch-size", 16, "--steps", 1, "--out", there)
        self.assertAlmostEqual(self.evaluations(first)[4], self.losses(there)[1], delta=1e-5)

    def test_ranks_passes_and_stages_of_zero_give_the_same_bits(self):
        flags = (*SMALL, "--deterministic", "--steps", 3, "--eval-data", self.other, "--eval-every", 1)
        alone = self.folder / "alone"
        self.train(*flags, "--out", alone)
        for ranks, passes, stage in ((1, 4, 0), (2, 2, 0), (2, 2, 1), (2, 2, 2), (2, 1, 3), (4, 1, 3)):
            out = self.folder / f"{ranks}x{passes}-zero{stage}"
            sharded = ("--zero", stage, *(("--zero-persist", 0) if stage == 3 else ()))
            self.train_ranks(ranks, *flags, "--accumulation", passes, *sharded, "--out", out)
            self.assertEqual(self.evaluations(out), self.evaluations(alone), out.name)
            self.assert_same_bits(out, alone, 3)

    def test_without_determinism_it_is_close(self):
        flags = (*SMALL, "--steps", 3, "--eval-data", self.other)
        alone = self.folder / "alone"
        self.train(*flags, "--out", alone)
        for stage, precision, bound in ((0, "fp32", 1e-5), (3, "fp32", 1e-5), (0, "bf16", 5e-3), (3, "bf16", 5e-3)):
            out = self.folder / f"zero{stage}-{precision}"
            self.train_ranks(2, *flags, "--zero", stage, "--precision", precision, "--out", out)
            self.assertAlmostEqual(self.evaluations(out)[3] / self.evaluations(alone)[3], 1, delta=bound)

    def test_asked_to_stop_in_it_all_end_with_a_checkpoint(self):
        ranks = self.start_long()
        ranks[1].send_signal(signal.SIGTERM)
        self.finish(ranks[1], 75)
        self.finish(ranks[0], 75)
        self.assertEqual(self.words()["step"], 3)
        self.assertTrue((self.out / "step-000003" / "manifest.json").exists())
        self.assertEqual(self.evaluations(), {})
        ledger = json.loads((self.out / "ledger.json").read_text())
        self.assertGreater(ledger["seconds"]["eval"], 0)

    def test_who_stands_still_in_it_is_named_with_its_phase(self):
        ranks = self.start_long("--limit", "silence=2")
        ranks[1].send_signal(signal.SIGSTOP)
        _, err = self.finish(ranks[0], 76)
        self.assertRegex(self.cause(err), r"rank 1 on node \S+ is frozen or unreachable.* in phase eval after step 3")
        ranks[1].kill()
        ranks[1].communicate()

    def test_bad_input_names_the_flag(self):
        few = self.folder_with("few", "abc")
        for flags, code, cause in (
            (("--eval-every", 2), 78, '--eval-every: is "2"; it needs --eval-data'),
            (("--eval-data", "none", "--eval-every", 2), 78, '--eval-every: is "2"; it needs --eval-data'),
            (("--eval-data", "none", "--eval-data", self.other), 78, '--eval-data: is "none"; it must stand alone'),
            (("--eval-data", self.other, "--eval-batches", 0), 78,
             '--eval-batches: is "0"; it must be a whole number from 1'),
            (("--eval-data", self.folder / "nowhere"), 65, f"--eval-data {self.folder}/nowhere: does not exist"),
            (("--eval-data", few), 65, f"--eval-data {few}: holds 4 tokens"),
        ):
            _, err = self.train(*SMALL, "--steps", 2, *flags, code=code)
            self.assertIn(cause, self.cause(err))
