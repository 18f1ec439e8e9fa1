"""Our operator as a process beside the control plane, its jobs, and the kubelet's part in the end of a pod."""
import time
import urllib.request

from support import client as paths
from support.places import OPERATOR
from support.ports import free_port
from support.waiting import until

KEEP_FILE_PAGES = "--keep-file-pages"  # as other programs do
READY_SECONDS_MAX = 60
PROGRESS_PORT = "kubebrain.io/progress-port"
CONTAINER = {"name": "pytorch", "image": "example.com/train:1", "command": ["train"],
             "env": [{"name": "DATA", "value": "/data"}],
             "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}


class Ours:
    name = "ours"
    agents = ("trainingjob-operator",)
    path = staticmethod(paths.jobs)

    def start(self, plane, *flags):
        self.address = f"127.0.0.1:{free_port()}"
        self.process = plane.start("operator", OPERATOR, "--kubeconfig", plane.kubeconfig, "--listen", self.address, *flags)
        until(READY_SECONDS_MAX, "the operator to be ready", lambda: self.fetch("/readyz") is not None)

    def restart(self, plane, *flags):
        plane.stop(self.process)
        self.start(plane, *flags)

    def fetch(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def writes(self):
        """What it has written so far by its own count, by verb and resource; leases apart from the rest."""
        found = {}
        for line in self.fetch("/metrics").splitlines():
            if line.startswith("trainingjob_api_requests_total{"):
                labels = dict(part.split("=") for part in line[line.index("{") + 1:line.index("}")].split(","))
                verb, resource = labels["verb"].strip('"'), labels["resource"].strip('"')
                if verb not in ("get", "list", "watch"):
                    key = f"{verb} {resource}"
                    found[key] = found.get(key, 0) + int(float(line.rsplit(" ", 1)[1]))
        return found

    def is_empty(self):
        """Nothing is cached and nothing waits."""
        return all(float(line.rsplit(" ", 1)[1]) == 0 for line in self.fetch("/metrics").splitlines()
                   if line.startswith(("trainingjob_cache_objects{", "trainingjob_queue_depth ")))

    @staticmethod
    def job(name, namespace, workers, **run_policy):
        """Nobody listens at the addresses of its pods: it is not asked for its progress."""
        worker = {"replicas": workers, "template": {"spec": {"containers": [CONTAINER]}}}
        spec = {"replicaSpecs": {"Worker": worker}, "runPolicy": {"restartBackoffSeconds": 0, **run_policy}}
        return {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob",
                "metadata": {"name": name, "namespace": namespace, "annotations": {PROGRESS_PORT: "off"}}, "spec": spec}

    @staticmethod
    def is_done(job):
        return job.get("status", {}).get("phase") == "Succeeded"


def end_pod(client, namespace, name, exit_code):
    """What a kubelet would write when the container ends."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    container = client.get(paths.pods(namespace, name))["spec"]["containers"][0]
    state = {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed",
                            "startedAt": now, "finishedAt": now}}
    status = {"phase": "Failed" if exit_code else "Succeeded",
              "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"}],
              "containerStatuses": [{"name": container["name"], "image": container["image"], "imageID": "",
                                     "ready": False, "restartCount": 0, "state": state}]}
    client.patch(paths.pods(namespace, name) + "/status", {"status": status}, paths.STRATEGIC_PATCH)
