"""The machine under the test cluster: the processes of its containers, and the proof that it leaves nothing behind."""
import os
import pathlib
import signal

import world

SUBNETS = ("10.77.", "10.78.")


def namespaces():
    return [line.split()[0] for line in world.run("ip", "netns").splitlines() if line.split()[0].startswith("tj")]


def mounts():
    lines = pathlib.Path("/proc/mounts").read_text().splitlines()
    places = [line.split()[1] for line in lines]
    return [place for place in places if place.startswith((str(world.CACHE / "cluster"), "/run/netns/tj"))]


def links_and_routes():
    devices = [path.name for path in pathlib.Path("/sys/class/net").iterdir() if path.name.startswith("tjh")]
    routes = [line for line in world.run("ip", "route").splitlines() if line.startswith(SUBNETS)]
    return devices + routes


def cgroups():
    return sorted(str(path) for pattern in ("tj-n*", "*/tj-n*") for path in pathlib.Path("/sys/fs/cgroup").glob(pattern))


def processes():
    """Processes with a file of the cluster in their command line: its programs have one each."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended meanwhile
        if any(f"{world.CACHE}/cluster/" in word for word in words):
            found.append(f"{folder.name} {words[0]}")
    return found


def process_of(pod, is_meant):
    """The process of a pod's first container whose /proc/PID/status has what is meant; its id, as seen from its node."""
    name = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_inside = name in (folder / "cgroup").read_text()
            words = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        except OSError:
            continue  # it has ended meanwhile
        if is_inside and is_meant(words):
            return int(folder.name)
    raise world.Failure(f"container {name} of pod {pod['metadata']['name']} has no such process")


def first_process(pod):
    return process_of(pod, lambda words: words["NSpid"].split()[-1] == "1")


def kill_container(pod):
    """kill -9 of the first process."""
    os.kill(first_process(pod), signal.SIGKILL)


def process_named(pod, program):
    return process_of(pod, lambda words: words["Name"].strip() == program)


def freeze(pod, program):
    os.kill(process_named(pod, program), signal.SIGSTOP)


def leftovers():
    kinds = {"network namespaces": namespaces, "mounts": mounts, "links and routes": links_and_routes,
             "cgroups": cgroups, "processes": processes}
    left = {what: look() for what, look in kinds.items()}
    if (world.CACHE / "cluster").exists():
        left["files"] = [str(world.CACHE / "cluster")]
    return {what: things for what, things in left.items() if things}
