"""tj's commands on jobs of a real API server, with the real operator behind it."""
import json
import os
import subprocess

from support.places import BUILD
from support.waiting import equal, expect

TJ = BUILD / "cli/tj"
COMMAND_SECONDS_MAX = 90


class Tj:
    """tj as a person whose kubeconfig is this one, in one namespace."""

    def __init__(self, world, namespace, kubeconfig="admin.conf"):
        self.world, self.own = world, ["--kubeconfig", str(world.server.folder / kubeconfig), "--namespace", namespace]

    def run(self, *arguments):
        env = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        return subprocess.run([TJ, *arguments, *self.own], env=env, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)

    def __call__(self, *arguments, code=0):
        """What it has printed."""
        done = self.run(*arguments)
        expect(done.returncode == code, f"tj {' '.join(arguments)} ended with {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stdout + done.stderr


def said(text, *wanted):
    for part in wanted:
        expect(part in text, f"{part!r} is not in: {text}")


def tj_drives_a_job_through_its_life(world, is_full):
    place = world.namespace("commands")
    tj = Tj(world, place.name)
    said(tj("list"), "no TrainingJobs in the namespace commands")
    with world.operator(place.name, through_proxy=False):
        place.create(workers=2)
        tj("wait", "a", "--for", "phase=Running", "--timeout", "60s")
        place.wait_running(workers=2)
        said(tj("list"), "NAME", "a     Running  2/2")
        said(tj("list", "-A", "-o", "wide"), "NAMESPACE", "commands")
        equal(tj("list", "-o", "name"), "trainingjob.kubebrain.io/a\n", "names")
        equal(json.loads(tj("list", "-o", "json"))["items"][0]["metadata"]["name"], "a", "the name in JSON")
        said(tj("status", "trainingjob/a", "-o", "yaml"), "kind: TrainingJob", "phase: Running")
        said(tj("status", "a"), "2/2 ready", "nodes       2: n0, n1", "1     Running  yes")
        said(tj("top", "a"), "a-worker-1", "Memory is not known here")
        yield from changes(tj, place)
        said(tj("events", "a"), "trainingjob/a")
        for pod in place.pods():
            world.kubelet.end(pod, 0)
        said(tj("status", "a", "--watch"), "job a: Succeeded")
        said(tj("suspend", "a", code=1), "has ended (Succeeded)")
        said(tj("status", "aa", code=3), "did you mean a?")
        said(Tj(world, place.name, "nobody.conf")("list", code=4), "you may not list trainingjobs", "verbs: [list]")
        said(tj("delete", "a"), "trainingjob.kubebrain.io/a deleted")
        place.wait_gone()
    place.expect_nothing_wrong()


def changes(tj, place):
    said(tj("suspend", "a"), "trainingjob.kubebrain.io/a suspended")
    tj("wait", "a", "--for", "condition=Suspended", "--timeout", "60s")
    place.wait("no pod", lambda: not place.pods())
    said(tj("resume", "a"), "resumed")
    place.wait_running(attempt=1, workers=2)
    said(tj("restart", "a"), "restarted: a new attempt begins")
    took = place.wait_running(attempt=2, workers=2)
    equal(place.status().get("restarts", 0), 0, "restarts that count or not")
    expect("firstFailure" not in place.status(), "a restart that was asked for is no failure")
    yield f"all run {took:.2f} s after tj restart has ended"
    said(tj("scale", "a", "--workers", "3"), "scaled from 2 to 3 workers")
    place.wait_running(attempt=3, workers=3)
