"""What a story needs to act on the test cluster and to look at it: kubectl, helm, waiting, and the evidence of a failure."""
import functools
import json
import os
import pathlib
import subprocess
import urllib.parse

from support.client import Client, Refused
from support.places import BIN, CACHE, ROOT  # noqa: F401 (stories look here)
from support.waiting import Failure, equal, expect, until  # noqa: F401

CLUSTER = ROOT / "tools/cluster/cluster"
OPERATOR_NAMESPACE = "trainingjob-system"
RELEASE = "trainingjob-operator"
COMMAND_SECONDS_MAX = 900
EVIDENCE_LINES_MAX = 60
# Of the kinds that stories wait for, and so look at often: where they lie. A look by kubectl takes 40 ms of CPU time, and is for the others.
PATHS = {"node": "/api/v1/nodes", "pod": "/api/v1/namespaces/{}/pods", "service": "/api/v1/namespaces/{}/services",
         "event": "/api/v1/namespaces/{}/events", "lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
         "tj": "/apis/kubebrain.io/v1/namespaces/{}/trainingjobs"}


def run(*command, given=None, check=True, timeout=COMMAND_SECONDS_MAX, env=None, stderr=subprocess.PIPE):
    """The output of a command; a Failure that ends with its own last words where it fails. `stderr=None` shows these as they come."""
    result = subprocess.run([str(part) for part in command], input=given, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False,
                            timeout=timeout, env={**os.environ, **(env or {})})
    if check and result.returncode != 0:
        raise Failure(f"`{' '.join(str(part) for part in command)}` ended with {result.returncode}:\n"
                      f"{(result.stdout[-2000:] + (result.stderr or '')[-2000:]).strip()}")
    return result.stdout if check else result


@functools.cache
def kubeconfig():
    return {"KUBECONFIG": run(CLUSTER, "kubeconfig").strip()}


@functools.cache
def client():
    return Client(pathlib.Path(kubeconfig()["KUBECONFIG"]).parent)


def with_kubeconfig():
    return {**os.environ, **kubeconfig()}


def kubectl(*arguments, given=None, check=True):
    return run(BIN / "kubectl", *arguments, given=given, check=check, env=kubeconfig())


def helm(*arguments):
    return run(BIN / "helm", *arguments, env=kubeconfig())


def apply(*objects, namespace="default"):
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return kubectl("apply", "-n", namespace, "-f", "-", given=json.dumps(items))


def get(kind, name=None, namespace="default", selector=None):
    """An object (None where it is missing), or the list of those that the selector finds."""
    if place := PATHS.get(kind.removesuffix("s")):
        place = place.format(namespace)
        if name:
            return client().find(f"{place}/{name}")
        return client().get(place + (f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""))["items"]
    if name:
        text = kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None
    chosen = ["-l", selector] if selector else []
    return json.loads(kubectl("get", kind, "-n", namespace, "-o", "json", *chosen))["items"]


def patch(name, spec):
    """Merges into the spec of a job."""
    kubectl("patch", "tj", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def logs(pod):
    return kubectl("logs", pod, "--tail=-1")


def log_so_far(pod):
    """What a worker has printed; nothing while there is no container."""
    try:
        return client().bytes("GET", f"{PATHS['pod'].format('default')}/{pod}/log").decode()
    except Refused:
        return ""


def delete_job(name):
    """Deletes the job and waits until nothing of it is left."""
    kubectl("delete", "tj", name, "--ignore-not-found", "--timeout=60s")
    selector = f"job-name={name}"
    until(60, f"the pods and the Service of {name} to go",
          lambda: not get("pods", selector=selector) and not get("services", selector=selector))


def node_folder(index):
    """Where the files of a node lie on this machine: its /mnt is mnt below it."""
    return pathlib.Path(run(CLUSTER, "folder", index).strip())


def write_on_nodes(path, text):
    """Writes a file at the same path of every node, below /mnt."""
    for index in (1, 2):
        target = node_folder(index) / str(path).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def evidence():
    """What one wants to see after a failure, each part cut to its last lines."""
    parts = [("the operator's log", ("logs", "-n", OPERATOR_NAMESPACE, f"deployment/{RELEASE}", "--tail=60")),
             ("jobs", ("get", "tj", "-A", "-o", "yaml")),
             ("pods", ("get", "pods", "-A", "-o", "wide")),
             ("pods of jobs", ("describe", "pods", "-A", "-l", "kubebrain.io/trainingjob")),
             ("the operator's pod", ("describe", "pods", "-n", OPERATOR_NAMESPACE)),
             ("workers' logs", ("logs", "-l", "kubebrain.io/trainingjob", "--prefix", "--tail=25")),
             ("events", ("get", "events", "-A", "--sort-by=.lastTimestamp"))]
    for title, command in parts:
        result = kubectl(*command, check=False)
        lines = (result.stdout + result.stderr).splitlines()[-EVIDENCE_LINES_MAX:]
        print(f"---- {title}: kubectl {' '.join(command)}")
        print("\n".join(f"     {line}" for line in lines))
