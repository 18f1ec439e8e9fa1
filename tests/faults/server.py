"""An API server with etcd, the garbage collector and the namespace controller, and a small client for it."""
import base64
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TRAININGJOB_CACHE") or pathlib.Path.home() / ".cache/trainingjob") / "bin"
INSTALL = ROOT / "manifests/install/trainingjob-operator.yaml"
ACCOUNT = "/api/v1/namespaces/trainingjob-system/serviceaccounts/trainingjob-operator"
READY_SECONDS_MAX = 30
CALL_SECONDS_MAX = 30
POLL_SECONDS = 0.02


class Failure(AssertionError):
    """What was seen in place of what must hold."""


def expect(holds, what):
    """`what` may be a function: it is asked only of a failure."""
    if not holds:
        raise Failure(what() if callable(what) else what)


def equal(seen, wanted, what):
    expect(seen == wanted, f"{what}: wanted {wanted!r}, got {seen!r}")


def until(what, condition, seconds):
    """Polls for something true, and gives it back. `what` may be a function here too."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        expect(time.monotonic() < deadline, lambda: f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(POLL_SECONDS)


class Refused(Exception):
    """An answer that is not 2xx."""

    def __init__(self, code, body):
        self.code = code
        self.message = body.get("message", str(body)) if isinstance(body, dict) else str(body)
        super().__init__(f"HTTP {code}: {self.message}")


class Client:
    """Speaks JSON over one kept connection per thread; the administrator, or whose token it is given."""

    def __init__(self, folder, port, token=None):
        self.port, self.token = port, token
        self.tls = ssl.create_default_context(cafile=folder / "ca.crt")
        if token is None:
            self.tls.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        self.local = threading.local()

    def connect(self, seconds=CALL_SECONDS_MAX):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=seconds, context=self.tls)

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def call(self, method, path, body=None):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {**self.headers(), **({"Content-Type": kind} if body is not None else {})}
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()  # it connects anew at the next request
            raise
        try:
            content = json.loads(text)
        except ValueError:
            content = text.decode(errors="replace")
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, content)
        return content

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """The object, or None where there is none."""
        try:
            return self.get(path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def create(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body):
        return self.call("PATCH", path, body)

    def delete(self, path, **options):
        return self.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})


class Server:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.tool = ROOT / "tools/cluster/apiserver"
        self.controllers = None

    def up(self):
        done = subprocess.run([self.tool, "up", self.folder], stdout=subprocess.DEVNULL)
        expect(done.returncode == 0, "no API server")
        self.command = self.command_line("kube-apiserver")
        port = next(part for part in self.command if part.startswith("--secure-port=")).partition("=")[2]
        self.client = Client(self.folder, int(port))
        self.kubectl("apply", "-f", INSTALL)
        self.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/trainingjobs.kubebrain.io")
        group = "/apis/kubebrain.io/v1"
        until("the resource to be served", lambda: "trainingjobs" in str(self.client.find(group)), READY_SECONDS_MAX)
        self.start_controllers()
        return self

    def start_controllers(self):
        """What follows owners and namespaces; everything else that a cluster has is done by hand."""
        log = open(self.folder / "controllers.log", "wb")
        self.controllers = subprocess.Popen(
            [BIN / "kube-controller-manager", "--kubeconfig", self.folder / "admin.conf", "--leader-elect=false",
             "--controllers=garbage-collector-controller,namespace-controller", "--secure-port=0", "--profiling=false",
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

    def pid(self, name):
        return int((self.folder / f"{name}.pid").read_text())

    def command_line(self, name):
        return pathlib.Path(f"/proc/{self.pid(name)}/cmdline").read_text().split("\0")[:-1]

    def kill(self):
        """Ends kube-apiserver as a crash does; etcd stays."""
        os.kill(self.pid("kube-apiserver"), signal.SIGKILL)
        until("its port to be free", self.port_is_free, READY_SECONDS_MAX)

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
        until(lambda: f"the API server to answer again; its log ends: {log.read_text()[-1000:]}", self.answers,
              READY_SECONDS_MAX)

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
