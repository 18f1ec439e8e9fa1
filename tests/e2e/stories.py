"""The stories, in the order in which they are told. Those marked as set-up are what all others stand on."""
import copy
import json
import pathlib
import re

import yaml

import machine
import stand_in
import world
from archive import Archive
from world import equal, expect, get, kubectl, status, until, until_phase

EXAMPLES = world.ROOT / "manifests/examples"
OPERATOR_IMAGE_MB_MAX = 60  # over its base
STORIES = []
ARCHIVES = {}


def story(function):
    function.is_setup = False
    STORIES.append(function)
    return function


def setup(function):
    STORIES.append(function)
    function.is_setup = True
    return function


def cluster_is_up():
    return bool(machine.namespaces())


@setup
def images_are_built_from_the_dockerfile():
    for target in ("operator", "trainer"):
        ARCHIVES[target] = world.run(world.ROOT / "tools/images", target, timeout=2400).strip()
    ARCHIVES["stand-in"] = stand_in.archive()


@setup
def two_nodes_come_up_and_take_the_images():
    world.run(world.CLUSTER, "up", "2")
    world.run(world.CLUSTER, "load", *ARCHIVES.values())
    equal(sorted(node["metadata"]["name"] for node in get("nodes")), ["n1", "n2"], "the nodes")


@setup
def helm_install_brings_up_the_operator():
    world.helm("install", world.RELEASE, world.ROOT / "charts/trainingjob-operator", "--namespace", world.OPERATOR_NAMESPACE,
               "--create-namespace", "--wait", "--timeout", "60s")
    pods = get("pods", namespace=world.OPERATOR_NAMESPACE)
    equal([pod["status"]["phase"] for pod in pods], ["Running"], "the phases of the operator's pods")
    equal(pods[0]["status"]["containerStatuses"][0]["restartCount"], 0, "the restarts of the operator")


@story
def the_operator_image_is_small_and_has_no_compiler():
    image = Archive(ARCHIVES["operator"])
    expect(image.added_mb() < OPERATOR_IMAGE_MB_MAX,
           f"the operator adds {image.added_mb():.0f} MB to its base; it may add {OPERATOR_IMAGE_MB_MAX}")
    equal(image.config["User"], "65532:65532", "the image's user")
    tools = {f"usr/bin/{name}" for name in ("gcc", "g++", "cc", "ld", "make", "cmake", "python3", "git")}
    equal(sorted(tools & image.files), [], "build tools in the image")
    expect("usr/local/bin/trainingjob-operator" in image.files, "the image has no operator")


@story
def the_trainer_image_has_its_programs_and_the_sample_text():
    image = Archive(ARCHIVES["trainer"])
    wanted = {"usr/local/bin/trainer", "usr/local/bin/trainer-engine"}
    wanted |= {f"usr/share/trainingjob/text/{path.name}" for path in (EXAMPLES / "text").glob("*.txt")}
    equal(sorted(wanted - image.files), [], "files missing in the image")
    equal(image.config["WorkingDir"], "/usr/share/trainingjob", "the working folder")
    equal(sorted({"usr/bin/gcc", "usr/bin/python3"} & image.files), [], "what a trainer needs not")


@story
def the_operator_answers_probes_and_metrics():
    proxy = f"/api/v1/namespaces/{world.OPERATOR_NAMESPACE}/services/{world.RELEASE}-metrics:8080/proxy"
    for path in ("healthz", "readyz"):
        kubectl("get", "--raw", f"{proxy}/{path}")
    metrics = kubectl("get", "--raw", f"{proxy}/metrics")
    for name in ("trainingjob_api_requests_total", "trainingjob_cache_objects", "trainingjob_queue_depth"):
        expect(re.search(rf"^{name}(\{{.*\}})? [0-9]", metrics, re.MULTILINE), f"no value of {name} in:\n{metrics[:2000]}")


@story
def gpt2_nano_trains_on_two_nodes():
    kubectl("apply", "-f", EXAMPLES / "gpt2-nano.yaml")
    until_phase("gpt2-nano", "Running", seconds=60)
    pods = get("pods", selector="job-name=gpt2-nano")
    equal(sorted(pod["metadata"]["name"] for pod in pods), ["gpt2-nano-worker-0", "gpt2-nano-worker-1"], "the pods")
    equal(sorted(pod["spec"]["nodeName"] for pod in pods), ["n1", "n2"], "the nodes of the pods")
    service = get("service", "gpt2-nano")["spec"]
    equal((service["clusterIP"], service["publishNotReadyAddresses"]), ("None", True), "the Service")
    for rank in (0, 1):
        environment = kubectl("exec", f"gpt2-nano-worker-{rank}", "--", "cat", "/proc/1/environ").split("\0")
        for variable in (f"RANK={rank}", "WORLD_SIZE=2", "MASTER_ADDR=gpt2-nano-worker-0.gpt2-nano", "MASTER_PORT=29500"):
            expect(variable in environment, f"worker {rank} was not told {variable}")
    until_phase("gpt2-nano", "Succeeded", seconds=240)


