"""Scheduler and kubelet by hand: a pod gets a node and runs; one that is asked to go, goes; stories end the others."""
import contextlib
import datetime
import http.client
import queue
import threading
import time

from support.client import Refused

NODES = ("n0", "n1")
THREADS = 4
RETRY_SECONDS = 0.02
TRIES_MAX = 1500  # half a minute of a server that does not answer


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def path_of(pod):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def status_of(phase, state, is_ready=False):
    return {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
                       "containerStatuses": [{"name": "main", "image": "none", "imageID": "", "restartCount": 0,
                                              "ready": is_ready, "state": state}]}}


class Kubelet:
    def __init__(self, client, mirror):
        self.client = client
        self.work = queue.SimpleQueue()
        self.silent = set()  # namespaces whose pods get a node and do not start
        self.kept = queue.SimpleQueue()  # those pods
        for node in NODES:
            client.create("/api/v1/nodes", {"metadata": {"name": node}})
            client.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}})
        for _ in range(THREADS):
            threading.Thread(target=self.serve, daemon=True).start()
        mirror.listeners.append(self.hear)

    def hear(self, kind, item, is_gone):
        if kind == "pods" and not is_gone:
            self.work.put(item)

    def serve(self):
        while True:
            pod = self.work.get()
            try:
                self.insist(lambda: self.bring_on(pod))
            except Refused:
                pass  # it has changed since: what it became is in the queue too

    def insist(self, act):
        for _ in range(TRIES_MAX):
            try:
                return act()
            except (OSError, http.client.HTTPException):
                time.sleep(RETRY_SECONDS)
        raise OSError("the API server did not answer")

    def bring_on(self, pod):
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            self.client.delete(path_of(pod), gracePeriodSeconds=0, preconditions={"uid": meta["uid"]})
        elif "nodeName" not in pod["spec"]:
            node = NODES[int(meta["labels"]["kubebrain.io/worker-index"]) % len(NODES)]
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            self.client.create(f"{path_of(pod)}/binding", {"metadata": {"name": meta["name"]}, "target": target})
        elif pod["status"]["phase"] == "Pending" and meta["namespace"] in self.silent:
            self.kept.put(pod)
        elif pod["status"]["phase"] == "Pending":
            running = status_of("Running", {"running": {"startedAt": now()}}, is_ready=True)
            running["metadata"] = {"uid": meta["uid"]}
            self.client.patch(f"{path_of(pod)}/status", running)

    @contextlib.contextmanager
    def silence(self, namespace):
        self.silent.add(namespace)
        try:
            yield
        finally:
            self.silent.discard(namespace)
            while not self.kept.empty():
                self.work.put(self.kept.get())

    def end(self, pod, code):
        """The worker's program ends with this code."""
        ended = status_of("Succeeded" if code == 0 else "Failed", {"terminated": {
            "exitCode": code, "reason": "Completed" if code == 0 else "Error", "finishedAt": now()}})
        self.insist(lambda: self.client.patch(f"{path_of(pod)}/status", ended))
