"""An API server on which the chart is installed: helm and kubectl as people call them, the real operator with the account
that the chart made, and pods that are run by hand."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "faults"), str(TESTS / "docs")]
import actor  # noqa: E402
import console  # noqa: E402
import markdown  # noqa: E402
from kubelet import Kubelet  # noqa: E402
from mirror import Mirror  # noqa: E402
from server import READY_SECONDS_MAX, Server  # noqa: E402
from support.client import Client  # noqa: E402
from support.places import BIN, ROOT  # noqa: E402
from support.ports import free_port  # noqa: E402
from support.waiting import equal, expect, until  # noqa: E402, F401 (stories look here)
from world import JOBS, Place, World, manifest  # noqa: E402, F401

CHART = ROOT / "charts/trainingjob-operator"
RELEASE, NAMESPACE = "trainingjob-operator", "trainingjob-system"
CRD = "trainingjobs.kubebrain.io"
COMMAND_SECONDS_MAX = 60


class BareServer(Server):
    """With nothing installed, and with the controller that adds rights to the roles for people."""
    CONTROLLERS = (*Server.CONTROLLERS, "clusterrole-aggregation-controller")

    def up(self):
        done = subprocess.run([self.tool, "up", self.folder], stdout=subprocess.DEVNULL, check=False)
        expect(done.returncode == 0, "no API server")
        self.client = Client(self.folder)
        self.start_controllers()


class Cluster(World):
    def __init__(self, folder):
        super().__init__(folder)
        self.folder = pathlib.Path(folder)
        self.server = BareServer(folder)
        self.operators = []

    def up(self):
        self.server.up()
        self.client = self.server.client

    def follow(self):
        """From when the resource is served: what happens is seen, and pods run."""
        until(READY_SECONDS_MAX, "the resource to be served", self.serves_the_resource)
        self.mirror = Mirror(self.client)
        self.kubelet = Kubelet(self.client, self.mirror)

    def serves_the_resource(self):
        return "trainingjobs" in str(self.client.find("/apis/kubebrain.io/v1"))

    def environment(self, kubeconfig="admin.conf"):
        """With folders of its own: the person's would remember another server on the same port."""
        homes = {f"HELM_{name}_HOME": str(self.folder / "helm") for name in ("CACHE", "CONFIG", "DATA")}
        return {**os.environ, **homes, "KUBECONFIG": str(self.folder / kubeconfig), "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
                "PATH": f"{BIN}:{os.environ['PATH']}"}

    def run(self, *command, kubeconfig="admin.conf", given=None):
        """(exit code, what was printed on both outputs)."""
        done = subprocess.run([str(part) for part in command], cwd=ROOT, env=self.environment(kubeconfig), input=given, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS_MAX, check=False)
        return done.returncode, done.stdout

    def do(self, *command, **options):
        code, output = self.run(*command, **options)
        expect(code == 0, lambda: f"`{' '.join(str(part) for part in command)}` ended with {code}:\n{output}")
        return output

    def refused(self, *command, **options):
        code, output = self.run(*command, **options)
        expect(code != 0, f"`{' '.join(str(part) for part in command)}` was accepted:\n{output}")
        return output

    def helm(self, verb, *arguments, namespace=NAMESPACE, **options):
        return self.do("helm", verb, *arguments, "--namespace", namespace, **options)

    def kubectl(self, *arguments, **options):
        return self.do("kubectl", *arguments, **options)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def documented(self, heading):
        """Does what the console blocks below this heading of docs/installing.md say."""
        text = markdown.section((ROOT / "docs/installing.md").read_text(), heading)
        commands = [command for fence in markdown.fences(text) if fence.info == "console" for command, _ in console.steps(fence.text)]
        expect(commands, f"no commands below {heading!r}")
        for command in commands:
            self.do("bash", "-euo", "pipefail", "-c", command)

    def chart_with(self, name, change):
        """A copy of the chart in which `change` was made to the resource definition's text."""
        copy = self.folder / name
        shutil.copytree(CHART, copy)
        path = copy / "files/trainingjobs.yaml"
        path.write_text(change(path.read_text()))
        return copy

    def token_of(self, namespace, account):
        return self.kubectl("create", "token", account, "--namespace", namespace).strip()

    @contextlib.contextmanager
    def operator_of(self, release, namespace, arguments=()):
        """The real program, as the release's account and with the release's own arguments but for addresses; yields the
        port of its metrics."""
        port = free_port()
        token = self.token_of(namespace, release)
        operator = actor.Operator(self.server, release + namespace, self.client.port, token)
        told = self.get("deployment", release, "-n", namespace)["spec"]["template"]["spec"]["containers"][0]["args"]
        told = [word.replace("$(POD_NAMESPACE)", namespace) for word in told]
        own = told[told.index("--operator-namespace"):]
        operator.command = [*operator.command[:3], "--listen", f"127.0.0.1:{port}", "--lease-namespace", namespace, *own, *arguments]
        operator.start()
        try:
            yield port
            operator.stop()
        except BaseException:
            if operator.process.poll() is None:
                operator.kill()
            print(f"      the operator's log ends:\n{operator.last_words()}", flush=True)
            raise

    def known_place(self, name):
        return Place(self, name)

    def place(self, name):
        self.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        return Place(self, name)


def uids(place):
    return [pod["metadata"]["uid"] for pod in place.pods()]


def stays(seconds, what, condition):
    """The condition holds at every look for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        expect(condition(), what)
        time.sleep(0.05)