@story
def gpt2_nano_shows_its_logs_by_worker_and_by_label():
    by_rank = [world.logs(f"gpt2-nano-worker-{rank}") for rank in (0, 1)]
    for rank, text in enumerate(by_rank):
        expect(re.search(rf"\brank[ =]{rank}\b", text), f"worker {rank} does not name its rank:\n{text[:1500]}")
        expect(not re.search(rf"^.*\brank[ =]{1 - rank}\b.*joined", text, re.MULTILINE), f"worker {rank} joined as the other")
    losses = [float(loss) for loss in re.findall(r"\bloss[ =:]+([0-9.]+)", by_rank[0])]
    expect(losses and losses[0] > 5 and losses[-1] < 2.5, f"the loss went from {losses[:1]} to {losses[-1:]}")
    by_label = kubectl("logs", "-l", "job-name=gpt2-nano", "--tail=-1")
    for rank in (0, 1):
        expect(re.search(rf"\brank[ =]{rank}\b", by_label), f"`kubectl logs -l` does not show rank {rank}")


@story
def kubectl_get_tj_shows_the_columns():
    lines = kubectl("get", "tj", "gpt2-nano").splitlines()
    equal(lines[0].split(), ["NAME", "PHASE", "READY", "ATTEMPT", "RESTARTS", "REASON", "AGE"], "the columns")
    *columns, reason, _ = lines[1].split()
    equal([*columns[:4], reason], ["gpt2-nano", "Succeeded", "0/2", "0", "WorkersSucceeded"], "the job's line")
    events = [event["reason"] for event in get("events") if event["involvedObject"]["name"] == "gpt2-nano"]
    expect("WorkersSucceeded" in events, f"no event tells of the success; there are {sorted(set(events))}")


@story
def deleting_the_job_leaves_no_pod_and_no_service():
    kubectl("delete", "tj", "gpt2-nano", "--timeout=60s")
    until(60, "the pods and the Service to go", lambda: not get("pods", selector="job-name=gpt2-nano")
          and not get("services", selector="job-name=gpt2-nano"))
    equal([service["metadata"]["name"] for service in get("services")], ["kubernetes"], "the Services that are left")


def print_environment():
    """A platform's start script: prints the variables in the order in which the process got them."""
    world.write_on_nodes("/mnt/project/start_multinode_platform.sh", "tr '\\0' '\\n' </proc/$$/environ\n")


def expected_contract(job, rank):
    master, uid = f"{job}-worker-0.{job}", get("tj", job)["metadata"]["uid"]
    return ["WORLD_SIZE=2", f"RANK={rank}", f"MASTER_ADDR={master}", "MASTER_PORT=29500", "NNODES=2", f"NODE_RANK={rank}",
            "NPROC_PER_NODE=8", "PET_NNODES=2", f"PET_NODE_RANK={rank}", "PET_NPROC_PER_NODE=8", f"PET_MASTER_ADDR={master}",
            "PET_MASTER_PORT=29500", f"TRAININGJOB_NAME={job}", "TRAININGJOB_NAMESPACE=default", f"TRAININGJOB_UID={uid}",
            "TRAININGJOB_ATTEMPT=0"]


def told(job, rank):
    """The variables of the worker in the order of its pod, in which $(NAME) expands, with the values its process saw.
    A process gets them in no order: the kubelet keeps them in a map."""
    seen = dict(line.split("=", 1) for line in world.logs(f"{job}-worker-{rank}").splitlines() if "=" in line)
    names = [variable["name"] for variable in get("pod", f"{job}-worker-{rank}")["spec"]["containers"][0]["env"]]
    return [f"{name}={seen.get(name)}" for name in names]


