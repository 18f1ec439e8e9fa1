"""What the server says of jobs, pods and Services, by watches of its own, and what must never be seen of them."""
import collections
import http.client
import threading
import time

from support.client import Refused
from support.watch import Gone, list_and_watch

PATHS = {"jobs": "/apis/kubebrain.io/v1/trainingjobs", "pods": "/api/v1/pods?labelSelector=kubebrain.io/trainingjob",
         "services": "/api/v1/services?labelSelector=kubebrain.io/trainingjob"}
RETRY_SECONDS = 0.02
TERMINAL = ("Succeeded", "Failed")


def attempt_of(pod):
    return int(pod["metadata"]["labels"]["kubebrain.io/attempt"])


def rank_of(pod):
    return int(pod["metadata"]["labels"]["kubebrain.io/worker-index"])


def owner_of(pod):
    return next((owner["uid"] for owner in pod["metadata"].get("ownerReferences", ()) if owner.get("controller")), None)


class Mirror:
    def __init__(self, client):
        self.client = client
        self.changed = threading.Condition()
        self.objects = {kind: {} for kind in PATHS}
        self.created = collections.defaultdict(dict)  # namespace -> (job's uid, rank, attempt) -> uids
        self.wrong = collections.defaultdict(list)    # namespace -> what must never be, and was
        self.listeners = []
        for kind in PATHS:
            threading.Thread(target=self.follow, args=(kind,), daemon=True).start()

    # --- following

    def follow(self, kind):
        while True:
            try:
                self.follow_once(kind)
            except (OSError, http.client.HTTPException, Refused, Gone):
                time.sleep(RETRY_SECONDS)  # the server is gone, or has forgotten the version: from the start

    def follow_once(self, kind):
        items, changes = list_and_watch(self.client, PATHS[kind])
        self.replace(kind, items)
        for change, item in changes:
            self.take(kind, item, is_gone=change == "DELETED")

    def replace(self, kind, items):
        names = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items}
        for key in [key for key in self.objects[kind] if key not in names]:
            self.take(kind, self.objects[kind][key], is_gone=True)
        for item in items:
            self.take(kind, item, is_gone=False)

    def take(self, kind, item, is_gone):
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        with self.changed:
            before = self.objects[kind].get(key)
            if is_gone:
                self.objects[kind].pop(key, None)
            else:
                self.objects[kind][key] = item
            if kind == "pods":
                self.judge_pod(item)
            elif kind == "jobs" and before and not is_gone:
                self.judge_job(before, item)
            self.changed.notify_all()
        for listener in self.listeners:
            listener(kind, item, is_gone)

    # --- what must never be

    def judge_pod(self, pod):
        meta = pod["metadata"]
        if owner_of(pod) is None:
            return
        uids = self.created[meta["namespace"]].setdefault((owner_of(pod), rank_of(pod), attempt_of(pod)), set())
        uids.add(meta["uid"])
        if len(uids) > 1:
            self.complain(meta["namespace"], f"rank {rank_of(pod)} of attempt {attempt_of(pod)} had {len(uids)} pods")
        same_rank = [name for (ns, name), other in self.objects["pods"].items() if ns == meta["namespace"]
                     and owner_of(other) == owner_of(pod) and rank_of(other) == rank_of(pod)]
        if len(same_rank) > 1:
            self.complain(meta["namespace"], f"rank {rank_of(pod)} has two pods at once: {same_rank}")

    def judge_job(self, before, after):
        if before["metadata"]["uid"] != after["metadata"]["uid"]:
            return
        old, new = before.get("status", {}), after.get("status", {})
        for field in ("attempt", "restarts"):
            if new.get(field, 0) < old.get(field, 0):
                self.complain(after["metadata"]["namespace"], f"{field} went from {old.get(field)} to {new.get(field)}")
        if old.get("phase") in TERMINAL and new.get("phase") != old["phase"]:
            self.complain(after["metadata"]["namespace"], f"phase went from {old['phase']} to {new.get('phase')}")

    def complain(self, namespace, what):
        if what not in self.wrong[namespace]:
            self.wrong[namespace].append(what)

    # --- looking

    def of(self, kind, namespace):
        with self.changed:
            return [item for (ns, _), item in self.objects[kind].items() if ns == namespace]

    def job(self, namespace, name):
        with self.changed:
            return self.objects["jobs"].get((namespace, name))

    def status(self, namespace, name):
        return (self.job(namespace, name) or {}).get("status", {})

    def wait(self, condition, seconds):
        """Waits for a change that makes the condition true; what it gave at last."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                found = condition()
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                self.changed.wait(left)
