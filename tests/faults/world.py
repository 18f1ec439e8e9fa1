"""What all stories share: one server, its mirror, its kubelet, and how a job is made and waited for."""
import contextlib
import itertools
import time

import actor
import proxy
from kubelet import Kubelet
from mirror import Mirror, attempt_of, rank_of
from server import Server
from support.waiting import Failure, equal, expect

STEP_SECONDS_MAX = 60
JOBS = "/apis/kubebrain.io/v1/namespaces/{}/trainingjobs"


def manifest(name, workers, **policy):
    container = {"name": "main", "image": "none", "command": ["train"]}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"runPolicy": {"restartBackoffSeconds": 0, **policy}, "replicaSpecs": {"Worker": {"replicas": workers, "template": template}}}}


class World:
    def __init__(self, folder):
        self.server = Server(folder)
        self.numbers = itertools.count(1)

    def up(self):
        self.server.up()
        self.client = self.server.client
        self.mirror = Mirror(self.client)
        self.kubelet = Kubelet(self.client, self.mirror)
        self.token = self.server.token()

    @contextlib.contextmanager
    def operator(self, namespace="", through_proxy=True, token=None, arguments=()):
        """A running operator and the proxy it speaks through (None: it speaks to the server itself)."""
        name = f"{namespace or 'all'}-{next(self.numbers)}"
        between = proxy.Proxy(self.server.folder, self.client.port) if through_proxy else None
        port = between.port if between else self.client.port
        operator = actor.Operator(self.server, name, port, token or self.token, namespace, arguments).start()
        try:
            yield operator, between
            operator.stop()
        except BaseException as reason:
            if operator.process.poll() is None:
                operator.kill()
            if isinstance(reason, Failure):
                raise Failure(f"{reason}\n  the operator's log ends:\n{operator.last_words()}") from None
            raise
        finally:
            if between:
                between.close()

    def namespace(self, name):
        self.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        return Place(self, name)


class Place:
    """A namespace of one story, with jobs in it."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.client, self.mirror = world.client, world.mirror

    def create(self, name="a", workers=3, **policy):
        return self.client.create(JOBS.format(self.name), manifest(name, workers, **policy))

    def path(self, name="a"):
        return f"{JOBS.format(self.name)}/{name}"

    def patch(self, spec, name="a"):
        self.client.patch(self.path(name), {"spec": spec})

    def status(self, name="a"):
        return self.mirror.status(self.name, name)

    def pods(self, attempt=None):
        """By rank."""
        found = [pod for pod in self.mirror.of("pods", self.name) if attempt is None or attempt_of(pod) == attempt]
        return sorted(found, key=rank_of)

    def fail(self, rank, code=1):
        self.world.kubelet.end(self.pods()[rank], code)

    def wait(self, what, condition, seconds=STEP_SECONDS_MAX):
        """The seconds it took."""
        began = time.monotonic()
        done = self.mirror.wait(condition, seconds)
        expect(done, lambda: f"{self.name}: waited {seconds} s for {what}; {self.seen()}")
        return time.monotonic() - began

    def wait_running(self, attempt=0, workers=3, name="a"):
        """Until all ranks of this attempt run, nothing else does, and the status says so."""
        def holds():
            status, pods = self.status(name), self.pods()
            return (status.get("phase") == "Running" and status.get("attempt") == attempt and len(pods) == workers
                    and all(attempt_of(pod) == attempt and pod["status"]["phase"] == "Running"
                            and "deletionTimestamp" not in pod["metadata"] for pod in pods))
        return self.wait(f"all {workers} workers of attempt {attempt} to run", holds)

    def wait_phase(self, phase, name="a"):
        return self.wait(f"phase {phase}", lambda: self.status(name).get("phase") == phase)

    def wait_gone(self):
        return self.wait("nothing to be left", lambda: not any(
            self.mirror.of(kind, self.name) for kind in ("jobs", "pods", "services")))

    def seen(self):
        fields = ("phase", "reason", "message", "attempt", "restarts", "ready")
        brief = [(job["metadata"]["name"], [job.get("status", {}).get(field) for field in fields])
                 for job in self.mirror.of("jobs", self.name)]
        pods = [(pod["metadata"]["name"], attempt_of(pod), pod["status"]["phase"],
                 "leaving" if "deletionTimestamp" in pod["metadata"] else "") for pod in self.pods()]
        return f"jobs {brief}, pods {pods}"

    def expect_nothing_wrong(self, pods_created=None):
        wrong = self.mirror.wrong[self.name]
        expect(not wrong, f"{self.name}: {'; '.join(wrong)}")
        if pods_created is not None:
            created = sum(len(uids) for uids in self.mirror.created[self.name].values())
            equal(created, pods_created, f"{self.name}: pods ever created")
