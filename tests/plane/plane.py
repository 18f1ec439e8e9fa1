"""A real control plane on this machine with nodes that only seem to be: etcd, kube-apiserver, kube-controller-manager and
kube-scheduler as they are, kwok in place of the kubelets. All of it ends with the `with` block."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from support.client import Client
from support.places import BIN, BUILD, CRD, ROOT
from support.processes import Process, cpu_seconds
from support.waiting import until

APISERVER = ROOT / "tools/cluster/apiserver"
# Their clients' own limits (20 to 50 requests a second) would hide what is measured.
CLIENT_RATE = 5000
READY_SECONDS_MAX = 60
# At rest it takes some tenths of a core, for probes and leases.
QUIET_SECONDS, QUIET_CPU, QUIET_SECONDS_MAX = 1, 0.3, 300

SCHEDULER_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: {rate}, burst: {rate}}}
leaderElection: {{leaderElect: false}}
"""
POD_ADDRESSES = "198.18.0.0/15"  # for benchmarks (RFC 2544): nobody has them, and nobody is asked there
# Who wrote what: one short line for each write, nothing of its body.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
"""


class Plane:
    """`nodes` stand-ins with room for any number of pods. With `audit` each write is noted by who made it."""

    def __init__(self, nodes=16, audit=False):
        self.nodes, self.audit = nodes, audit
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj_plane_"))
        self.processes = []
        self.kubeconfig = self.folder / "admin.conf"

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        flags = []
        if self.audit:
            policy = self.folder / "audit.yaml"
            policy.write_text(AUDIT_POLICY)
            flags = [f"--audit-policy-file={policy}", f"--audit-log-path={self.folder}/audit.log"]
        subprocess.run([APISERVER, "up", self.folder, *flags], check=True, stdout=subprocess.DEVNULL)
        self.api = Client(self.folder)
        self.apply(CRD)
        config = self.folder / "scheduler.yaml"
        config.write_text(SCHEDULER_CONFIG.format(kubeconfig=self.kubeconfig, rate=CLIENT_RATE))
        self.start("kube-controller-manager", BIN / "kube-controller-manager", "--kubeconfig", self.kubeconfig,
                   "--leader-elect=false", "--secure-port=0", f"--kube-api-qps={CLIENT_RATE}",
                   f"--kube-api-burst={CLIENT_RATE}", "--controllers=*,-service-cidr-controller")
        self.start("kube-scheduler", BIN / "kube-scheduler", "--config", config, "--secure-port=0")
        self.start("kwok", BIN / "kwok", "--kubeconfig", self.kubeconfig, "--config",
                   pathlib.Path(__file__).with_name("stages.yaml"), "--manage-all-nodes=true", "--enable-crds=",
                   f"--cidr={POD_ADDRESSES}", "--node-lease-duration-seconds=40", "--v=WARN")
        self.start("pod_reaper", BUILD / "tests/plane/pod_reaper", self.kubeconfig)
        for index in range(self.nodes):
            self.api.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": f"kwok-{index}"}})
        until(READY_SECONDS_MAX, "the nodes to be ready", self.all_nodes_ready, 0.2)

    def all_nodes_ready(self):
        self.check()
        nodes = self.api.get("/api/v1/nodes")["items"]
        ready = [node for node in nodes if not node["spec"].get("taints") and any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in node.get("status", {}).get("conditions", []))]
        return len(ready) == self.nodes

    def start(self, name, *command, env=None):
        started = Process(command, self.folder / f"{name}.log", env)
        started.name = name
        self.processes.append(started)
        return started

    def stop(self, started):
        self.processes.remove(started)
        started.stop()

    def check(self):
        """Nothing that was started may have ended by itself."""
        for started in self.processes:
            if not started.is_running():
                raise RuntimeError(f"{started.name} ended with {started.popen.returncode}:\n{started.last_words()}")

    def down(self):
        for started in reversed(self.processes):
            started.stop()
        subprocess.run([APISERVER, "down", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubectl(self, *arguments, given=None):
        own = ("--kubeconfig", self.kubeconfig, "--cache-dir", self.folder / "kubectl-cache")
        done = subprocess.run([BIN / "kubectl", *own, *arguments], input=given, text=True, check=False,
                              capture_output=True, timeout=READY_SECONDS_MAX)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, path):
        """Server-side: some definitions are too large for kubectl's annotation."""
        self.kubectl("apply", "--server-side", "-f", path)
        until(READY_SECONDS_MAX, f"{path} to be served", self.definitions_are_served)

    def definitions_are_served(self):
        def is_established(definition):
            return any(condition["type"] == "Established" and condition["status"] == "True"
                       for condition in definition.get("status", {}).get("conditions") or [])
        return all(map(is_established,
                       self.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]))

    def namespace(self, name):
        self.api.create("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}})

    def writes(self):
        """From the audit log: (user agent, verb, resource, namespace) of each write that was accepted."""
        found = []
        for line in (self.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["responseStatus"]["code"] >= 300:
                continue
            what = event["objectRef"]
            resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
            found.append((event.get("userAgent", "").split("/")[0], event["verb"], resource, what.get("namespace", "")))
        return found

    def cpu_seconds(self):
        """What each process of the control plane has taken so far."""
        taken = {started.name: started.cpu_seconds() for started in self.processes}
        for name in ("etcd", "kube-apiserver"):
            pid = (self.folder / f"{name}.pid").read_text().strip()
            taken[name] = cpu_seconds(pid)
        return taken

    def settle(self):
        """Waits until the control plane has nothing left to do."""
        before = [sum(self.cpu_seconds().values())]

        def is_quiet():
            time.sleep(QUIET_SECONDS)
            before.append(sum(self.cpu_seconds().values()))
            return before[-1] - before[-2] < QUIET_CPU * QUIET_SECONDS
        until(QUIET_SECONDS_MAX, "the control plane to come to rest", is_quiet)
