"""The cluster as seen from the side: one watch on the workers' pods, one on the jobs, from the first story to the last.
Stories read from it what a job and its pods are now and when a gang ran again. It also holds what must be true at any
moment of any story; `problems` lists where it was not."""
import contextlib
import threading
import time

import world
from support.watch import Gone, list_and_watch

LISTS = {"pods": "/api/v1/pods?labelSelector=kubebrain.io%2Ftrainingjob", "jobs": "/apis/kubebrain.io/v1/trainingjobs"}
ENDED = ("Succeeded", "Failed")


def owner(pod):
    return next((o["uid"] for o in pod["metadata"].get("ownerReferences", []) if o.get("controller")), "")


def label(pod, name):
    return pod["metadata"]["labels"].get(f"kubebrain.io/{name}", "")


def rank(pod):
    return int(label(pod, "worker-index"))


def attempt(pod):
    return int(label(pod, "attempt"))


def variable(pod, name):
    return next((v.get("value") for v in pod["spec"]["containers"][0]["env"] if v["name"] == name), None)


def is_leaving(pod):
    return "deletionTimestamp" in pod["metadata"]


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not is_leaving(pod)


def termination(pod):
    states = pod.get("status", {}).get("containerStatuses", [])
    return states[0]["state"].get("terminated") if states else None


class Side:
    def __init__(self):
        self.pods, self.jobs = {}, {}  # those that exist, by uid, as last seen
        self.problems = []
        self.gangs = {}  # (uid of the job, attempt): when all its ranks were ready first
        self.ends = {}   # (uid of the job, attempt, rank): when its container was first seen to have ended
        self.codes = {}  # (uid of the job, attempt, rank): and its exit code
        self.attempts = {}  # uid of a job: the highest attempt of any pod
        self.pod_count, self.event_count = 0, 0
        self.watches, self.threads = {}, {}  # by kind
        self.client = None

    def start(self, client=None):
        self.client = client or world.client()
        for kind in LISTS:
            self.follow(kind)

    def follow(self, kind):
        items, watch = list_and_watch(self.client, LISTS[kind])
        for item in items:
            self.take(kind, "ADDED", item)
        self.watches[kind] = watch
        self.threads[kind] = threading.Thread(target=self.read, args=(kind, watch), daemon=True)
        self.threads[kind].start()

    @contextlib.contextmanager
    def away_from_jobs(self):
        """While their definition changes, which ends all watches on them; afterwards they are listed anew. Pods are watched on."""
        self.watches["jobs"].stop()
        self.threads["jobs"].join(timeout=10)
        try:
            yield
        finally:
            self.follow("jobs")

    def read(self, kind, watch):
        try:
            for change, item in watch:
                self.event_count += 1
                self.take(kind, change, item)
        except Gone as reason:
            self.problems.append(f"the watch of {kind} ended: {reason}")

    def take(self, kind, change, item):
        {"pods": self.take_pod, "jobs": self.take_job}[kind](change, item, time.monotonic())

    def still_watches(self):
        return [thread.is_alive() for thread in self.threads.values()] == [True] * len(LISTS)

    def stop(self):
        for watch in self.watches.values():
            watch.stop()
        for thread in self.threads.values():
            thread.join(timeout=10)

    def take_pod(self, kind, pod, now):
        uid, job = pod["metadata"]["uid"], owner(pod)
        if kind == "DELETED":
            self.pods.pop(uid, None)
            return
        if uid not in self.pods:
            self.pod_count += 1
            if attempt(pod) < self.attempts.get(job, 0):
                self.note(pod, f"is made for attempt {attempt(pod)} after one of attempt {self.attempts[job]}")
            self.attempts[job] = max(attempt(pod), self.attempts.get(job, 0))
        self.pods = {**self.pods, uid: pod}  # readers hold the old one
        if termination(pod):
            self.ends.setdefault((job, attempt(pod), rank(pod)), now)
            self.codes[job, attempt(pod), rank(pod)] = termination(pod)["exitCode"]
        self.check_gang(pod, [mate for mate in self.pods.values() if owner(mate) == job], now)

    def check_gang(self, pod, mates, now):
        twins = [mate["metadata"]["uid"] for mate in mates if rank(mate) == rank(pod)]
        if len(twins) > 1:
            self.note(pod, f"has rank {rank(pod)}, and so have {twins}")
        ready = [mate for mate in mates if is_ready(mate)]
        for what, values in (("attempts", {attempt(mate) for mate in ready}),
                             ("worlds", {variable(mate, "WORLD_SIZE") for mate in ready})):
            if len(values) > 1:
                self.note(pod, f"is one of ready pods of different {what}: {sorted(values)}")
        if is_ready(pod) and len({rank(mate) for mate in ready}) == int(variable(pod, "WORLD_SIZE")):
            self.gangs.setdefault((owner(pod), attempt(pod)), now)

    def take_job(self, kind, job, now):
        uid, status = job["metadata"]["uid"], job.get("status", {})
        before = self.jobs.get(uid, {}).get("status", {})
        if kind == "DELETED":
            self.jobs = {key: known for key, known in self.jobs.items() if key != uid}
            return
        if status.get("attempt", 0) < before.get("attempt", 0):
            self.note(job, f"goes back from attempt {before['attempt']} to {status.get('attempt')}")
        if before.get("phase") in ENDED and status.get("phase") != before["phase"]:
            self.note(job, f"was {before['phase']} and is {status.get('phase')}")
        allowed = job["spec"].get("runPolicy", {}).get("maxRestarts", 3)
        if status.get("restartsCounted", 0) > allowed:
            self.note(job, f"has {status['restartsCounted']} restarts that count, and may have {allowed}")
        self.jobs = {**self.jobs, uid: job}

    def note(self, about, what):
        meta = about["metadata"]
        self.problems.append(f"{meta['namespace']}/{meta['name']} {what} (at version {meta['resourceVersion']})")