@story
def the_manifest_of_the_design_runs_unmodified():
    capacity = [{"op": "add", "path": f"/status/{field}/nvidia.com~1gpu", "value": "8"} for field in ("capacity", "allocatable")]
    for node in ("n1", "n2"):
        kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps(capacity))
    print_environment()
    kubectl("apply", "-f", EXAMPLES / "taehv-16gpu.yaml")
    until_phase("taehv-16gpu-training", "Succeeded")
    pods = get("pods", selector="job-name=taehv-16gpu-training")
    equal(sorted(pod["spec"]["nodeName"] for pod in pods), ["n1", "n2"], "the nodes: each has GPUs for one worker")
    for rank in (0, 1):
        contract = expected_contract("taehv-16gpu-training", rank)
        equal(told("taehv-16gpu-training", rank)[:len(contract)], contract, f"what worker {rank} was told")
    world.delete_job("taehv-16gpu-training")


@story
def the_contract_stands_before_the_users_own_variables():
    manifest = copy.deepcopy(yaml.safe_load((EXAMPLES / "taehv-16gpu.yaml").read_text()))
    manifest["metadata"]["name"] = "own"
    manifest["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "FIRST", "value": "$(MASTER_ADDR):$(MASTER_PORT)"}, {"name": "SECOND", "value": "$(RANK) of $(WORLD_SIZE)"}]
    print_environment()
    world.apply(manifest)
    until_phase("own", "Succeeded")
    for rank in (0, 1):
        variables = told("own", rank)
        contract = expected_contract("own", rank)
        equal(variables[:len(contract)], contract, f"what worker {rank} was told")
        equal(variables[-2:], ["FIRST=own-worker-0.own:29500", f"SECOND={rank} of 2"], f"worker {rank}'s own variables")
    world.delete_job("own")


@story
def a_worker_resolves_the_master_before_it_is_ready():
    world.apply(stand_in.job("dns", "until getent hosts $MASTER_ADDR; do sleep 0.2; done"))
    until_phase("dns", "Succeeded")
    address = get("pod", "dns-worker-0")["status"]["podIP"]
    expect(world.logs("dns-worker-1").startswith(address), f"worker 1 resolved {world.logs('dns-worker-1')}, not {address}")
    world.delete_job("dns")


@story
def the_operator_may_die_in_the_middle_of_a_job():
    world.apply(stand_in.job("steady", stand_in.waits_for("steady")))
    until_phase("steady", "Running")
    before = {pod["metadata"]["uid"] for pod in get("pods", selector="job-name=steady")}
    mine = get("pods", namespace=world.OPERATOR_NAMESPACE)[0]["metadata"]["name"]
    kubectl("delete", "pod", mine, "-n", world.OPERATOR_NAMESPACE, "--force", "--grace-period=0")
    stand_in.release("steady")  # the workers end while nobody looks
    until_phase("steady", "Succeeded")
    after = {pod["metadata"]["uid"] for pod in get("pods", selector="job-name=steady")}
    equal(after, before, "the pods after the operator's restart")
    equal(status("steady")["attempt"], 0, "the attempt")
    world.delete_job("steady")


@story
def a_worker_that_fails_ends_the_job_with_a_true_reason():
    script = 'if [ $RANK = 1 ]; then echo "no space left in /data" >&2; exit 3; fi; ' + stand_in.waits_for("never")
    world.apply(stand_in.job("broken", script))
    until_phase("broken", "Failed")
    seen = status("broken")
    equal(seen["reason"], "WorkerFailed", "the reason")
    for words in ("worker 1 on node n", "no space left in /data"):
        expect(words in seen["message"], f"the message does not say {words!r}: {seen['message']}")
    equal((seen["firstFailure"]["rank"], seen["firstFailure"]["exitCode"]), (1, 3), "the first failure")
    until(30, "worker 0 to be stopped", lambda: not get("pod", "broken-worker-0"))
    expect("no space left" in world.logs("broken-worker-1"), "the log of the failed worker is gone")
    world.delete_job("broken")


@story
def a_killed_pod_fails_the_job_with_a_true_reason():
    world.apply(stand_in.job("killed", stand_in.waits_for("never")))
    until_phase("killed", "Running")
    kubectl("delete", "pod", "killed-worker-1", "--force", "--grace-period=0")
    until_phase("killed", "Failed")
    seen = status("killed")
    expect("worker 1" in seen["message"], f"the message does not name worker 1: {seen['message']}")
    expect(seen["reason"] in ("WorkerLost", "WorkerFailed"), f"the reason is {seen['reason']}: {seen['message']}")
    until(30, "worker 0 to be stopped", lambda: not get("pod", "killed-worker-0"))
    world.delete_job("killed")


@story
def a_job_that_cannot_be_scheduled_says_for_what_it_waits():
    job = stand_in.job("greedy", "true", replicas=1)
    job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 64}}
    world.apply(job)
    until(30, "the status to say what is missing", lambda: "nvidia.com/gpu" in status("greedy").get("message", ""))
    equal(status("greedy")["phase"], "Starting", "the phase")
    world.delete_job("greedy")


