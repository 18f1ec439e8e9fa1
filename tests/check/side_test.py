"""What the end-to-end stories hold true from the side: that it sees a rank twice, mixed gangs and time running backwards."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("e2e", ".")]
from side import Side  # noqa: E402


def pod(uid, rank, attempt, world=2, ready=True, leaving=False):
    meta = {"uid": uid, "name": f"mnist-worker-{rank}", "namespace": "default", "resourceVersion": "1",
            "labels": {"kubebrain.io/trainingjob": "mnist", "kubebrain.io/worker-index": str(rank),
                       "kubebrain.io/attempt": str(attempt)},
            "ownerReferences": [{"uid": "job", "controller": True}]}
    if leaving:
        meta["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return {"metadata": meta, "spec": {"containers": [{"env": [{"name": "WORLD_SIZE", "value": str(world)}]}]},
            "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}


def job(phase, attempt=0, counted=0, most=3):
    return {"metadata": {"uid": "job", "name": "mnist", "namespace": "default", "resourceVersion": "1"},
            "spec": {"runPolicy": {"maxRestarts": most}},
            "status": {"phase": phase, "attempt": attempt, "restartsCounted": counted}}


class SideTest(unittest.TestCase):
    def setUp(self):
        self.side = Side()

    def take_pods(self, *pods):
        for now, seen in enumerate(pods):
            self.side.take_pod("ADDED", seen, now)

    def take_jobs(self, *jobs):
        for seen in jobs:
            self.side.take_job("MODIFIED", seen, 0)

    def test_a_gang_is_complete_when_its_last_rank_is_ready(self):
        self.take_pods(pod("a", 0, 0), pod("b", 1, 0, ready=False), pod("b", 1, 0), pod("b", 1, 0))
        self.assertEqual(self.side.gangs, {("job", 0): 2})
        self.assertEqual(self.side.problems, [])

    def test_a_gang_that_follows_another_is_no_problem(self):
        self.take_pods(pod("a", 0, 0), pod("b", 1, 0), pod("b", 1, 0, leaving=True))
        self.side.take_pod("DELETED", pod("a", 0, 0), 4)
        self.take_pods(pod("c", 0, 1))
        self.assertEqual(self.side.problems, [])

    def test_two_pods_of_one_rank(self):
        self.take_pods(pod("a", 0, 0), pod("b", 0, 0))
        self.assertIn("has rank 0, and so have", self.side.problems[0])

    def test_two_attempts_ready_at_once(self):
        self.take_pods(pod("a", 0, 0), pod("b", 1, 1))
        self.assertIn("different attempts: [0, 1]", self.side.problems[0])

    def test_two_worlds_ready_at_once(self):
        self.take_pods(pod("a", 0, 0, world=2), pod("b", 1, 0, world=3))
        self.assertIn("different worlds", self.side.problems[0])

    def test_a_pod_of_an_attempt_that_is_over(self):
        self.take_pods(pod("a", 0, 1, ready=False), pod("b", 1, 0, ready=False))
        self.assertIn("is made for attempt 0 after one of attempt 1", self.side.problems[0])

    def test_an_end_that_is_none(self):
        self.take_jobs(job("Failed"), job("Running"))
        self.assertIn("was Failed and is Running", self.side.problems[0])

    def test_an_attempt_that_goes_back(self):
        self.take_jobs(job("Running", attempt=2), job("Running", attempt=1))
        self.assertIn("goes back from attempt 2 to 1", self.side.problems[0])

    def test_more_restarts_than_allowed(self):
        self.take_jobs(job("Restarting", attempt=4, counted=4))
        self.assertIn("has 4 restarts that count, and may have 3", self.side.problems[0])
