"""The faults of tests/trainer/faults, in pods on two nodes: the same strikes, the same sentences; the operator restarts."""
import contextlib
import os
import pathlib
import select
import shutil
import subprocess
import sys
import threading
import time

import machine
import stories
import world
import yaml
from disk import DISK
from side import SIDE, pods, status, uid_of, until_phase
from world import expect, kubectl, until

sys.path.insert(0, str(world.ROOT / "tests/trainer/faults"))
from faults import FAULTS, FLAGS, LAUNCH, Run, data_of, files_of, together, write_data  # noqa: E402
from said import Said, check_end  # noqa: E402

POSSIBLE = [name for name in FAULTS if name != "vanished"]  # that of rank 1 has the operators on it
POD_NETWORKS = "10.78.0.0/16"
INSIDE = "/faults"  # the disk, in a pod
BATCH = ("--batch-size", 32)  # a fault comes after its line has gone through the API server: many steps must be left
CODE_SECONDS_MAX = 15
RUN_SECONDS_MAX = 300
# The first gang waits for a word for each rank: a fault may be that one comes late.
START = 'trap "exit 143" TERM; [ $TRAININGJOB_ATTEMPT != 0 ] || until [ -e "$0-$RANK" ]; do sleep 0.1; done; exec "$@"'


class Cable:
    """What carries the pods' packets between the nodes; the nodes themselves stay in reach of the API server."""

    chain = "tj-faults"

    def __init__(self):
        self.iptables("-N", self.chain)
        self.iptables("-I", "FORWARD", "-s", POD_NETWORKS, "-d", POD_NETWORKS, "-j", self.chain)

    @staticmethod
    def iptables(*arguments):
        world.run("nsenter", "--net=/run/netns/tj-n2", "iptables", *arguments)

    def cut(self):
        self.iptables("-A", self.chain, "-j", "DROP")

    def lose(self, share):
        self.iptables("-A", self.chain, "-m", "statistic", "--mode", "random", "--probability", share, "-j", "DROP")

    def mend(self):
        self.iptables("-F", self.chain)


def manifest(name, more):
    """A worker on each node, in their containers' words."""
    job = yaml.safe_load((stories.EXAMPLES / "gpt2-nano.yaml").read_text())
    job["metadata"]["name"] = name
    job["spec"]["runPolicy"] = {"maxRestarts": 20, "restartBackoffSeconds": 0}
    pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    pod["topologySpreadConstraints"][0].update(whenUnsatisfiable="DoNotSchedule",
                                               labelSelector={"matchLabels": {"job-name": name}})
    pod["volumes"][0] = {"name": "checkpoints", "hostPath": {"path": str(DISK.folder), "type": "Directory"}}
    container = pod["containers"][0]
    container["volumeMounts"][0]["mountPath"] = INSIDE
    container["command"] = ["sh", "-c", START, f"{INSIDE}/{name}-go", "trainer", *LAUNCH, "trainer", "train"]
    container["args"] = [*map(str, (*FLAGS, *BATCH, *more)), f"--data={INSIDE}/data-$(RANK)", f"--out={INSIDE}/{name}"]
    return job


class Worker(Said):
    """A rank of the first gang, by what `kubectl logs -f` shows of it."""

    def __init__(self, name, rank):
        self.pod = next(pod for pod in pods(name) if pod["metadata"]["name"] == f"{name}-worker-{rank}")
        self.key = uid_of(name), 0, rank
        self.end = os.pidfd_open(machine.first_process(self.pod))  # exact, where the log's end comes a second later
        threading.Thread(target=self.watch_end, daemon=True).start()
        super().__init__(subprocess.Popen(
            [world.BIN / "kubectl", "logs", "-f", self.pod["metadata"]["name"]], env=world.with_kubeconfig(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))

    def watch_end(self):
        select.select([self.end], [], [])
        self.process_ended_at = time.monotonic()
        os.close(self.end)

    def engine(self):
        return machine.process_named(self.pod, "trainer-engine")

    def stop(self):
        kubectl("delete", "pod", self.pod["metadata"]["name"], "--wait=false")

    def wait(self):
        """Its container's exit code; none where its node could not tell any more."""
        super().wait()
        self.ended_at = self.process_ended_at
        with contextlib.suppress(world.Failure):
            until(CODE_SECONDS_MAX, "the exit code", lambda: self.key in SIDE.codes)
        return SIDE.codes.get(self.key)


class ClusterRun(Run):
    def __init__(self, cable, name, more=()):
        super().__init__(cable, DISK.folder / name, [data_of(DISK.folder, rank) for rank in range(2)])
        self.name = name
        world.apply(manifest(name, more))
        until(60, lambda: f"both containers of {name} to run; it is {status(name)}", self.both_run)
        placed = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods(name)}
        self.nodes = [placed[f"{name}-worker-{rank}"] for rank in range(2)]

    def both_run(self):
        states = [state["state"] for pod in pods(self.name) for state in pod["status"].get("containerStatuses", [])]
        return ["running" in state for state in states] == [True] * 2

    def start(self, rank):
        (DISK.folder / f"{self.name}-go-{rank}").touch()
        self.ranks[rank] = Worker(self.name, rank)

    start_in_memory_group = start  # a pod has one

    @property
    def memory_group(self):
        lines = pathlib.Path(f"/proc/{self.ranks[1].engine()}/cgroup").read_text().splitlines()
        entries = [line.split(":", 2) for line in lines]
        path = next(path for _, kinds, path in entries if "memory" in kinds.split(",") or not kinds)
        is_v1 = pathlib.Path("/sys/fs/cgroup/memory").exists()
        return pathlib.Path("/sys/fs/cgroup/memory" if is_v1 else "/sys/fs/cgroup") / path.lstrip("/")

    def make_disk_small(self):
        """It is."""

    def power_off(self, rank):
        expect(self.nodes[rank] == "n2", f"rank {rank} is on {self.nodes[rank]}, where the operators are")
        self.place.cut()  # else the machine says good-bye for its processes
        world.run(world.CLUSTER, "kill-node", 2)
        self.undo.callback(world.run, world.CLUSTER, "node", 2)

    def until_succeeded(self):
        until_phase(self.name, "Succeeded", RUN_SECONDS_MAX)
        files = files_of(self.out)
        world.delete_job(self.name)
        shutil.rmtree(self.out)
        return files


class Table:
    """The rows, each a story of its own after that of the undisturbed training."""

    def undisturbed_training(self):
        """Every other one must end with the same files."""
        write_data(DISK.folder)
        self.cable = Cable()
        calm = ClusterRun(self.cable, "calm")
        together(calm)
        self.undisturbed = calm.until_succeeded()

    def suffer(self, name):
        fault = FAULTS[name]
        run = ClusterRun(self.cable, name, fault.more)
        try:
            fault.start(run)
            run.ranks[0].wait_for(fault.after)
            struck_at = time.monotonic()
            fault.strike(run)
            row, went_on = check_end(name, fault, run.ranks, struck_at, run.nodes)
        except (AssertionError, SystemExit) as reason:
            raise world.Failure(str(reason)) from reason
        finally:
            self.cable.mend()
            run.undo.close()
        failure = {} if went_on else until(60, "the first failure", lambda: status(name).get("firstFailure"))
        expect(run.until_succeeded() == self.undisturbed, f"{name}: other bits than the undisturbed run")
        return f"| {fault.what} | {row} {failure.get('cause', '-')}: {failure.get('message', '-')} |"

    def row(self, name):
        def story():
            return self.suffer(name)

        story.__name__ = f"fault_{name}"
        return story


TABLE = Table()