@story
def an_operator_without_rights_says_which_and_goes_on_when_it_gets_them():
    image = get("deployment", world.RELEASE, world.OPERATOR_NAMESPACE)["spec"]["template"]["spec"]["containers"][0]["image"]
    kubectl("create", "namespace", "powerless")
    kubectl("create", "serviceaccount", "nobody", "-n", "powerless")
    probe = {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1}
    world.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": {
        "serviceAccountName": "nobody", "containers": [{"name": "operator", "image": image, "readinessProbe": probe,
                                                        "args": ["--listen", "0.0.0.0:8080", "--namespace", "powerless"]}]}},
                namespace="powerless")
    def said():
        text = kubectl("logs", "operator", "-n", "powerless", check=False).stdout
        return text if "forbidden" in text else None
    text = until(60, "the operator to say that it is forbidden", said)
    line = next(line for line in text.splitlines() if "forbidden" in line)
    for words in ("powerless:nobody", "trainingjobs"):
        expect(words in text, f"the operator does not say {words!r}: {line}")
    ready = [c["ready"] for c in get("pod", "operator", "powerless")["status"]["containerStatuses"]]
    equal(ready, [False], "whether it is ready")
    kubectl("create", "rolebinding", "nobody", "-n", "powerless", f"--clusterrole={world.RELEASE}", "--serviceaccount=powerless:nobody")
    kubectl("wait", "pod/operator", "-n", "powerless", "--for=condition=Ready", "--timeout=60s")
    kubectl("delete", "namespace", "powerless", "--timeout=90s")


@story
def helm_uninstall_removes_the_operator():
    world.helm("uninstall", world.RELEASE, "--namespace", world.OPERATOR_NAMESPACE, "--wait", "--timeout", "60s")
    until(60, "the operator's pod to go", lambda: not get("pods", namespace=world.OPERATOR_NAMESPACE))
    for kind in ("deployment", "service", "role", "rolebinding", "clusterrole", "clusterrolebinding"):
        found = get(kind, namespace=world.OPERATOR_NAMESPACE, selector="app.kubernetes.io/instance=" + world.RELEASE)
        equal([item["metadata"]["name"] for item in found], [], f"what is left of kind {kind}")
    expect(get("crd", "trainingjobs.kubebrain.io"), "the resource definition went with the operator, and all jobs with it")


@story
def the_rendered_manifest_installs_it_without_helm():
    manifest = world.ROOT / "manifests/install/trainingjob-operator.yaml"
    kubectl("apply", "--server-side", "--force-conflicts", "-f", manifest)
    kubectl("rollout", "status", f"deployment/{world.RELEASE}", "-n", world.OPERATOR_NAMESPACE, "--timeout=60s")
    world.apply(stand_in.job("plain", "echo worker $RANK of $WORLD_SIZE"))
    until_phase("plain", "Succeeded")
    equal([world.logs(f"plain-worker-{rank}") for rank in (0, 1)], ["worker 0 of 2\n", "worker 1 of 2\n"], "the logs")
    world.delete_job("plain")
    kubectl("delete", "-f", manifest, "--timeout=90s")


@story
def a_node_that_lost_its_power_comes_back():
    world.run(world.CLUSTER, "kill-node", 2)
    until(60, "node n2 to be seen as lost", lambda: not is_ready("n2"))
    world.run(world.CLUSTER, "node", 2)
    until(60, "node n2 to be Ready again", lambda: is_ready("n2"))


def is_ready(node):
    conditions = get("node", node)["status"]["conditions"]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def taking_the_cluster_down_leaves_nothing_behind():
    had_netns_folder = pathlib.Path("/run/netns").exists() and not (world.CACHE / "cluster/netns-folder-is-ours").exists()
    world.run(world.CLUSTER, "down")
    equal(machine.leftovers(), {}, "what is left on the machine")
    equal(pathlib.Path("/run/netns").exists(), had_netns_folder, "whether /run/netns exists, which it did before")


taking_the_cluster_down_leaves_nothing_behind.is_setup = False
