"""Who takes part: ours, the bare client, and the operators that others use. Each knows how it is started on a control plane
and how a job of it is written; the pods of all have the same container."""
import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

from ours import CONTAINER
from support.places import BIN, BUILD
from support.ports import free_port
from support.waiting import until

BARE_CLIENT = BUILD / "tests/bench/operator/bare_client"
READY_SECONDS_MAX = 60
RUN_SECONDS_MAX = 600


class Bare:
    """The client alone; a `go` is one run of it."""
    name = "bare"

    def __init__(self, connections):
        self.connections = connections

    def prepare(self, plane, jobs, mode):
        self.popen = subprocess.Popen([BARE_CLIENT, plane.kubeconfig, str(self.connections), mode], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.say(json.dumps(jobs))
        if self.popen.stdout.readline() != "ready\n":
            raise RuntimeError(self.popen.communicate()[1])

    def say(self, line):
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def go(self):
        """When it began; the pods come after this call."""
        began = time.monotonic()
        self.say("go")
        return began

    def finish(self):
        seconds, trouble = self.popen.communicate(timeout=RUN_SECONDS_MAX)
        if self.popen.returncode != 0:
            raise RuntimeError(trouble)
        return float(seconds)


class TrainingOperator:
    """Kubeflow training-operator v1.8.1: PyTorchJob, outside the cluster, with its default limits."""
    name = "training-operator"
    agents = ("training-operator", "training-operator.v1")
    namespace = "kubeflow"
    certificates = pathlib.Path("/tmp/k8s-webhook-server/serving-certs")  # fixed in its source
    webhook = "validator.training-operator.kubeflow.org"

    @staticmethod
    def path(namespace, name=""):
        return f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs" + (f"/{name}" if name else "")

    def start(self, plane):
        plane.apply(BIN / "training-operator.crd.yaml")
        plane.namespace(self.namespace)
        secrets = f"/api/v1/namespaces/{self.namespace}/secrets"
        plane.api.create(secrets, {"metadata": {"name": "training-operator-webhook-cert"}})
        # Without a webhook in it: nothing of the cluster could reach one that runs out here.
        plane.api.create("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                         {"metadata": {"name": self.webhook}, "webhooks": []})
        self.process = plane.start(
            "training-operator", BIN / "training-operator", "--enable-scheme=pytorchjob",
            f"--metrics-bind-address=127.0.0.1:{free_port()}",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}", f"--kubeconfig={plane.kubeconfig}",
            f"--webhook-server-port={free_port()}", "--zap-log-level=error")

        def certificates():
            plane.check()
            return plane.api.get(f"{secrets}/training-operator-webhook-cert").get("data")
        data = until(READY_SECONDS_MAX, "the webhook's certificate", certificates)
        self.certificates.mkdir(parents=True, exist_ok=True)
        for name, content in data.items():
            (self.certificates / name).write_bytes(base64.b64decode(content))

    @staticmethod
    def job(name, namespace, workers):
        worker = {"replicas": workers, "restartPolicy": "Never", "template": {"spec": {"containers": [CONTAINER]}}}
        return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
                "metadata": {"name": name, "namespace": namespace}, "spec": {"pytorchReplicaSpecs": {"Worker": worker}}}

    @staticmethod
    def is_done(job):
        return any(condition["type"] == "Succeeded" and condition["status"] == "True"
                   for condition in job.get("status", {}).get("conditions", []))

    def clean(self):
        shutil.rmtree(self.certificates, ignore_errors=True)


class JobSet:
    """JobSet v0.8.2 over the Job controller. Its webhooks only fill in defaults, which stand in the job below; they
    are left out, so nothing waits for them."""
    name = "jobset"
    agents = ("jobset", "manager", "kube-controller-manager")

    @staticmethod
    def path(namespace, name=""):
        return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets" + (f"/{name}" if name else "")

    def start(self, plane):
        plane.apply(BIN / "jobset.crd.yaml")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj_jobset_"))
        for kind, source in (("tls.crt", "server.crt"), ("tls.key", "server.key")):
            shutil.copy(plane.folder / source, self.folder / kind)
        config = {"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration",
                  "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
                  "webhook": {"port": free_port(), "host": "127.0.0.1", "certDir": str(self.folder)}}
        (self.folder / "config.yaml").write_text(json.dumps(config))
        health = f"127.0.0.1:{free_port()}"
        self.process = plane.start(
            "jobset", BIN / "jobset", f"--config={self.folder / 'config.yaml'}", f"--kubeconfig={plane.kubeconfig}",
            f"--metrics-bind-address=127.0.0.1:{free_port()}", f"--health-probe-bind-address={health}",
            "--zap-log-level=error")

        def is_ready():
            plane.check()
            try:
                return urllib.request.urlopen(f"http://{health}/readyz", timeout=5).status == 200
            except OSError:
                return False
        until(READY_SECONDS_MAX, "JobSet to be ready", is_ready)

    @staticmethod
    def job(name, namespace, workers):
        pod = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        job = {"parallelism": workers, "completions": workers, "completionMode": "Indexed", "backoffLimit": 0,
               "template": pod}
        spec = {"replicatedJobs": [{"name": "worker", "replicas": 1, "template": {"spec": job}}],
                "successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True}}
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "metadata": {"name": name, "namespace": namespace}, "spec": spec}

    @staticmethod
    def is_done(job):
        return job.get("status", {}).get("terminalState") == "Completed"

    def clean(self):
        shutil.rmtree(self.folder, ignore_errors=True)


PEERS = {"training-operator": TrainingOperator, "jobset": JobSet}