SIDE = Side()


def job(name, namespace="default"):
    """The job as last seen; None where there is none."""
    found = [j for j in SIDE.jobs.values() if (j["metadata"]["name"], j["metadata"]["namespace"]) == (name, namespace)]
    return found[0] if found else None


def uid_of(name):
    return (job(name) or {"metadata": {"uid": None}})["metadata"]["uid"]


def status(name):
    return (job(name) or {}).get("status", {})


def pods(name):
    """The job's pods as last seen, by rank."""
    found = [pod for pod in SIDE.pods.values() if label(pod, "trainingjob") == name]
    return sorted(found, key=rank)


def uids(name):
    return {pod["metadata"]["uid"] for pod in pods(name)}


def nodes(name):
    return [pod["spec"].get("nodeName") for pod in pods(name)]


def until_phase(name, phase, seconds=60):
    """Waits for the job's phase; a job that ends in another phase is not waited for."""
    def reached():
        seen = status(name)
        if seen.get("phase") != phase and seen.get("phase") in ENDED:
            raise world.Failure(f"job {name} is {seen['phase']}, not {phase}: {seen.get('reason')}: {seen.get('message')}")
        return seen if seen.get("phase") == phase else None
    return world.until(seconds, lambda: f"job {name} to be {phase}; it is {status(name)}", reached)


def until_all_run(name, number, seconds=60):
    """Waits until all ranks of an attempt have run; when that was."""
    return world.until(seconds, lambda: f"all ranks of attempt {number} of {name} to run; it is {status(name)}",
                       lambda: SIDE.gangs.get((uid_of(name), number)))


def again(name, number, fault, seconds=60):
    """Waits until all ranks run in that attempt after a fault, and says how long it took."""
    return f"all ranks of {name} ran again {until_all_run(name, number, seconds) - fault:.1f} s after the fault"


def until_no_pods(name, seconds=60):
    world.until(seconds, lambda: f"the pods of {name} to go; there are {uids(name)}", lambda: not pods(name))


def until_end_of(name, number, which, seconds=60):
    """Waits until the container of a rank in an attempt is seen to have ended; when that was."""
    return world.until(seconds, f"worker {which} of {name} to end", lambda: SIDE.ends.get((uid_of(name), number, which)))
