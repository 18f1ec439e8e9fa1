"""An API server with etcd, the garbage collector and the namespace controller."""
import base64
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import urllib.parse

from support.client import Client, Refused
from support.definition import wait_until_established
from support.places import BIN, ROOT
from support.waiting import expect, until

INSTALL = ROOT / "manifests/install/trainingjob-operator.yaml"
ACCOUNT = "/api/v1/namespaces/trainingjob-system/serviceaccounts/trainingjob-operator"
READY_SECONDS_MAX = 30
CALL_SECONDS_MAX = 30


class Server:
    CONTROLLERS = ("garbage-collector-controller", "namespace-controller")

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.tool = ROOT / "tools/cluster/apiserver"
        self.controllers = None

    def up(self):
        done = subprocess.run([self.tool, "up", self.folder], stdout=subprocess.DEVNULL)
        expect(done.returncode == 0, "no API server")
        self.command = self.command_line("kube-apiserver")
        self.client = Client(self.folder)
        self.kubectl("apply", "-f", INSTALL)
        wait_until_established(self.kubectl)
        group = "/apis/kubebrain.io/v1"
        until(READY_SECONDS_MAX, "the resource to be served", lambda: "trainingjobs" in str(self.client.find(group)))
        self.start_controllers()
        return self

    def start_controllers(self):
        """What follows owners and namespaces; everything else that a cluster has is done by hand."""
        log = open(self.folder / "controllers.log", "wb")
        self.controllers = subprocess.Popen(
            [BIN / "kube-controller-manager", "--kubeconfig", self.folder / "admin.conf", "--leader-elect=false",
             f"--controllers={','.join(self.CONTROLLERS)}", "--secure-port=0", "--profiling=false",
             "--concurrent-gc-syncs=5"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def down(self):
        if self.controllers:
            self.controllers.kill()
            self.controllers.wait()
        subprocess.run([self.tool, "down", self.folder])

    def kubectl(self, *arguments):
        own = ("--kubeconfig", self.folder / "admin.conf", "--cache-dir", self.folder / "kubectl-cache")
        done = subprocess.run([BIN / "kubectl", *own, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120)
        expect(done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stdout}")
        return done.stdout

    def pid(self, name):
        return int((self.folder / f"{name}.pid").read_text())

    def command_line(self, name):
        return pathlib.Path(f"/proc/{self.pid(name)}/cmdline").read_text().split("\0")[:-1]

    def kill(self):
        """Ends kube-apiserver as a crash does; etcd stays."""
        os.kill(self.pid("kube-apiserver"), signal.SIGKILL)
        until(READY_SECONDS_MAX, "its port to be free", self.port_is_free)

    def port_is_free(self):
        try:
            socket.create_server(("127.0.0.1", self.client.port)).close()
        except OSError:
            return False
        return True

    def start_again(self):
        with open(self.folder / "kube-apiserver.log", "ab") as log:
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
        (self.folder / "kube-apiserver.pid").write_text(f"{process.pid}\n")

    def answers(self):
        try:
            return self.client.get("/readyz") == "ok"
        except (OSError, http.client.HTTPException, Refused):
            return False

    def wait_ready(self):
        log = self.folder / "kube-apiserver.log"
        until(READY_SECONDS_MAX, lambda: f"the API server to answer again; its log ends: {log.read_text()[-1000:]}",
              self.answers)

    def compact(self):
        """Makes etcd forget every version but the newest, through its JSON gateway."""
        flag = next(part for part in self.command_line("etcd") if part.startswith("--listen-client-urls="))
        address = urllib.parse.urlsplit(flag.partition("=")[2]).netloc

        def ask(path, body):
            connection = http.client.HTTPConnection(address, timeout=CALL_SECONDS_MAX)
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            expect(answer.status == 200, f"etcd {path}: {text!r}")
            return json.loads(text)

        revision = ask("/v3/kv/range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
        ask("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def token(self, secret=None):
        """A token of the operator's account; bound to a Secret, it ends with that."""
        spec = {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600}
        if secret:
            made = self.client.create("/api/v1/namespaces/trainingjob-system/secrets", {"metadata": {"name": secret}})
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Secret", "name": secret,
                                      "uid": made["metadata"]["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return self.client.create(f"{ACCOUNT}/token", request)["status"]["token"]
