"""What is measured, each on a control plane that is at rest when it begins. Seconds count from the first request of a
measurement to the last pod that it waits for, as one watch of the namespace sees them."""
import concurrent.futures
import contextlib
import dataclasses
import itertools
import time

from contenders import Bare
from ours import KEEP_FILE_PAGES, PROGRESS_PORT, end_pod
from support.client import pods
from support.waiting import until
import pod_watch
import rank0

WAIT_SECONDS_MAX = 900
POSTS_AT_ONCE = 8
TELLING = "rank 0 of each job tells its progress"
NOT_OF_THE_JOB = ("endpoints", "endpointslices", "serviceaccounts", "configmaps", "leases")

_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class Workload:
    jobs: int
    workers: int

    @property
    def pods(self):
        return self.jobs * self.workers

    @property
    def name(self):
        return f"{self.jobs}x{self.workers}"

    def bodies(self, contender, namespace):
        return [contender.job(f"job-{index}", namespace, self.workers) for index in range(self.jobs)]


@contextlib.contextmanager
def fresh_namespace(plane):
    """A namespace of its own and a watch of its pods; emptied afterwards."""
    namespace = f"bench-{next(_numbers)}"
    plane.namespace(namespace)
    plane.settle()
    watch = pod_watch.PodWatch(plane.api, namespace)
    try:
        yield namespace, watch
    finally:
        watch.close()


def empty(plane, namespace, path=None):
    """Deletes the jobs, whose pods and Services the owner garbage collection takes, or those that are nobody's."""
    services = f"/api/v1/namespaces/{namespace}/services"
    if path:
        plane.api.delete(path(namespace), propagationPolicy="Background")
    else:
        plane.api.delete(services)
        plane.api.delete(pods(namespace), gracePeriodSeconds=0)
    until(WAIT_SECONDS_MAX, f"{namespace} to be empty",
          lambda: plane.api.count(pods(namespace)) + plane.api.count(services) == 0, 0.5)


def post_all(plane, path, bodies):
    """When the first was sent."""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(POSTS_AT_ONCE) as pool:
        list(pool.map(lambda body: plane.api.create(path, body), bodies))
    return began


def reached(watch, began, workload, taken):
    exist = watch.wait(watch.created, workload.pods, WAIT_SECONDS_MAX)
    taken_then = rounded(taken())
    running = watch.wait(watch.running, workload.pods, WAIT_SECONDS_MAX)
    return {"exist_seconds": round(exist - began, 3), "running_seconds": round(running - began, 3),
            "cpu_seconds_to_exist": taken_then, "cpu_seconds": rounded(taken())}


def rounded(values):
    return {name: round(value, 2) for name, value in values.items()}


def spent(plane):
    """A function that says what each process has taken since now."""
    before = plane.cpu_seconds()
    return lambda: {name: seconds - before.get(name, 0) for name, seconds in plane.cpu_seconds().items()}


def creation(plane, contender, workload):
    with fresh_namespace(plane) as (namespace, watch):
        taken = spent(plane)
        began = post_all(plane, contender.path(namespace), workload.bodies(contender, namespace))
        result = reached(watch, began, workload, taken)
        result |= memory_of(contender)
        empty(plane, namespace, contender.path)
    return result


def bare_creation(plane, connections, workload, author):
    """The same pods by the bare client; `author` writes the jobs that they are made from."""
    with fresh_namespace(plane) as (namespace, watch):
        bare = Bare(connections)
        bare.prepare(plane, workload.bodies(author, namespace), "create")
        taken = spent(plane)
        result = reached(watch, bare.go(), workload, taken)
        bare.finish()
        empty(plane, namespace)
    return result


def restart(plane, ours, workers):
    """From the write that says that one worker failed until all ranks of the next attempt run."""
    workload = Workload(1, workers)
    with fresh_namespace(plane) as (namespace, watch):
        post_all(plane, ours.path(namespace), workload.bodies(ours, namespace))
        watch.wait(watch.running, workers, WAIT_SECONDS_MAX)
        plane.settle()
        before = frozenset(watch.created)
        taken = spent(plane)
        began = time.monotonic()
        end_pod(plane.api, namespace, f"job-0-worker-{workers // 2}", 1)
        result = replaced(watch, began, before, taken)
        empty(plane, namespace, ours.path)
    return result


def bare_restart(plane, connections, workers, author):
    workload = Workload(1, workers)
    with fresh_namespace(plane) as (namespace, watch):
        for mode in ("create", "restart"):
            bare = Bare(connections)
            bare.prepare(plane, workload.bodies(author, namespace), mode)
            plane.settle()
            before = frozenset(watch.created)
            taken = spent(plane)
            began = bare.go()
            if mode == "create":
                watch.wait(watch.running, workers, WAIT_SECONDS_MAX)
            bare.finish()
        result = replaced(watch, began, before, taken)
        empty(plane, namespace)
    return result


def replaced(watch, began, before, taken):
    exist = watch.wait(watch.created, len(before), WAIT_SECONDS_MAX, before)
    running = watch.wait(watch.running, len(before), WAIT_SECONDS_MAX, before)
    return {"exist_seconds": round(exist - began, 3), "running_seconds": round(running - began, 3),
            "cpu_seconds": rounded(taken())}


