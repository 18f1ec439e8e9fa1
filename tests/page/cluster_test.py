"""`tj ui` over a real API server: with rights, and without. Nothing runs pods there; a test writes what a kubelet would."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import page_test
from support.definition import wait_until_established
from support.waiting import until

ROOT = pathlib.Path(__file__).resolve().parents[2]
APISERVER = ROOT / "tools/cluster/apiserver"
JOB = {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": "seen"}, "spec": {"replicaSpecs": {"Worker": {
    "replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "none"}]}}}}}}


def answer_once(holds, ask):
    """Asks again, until `holds(status, content)`, and gives that content."""
    seen = ()

    def is_it():
        nonlocal seen
        seen = ask()
        return holds(*seen)
    until(page_test.DEADLINE_S, lambda: f"another answer than {seen}", is_it)
    return seen[1]


def pod(rank):
    labels = {"kubebrain.io/trainingjob": "seen", "kubebrain.io/worker-index": str(rank), "kubebrain.io/attempt": "0"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"seen-worker-{rank}", "labels": labels},
            "spec": {"containers": [{"name": "main", "image": "none"}]}}


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-page-cluster-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.addClassCleanup(subprocess.run, [APISERVER, "down", cls.folder], check=False, capture_output=True)
        subprocess.run([APISERVER, "up", cls.folder], check=True, stdout=subprocess.DEVNULL)
        cls.kubectl("apply", "-f", str(ROOT / "manifests/crd"))
        wait_until_established(cls.kubectl)

    @classmethod
    def kubectl(cls, *arguments, given=None):
        cache = pathlib.Path(os.environ.get("TRAININGJOB_CACHE", pathlib.Path.home() / ".cache/trainingjob"))
        done = subprocess.run([cache / "bin/kubectl", f"--kubeconfig={cls.folder}/admin.conf", *arguments], input=json.dumps(given),
                              text=True, check=False, capture_output=True, timeout=page_test.DEADLINE_S)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {arguments}: {done.stderr}")
        return done.stdout

    def ui(self, config):
        ui = page_test.Ui("--kubeconfig", str(self.folder / config))
        self.addCleanup(ui.close)
        return ui

    def until(self, ui, path, condition):
        """Asks again until the condition holds; the page asks every two seconds, this more often."""
        def ask():
            status, _, body = ui.authorized(path)
            return status, json.loads(body)
        return answer_once(lambda status, content: status == 200 and condition(content), ask)

    def test_jobs_pods_and_progress_are_followed(self):
        ui = self.ui("admin.conf")
        self.until(ui, "/api/jobs", lambda all_jobs: all_jobs["problem"] == "")
        self.kubectl("create", "-f", "-", given=JOB)
        self.until(ui, "/api/jobs", lambda all_jobs: [job["name"] for job in all_jobs["jobs"]] == ["seen"])
        for rank in (0, 1):
            self.kubectl("create", "-f", "-", given=pod(rank))
        for step in (10, 20):
            status = {"phase": "Running", "progress": {"step": step, "totalSteps": 100, "loss": 50 / step, "tokensPerSecond": 7.0,
                                                       "phase": "step", "updatedAt": f"2026-01-01T00:00:{step}Z"}}
            self.kubectl("patch", "tj", "seen", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
            self.until(ui, "/api/jobs/default/seen", lambda one, at=step: (one["job"]["progress"] or {}).get("step") == at)
        series = json.loads(ui.authorized("/api/jobs/default/seen/series")[2])
        self.assertEqual(series["loss"]["value"], [5.0, 2.5])
        one = self.until(ui, "/api/jobs/default/seen", lambda one: all(row["lives"] for row in one["ranks"]["rows"]))
        self.assertEqual([row["lives"][0]["state"] for row in one["ranks"]["rows"]], ["Pending", "Pending"])
        self.kubectl("delete", "pod", "seen-worker-1", "--grace-period=0", "--force")
        self.until(ui, "/api/jobs/default/seen", lambda one: one["ranks"]["rows"][1]["lives"][0]["state"] == "Gone")
        self.kubectl("delete", "tj", "seen")
        self.until(ui, "/api/jobs", lambda all_jobs: all_jobs["jobs"] == [])

    def test_a_missing_right_is_said_in_the_servers_words(self):
        ui = self.ui("nobody.conf")
        answer = self.until(ui, "/api/jobs", lambda all_jobs: all_jobs["problem"] != "")
        self.assertIn("cannot list resource \"trainingjobs\"", answer["problem"])
        self.assertEqual(answer["jobs"], [])
