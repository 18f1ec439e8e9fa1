"""A process of an attempt that is over changes no checkpoint of a later one."""

import re
import signal

from engine import REPORTS, EngineTest, free_port

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 8, "--progress-port", "off")


def job(attempt, uid="uid-1"):
    return {"TRAININGJOB_NAME": "nano", "TRAININGJOB_UID": uid, "TRAININGJOB_ATTEMPT": str(attempt)}


def alone(attempt, uid="uid-1"):
    place = {"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    return job(attempt, uid) | place


class Fencing(EngineTest):
    def files(self):
        return {path: path.read_bytes() for path in sorted(self.out.glob("step-*/*"))}

    def until_step(self, process, step):
        for line in process.stdout:
            if line.startswith(f"step {step}/"):
                return
        self.fail(f"no step {step}: " + process.stderr.read())

    def test_one_that_comes_back_commits_nothing_over_or_beside_the_later_one(self):
        stale = self.start(*SMALL, "--steps", 1000000, "--keep", 1, environment=alone(0))
        self.until_step(stale, 30)
        self.train(*SMALL, "--steps", 4, "--save-every", 2, "--resume", environment=alone(1))
        before = self.files()
        stale.send_signal(signal.SIGTERM)
        _, err = self.finish(stale, 78)
        self.assertRegex(
            self.cause(err),
            rf"^trainer: step \d+ could not be saved: --out {re.escape(str(self.out))}: attempt 1 of the job has begun in "
            r"it; this process is of attempt 0, which is over$",
        )
        self.assertEqual(self.words()["reason"], "Superseded")
        self.assertEqual(self.files(), before)
        self.assertEqual(sorted(path.name for path in self.out.glob("step-*")), ["step-000002", "step-000004"])
        out, _ = self.train(*SMALL, "--steps", 5, "--resume", environment=alone(2))
        self.assertIn(f"resumed from {self.out}/step-000004", out)

    def test_both_ranks_of_one_that_comes_back_end(self):
        ranks = [
            self.start(*SMALL, "--steps", 1000000, rank=rank, world_size=2, environment=job(0)) for rank in range(2)
        ]
        self.until_step(ranks[0], 3)
        self.port = free_port()
        self.train(*SMALL, "--steps", 2, "--resume", environment=alone(1))
        ranks[1].send_signal(signal.SIGTERM)
        for rank in ranks:
            _, err = self.finish(rank, 78)
            self.assertIn("attempt 1 of the job has begun in it", self.cause(err))
        self.assertEqual([path.name for path in self.out.glob("step-*")], ["step-000002"])

    def test_one_that_begins_late_does_not_begin(self):
        self.train(*SMALL, "--steps", 2, environment=alone(2))
        (self.out / ".draft-step-000009-of-attempt-2").mkdir()
        _, err = self.train(*SMALL, "--steps", 4, "--resume", environment=alone(1), code=78)
        self.assertIn("attempt 2 of the job has begun in it; this process is of attempt 1", self.cause(err))
        self.assertEqual(self.words()["reason"], "Superseded")
        self.assertTrue((self.out / ".draft-step-000009-of-attempt-2").exists())

    def test_another_job_takes_the_folder_over(self):
        stale = self.start(*SMALL, "--steps", 1000000, environment=alone(3, uid="uid-1"))
        self.until_step(stale, 3)
        self.train(*SMALL, "--steps", 2, "--resume", environment=alone(0, uid="uid-2"))
        stale.send_signal(signal.SIGTERM)
        _, err = self.finish(stale, 78)
        self.assertIn("the job with uid uid-2 has begun in it", self.cause(err))

    def test_without_an_operator_nothing_is_written_and_nothing_asked(self):
        self.train(*SMALL, "--steps", 2)
        self.assertEqual(
            sorted(path.name for path in self.out.iterdir()), sorted([*REPORTS, "step-000002", "tensorboard"])
        )
        self.train(*SMALL, "--steps", 3, "--resume", environment=alone(5))
        self.assertTrue((self.out / "attempt.json").exists())
        self.train(*SMALL, "--steps", 4, "--resume")