def memory_of(contender):
    """Resident, and of that what is no page of a file: those the kernel can take back at any time."""
    return {"memory_mb": round(contender.process.memory_mb(), 1),
            "anonymous_mb": round(contender.process.memory_mb("RssAnon"), 1)}


def sample(ours, seconds):
    """Memory, the most of any second in the second half, and what is done in that time while nothing happens to any
    job."""
    cpu, writes = ours.process.cpu_seconds(), ours.writes()
    seen = []
    for _ in range(seconds):
        time.sleep(1)
        seen.append(memory_of(ours))
    written = {key: count - writes.get(key, 0) for key, count in ours.writes().items()
               if count != writes.get(key, 0)}
    most = max(seen[seconds // 2:], key=lambda memory: memory["memory_mb"])
    return {**most, "memory_most_mb": round(ours.process.memory_mb("VmHWM"), 1),
            "cpu_percent": round(100 * (ours.process.cpu_seconds() - cpu) / seconds, 2), "seconds": seconds,
            "writes": written, "descriptors": ours.process.descriptors()}


def at_loopback(job):
    """The same job, the pods of which have an address where something can answer (tests/plane/stages.yaml)."""
    job["spec"]["replicaSpecs"]["Worker"]["template"]["metadata"] = {"annotations": {"pod-address": "127.0.0.1"}}
    return job


def ask_at(plane, ours, namespace, port):
    """Of all jobs, where the operator asks rank 0."""
    patch = {"metadata": {"annotations": {PROGRESS_PORT: str(port)}}}
    paths = [ours.path(namespace, job["metadata"]["name"]) for job in plane.api.get(ours.path(namespace))["items"]]
    with concurrent.futures.ThreadPoolExecutor(POSTS_AT_ONCE) as pool:
        list(pool.map(lambda path: plane.api.patch(path, patch), paths))


def until_each(plane, ours, namespace, what, holds):
    """Waits for something to hold for the status of each job."""
    until(WAIT_SECONDS_MAX, f"each job to {what}", lambda: all(
        holds(job.get("status", {})) for job in plane.api.get(ours.path(namespace))["items"]), 1)


def footprint(plane, ours, jobs, foreign_pods, seconds):
    """Idle with nothing, with `jobs` running jobs of 8, with so many pods of others beside them, and with a rank 0 in
    each job that tells how far it is."""
    result = {"no jobs": sample(ours, seconds)}
    workload = Workload(jobs, 8)
    with fresh_namespace(plane) as (namespace, watch):
        post_all(plane, ours.path(namespace), map(at_loopback, workload.bodies(ours, namespace)))
        watch.wait(watch.running, workload.pods, WAIT_SECONDS_MAX)
        until_each(plane, ours, namespace, "be Running", lambda status: status.get("phase") == "Running")
        plane.settle()
        result[f"{jobs} running jobs of 8"] = sample(ours, seconds)
        ours.restart(plane, KEEP_FILE_PAGES)
        result[f"the same, restarted with {KEEP_FILE_PAGES}"] = sample(ours, seconds)
        ours.restart(plane)
        with fresh_namespace(plane) as (elsewhere, foreign):
            job = ours.job("foreign", elsewhere, foreign_pods)
            job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "nobody"
            bare = Bare(16)
            bare.prepare(plane, [job], "create")
            bare.go()
            foreign.wait(foreign.created, foreign_pods, WAIT_SECONDS_MAX)
            bare.finish()
            plane.settle()
            result[f"and {foreign_pods} pods of others"] = sample(ours, seconds)
            empty(plane, elsewhere)
        with rank0.answering() as port:
            ask_at(plane, ours, namespace, port)
            until_each(plane, ours, namespace, "tell its progress", lambda status: "progress" in status)
            # The first of them are told at once; what that took is to be given back by the second half.
            result[TELLING] = sample(ours, 2 * seconds)
        empty(plane, namespace, ours.path)
    return result


def writes_of_a_job(plane, contender, workers):
    """All that is written for one job that runs and succeeds, by the audit log: by kind of write."""
    workload = Workload(1, workers)
    with fresh_namespace(plane) as (namespace, watch):
        post_all(plane, contender.path(namespace), workload.bodies(contender, namespace))
        watch.wait(watch.running, workers, WAIT_SECONDS_MAX)
        plane.settle()
        for pod in plane.api.get(pods(namespace))["items"]:
            end_pod(plane.api, namespace, pod["metadata"]["name"], 0)
        until(WAIT_SECONDS_MAX, "the job to be done", lambda: contender.is_done(
            plane.api.get(contender.path(namespace, "job-0"))))
        plane.settle()
        found = {}
        for agent, verb, resource, where in plane.writes():
            if agent in contender.agents and where == namespace and resource not in NOT_OF_THE_JOB:
                key = f"{verb} {resource}"
                found[key] = found.get(key, 0) + 1
        empty(plane, namespace, contender.path)
    return found
