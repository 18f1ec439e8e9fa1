"""The product in good days: built, installed, used as its documents say, and removed."""
import copy
import json
import pathlib
import re
import subprocess
import tempfile

import yaml

import machine
import proxy
import stand_in
import world
from archive import Archive
from disk import DISK
from side import SIDE, until_phase
from world import equal, expect, get, kubectl, until

EXAMPLES = world.ROOT / "manifests/examples"
OPERATOR_IMAGE_MB_MAX = 60  # over its base
IMAGE_SECONDS_MAX = 7200  # --from-source compiles each source alone
ARCHIVES = {}
IMAGE_OPTIONS = []
CLUSTER_OPTIONS = []


def cluster_is_up():
    return bool(machine.namespaces())


def images_are_built_from_the_dockerfile():
    for target in ("operator", "trainer"):
        ARCHIVES[target] = world.run(world.ROOT / "tools/images", *IMAGE_OPTIONS, target, timeout=IMAGE_SECONDS_MAX, stderr=None).strip()
    ARCHIVES["stand-in"] = stand_in.archive()
    ARCHIVES["proxy"] = proxy.archive()


def two_nodes_come_up_and_take_the_images():
    DISK.mount()
    world.run(world.CLUSTER, "up", "2", *CLUSTER_OPTIONS)
    world.run(world.CLUSTER, "load", *ARCHIVES.values())
    equal(sorted(node["metadata"]["name"] for node in get("nodes")), ["n1", "n2"], "the nodes")


def helm_install_brings_up_the_operator():
    """Two of them, on the node that no story switches off, in a namespace that takes restricted pods only."""
    kubectl("create", "namespace", world.OPERATOR_NAMESPACE)
    kubectl("label", "namespace", world.OPERATOR_NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    world.helm("install", world.RELEASE, world.ROOT / "charts/trainingjob-operator", "--namespace", world.OPERATOR_NAMESPACE,
               "--set", r"nodeSelector.kubernetes\.io/hostname=n1", "--wait", "--timeout", "60s")
    pods = get("pods", namespace=world.OPERATOR_NAMESPACE)
    equal([pod["status"]["phase"] for pod in pods], ["Running"] * 2, "the phases of the operator's pods")
    equal([pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods], [0, 0], "the restarts of the operator")
    SIDE.start()


def a_second_cluster_on_the_machine_is_refused():
    """With a cache of its own, as another checkout has; this one is not disturbed."""
    with tempfile.TemporaryDirectory(prefix="tj-e2e-second-") as cache:
        pathlib.Path(cache, "bin").symlink_to(world.BIN)
        other = {"TRAININGJOB_CACHE": cache}
        refused = world.run(world.CLUSTER, "up", "1", check=False, env=other)
        wanted = f"the cluster in {world.CACHE}/cluster is up, and a machine carries one; take it down first: TRAININGJOB_CACHE={world.CACHE} "
        expect(refused.returncode != 0 and wanted in refused.stderr, f"the second was not refused: {refused}")
        world.run(world.CLUSTER, "down", env=other)
    ready = [condition["status"] for node in get("nodes") for condition in node["status"]["conditions"] if condition["type"] == "Ready"]
    equal(ready, ["True"] * 2, "whether the nodes are ready")


def the_operator_image_is_small_and_has_no_compiler():
    image = Archive(ARCHIVES["operator"])
    expect(image.added_mb() < OPERATOR_IMAGE_MB_MAX,
           f"the operator adds {image.added_mb():.0f} MB to its base; it may add {OPERATOR_IMAGE_MB_MAX}")
    equal(image.config["User"], "65532:65532", "the image's user")
    tools = {f"usr/bin/{name}" for name in ("gcc", "g++", "cc", "ld", "make", "cmake", "python3", "git")}
    equal(sorted(tools & image.files), [], "build tools in the image")
    expect("usr/local/bin/trainingjob-operator" in image.files, "the image has no operator")


def the_trainer_image_has_its_programs_and_the_samples():
    image = Archive(ARCHIVES["trainer"])
    wanted = {f"usr/local/lib/trainingjob/{name}" for name in ("trainer", "trainer-engine", "libtrainer_nccl.so", "libtrainer_video.so", "libtrainer_parquet.so",
                                                                  "libtrainer_sentencepiece.so", "libtrainer_picture.so")}
    wanted.add("usr/local/bin/trainer")
    wanted |= {f"usr/lib/x86_64-linux-gnu/lib{name}" for name in ("avformat.so.59", "avcodec.so.59", "swscale.so.6", "sentencepiece.so.0")}
    wanted |= {f"usr/local/lib/trainingjob/lib{name}.so.2600" for name in ("arrow", "parquet")}
    samples = [path for folder in ("text", "videos", "robot", "navigation") for path in (EXAMPLES / folder).rglob("*") if path.is_file()]
    wanted |= {f"usr/share/trainingjob/{path.relative_to(EXAMPLES)}" for path in samples}
    equal(sorted(wanted - image.files), [], "files missing in the image")
    equal(image.config["WorkingDir"], "/usr/share/trainingjob", "the working folder")
    equal(image.config["User"], "65532:65532", "the image's user")
    equal(sorted({"usr/bin/gcc", "usr/bin/python3"} & image.files), [], "what a trainer needs not")


def the_operator_answers_probes_and_metrics():
    proxy = f"/api/v1/namespaces/{world.OPERATOR_NAMESPACE}/services/{world.RELEASE}-metrics:8080/proxy"
    for path in ("healthz", "readyz"):
        kubectl("get", "--raw", f"{proxy}/{path}")
    metrics = kubectl("get", "--raw", f"{proxy}/metrics")
    for name in ("trainingjob_api_requests_total", "trainingjob_cache_objects", "trainingjob_queue_depth"):
        expect(re.search(rf"^{name}(\{{.*\}})? [0-9]", metrics, re.MULTILINE), f"no value of {name} in:\n{metrics[:2000]}")


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
    column_moves_until_the_end("gpt2-nano", r"\b(\d+)/150 \(\d+%\)")


def column_moves_until_the_end(name, progress):
    """The column PROGRESS of `kubectl get tj -w`, while the job goes on to its end."""
    watch = subprocess.Popen([world.BIN / "kubectl", "get", "tj", name, "-w"], stdout=subprocess.PIPE, text=True,
                             env=world.with_kubeconfig())
    try:
        until_phase(name, "Succeeded", seconds=240)
    finally:
        watch.kill()
        lines = watch.communicate()[0]
    steps = [int(step) for step in re.findall(progress, lines)]
    expect(len(set(steps)) > 1 and steps == sorted(steps), f"`kubectl get tj -w` shows no progress that moves:\n{lines}")


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


def kubectl_get_tj_shows_the_columns():
    lines = kubectl("get", "tj", "gpt2-nano").splitlines()
    equal(lines[0].split(), ["NAME", "PHASE", "READY", "PROGRESS", "ATTEMPT", "RESTARTS", "REASON", "AGE"], "the columns")
    words = lines[1].split()
    equal(words[:3] + words[-4:-1], ["gpt2-nano", "Succeeded", "0/2", "0", "0", "WorkersSucceeded"], "the job's line")
    events = [event["reason"] for event in get("events") if event["involvedObject"]["name"] == "gpt2-nano"]
    expect("WorkersSucceeded" in events, f"no event tells of the success; there are {sorted(set(events))}")


def four_processes_of_two_pods_train_together():
    """`trainer launch --nproc 2` makes two ranks of each pod; all four are one training."""
    manifest = yaml.safe_load((EXAMPLES / "gpt2-nano.yaml").read_text())
    manifest["metadata"]["name"] = "four"
    pod = manifest["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    pod["topologySpreadConstraints"][0].update(whenUnsatisfiable="DoNotSchedule",
                                               labelSelector={"matchLabels": {"job-name": "four"}})
    container = pod["containers"][0]
    container["command"] = ["trainer", "launch", "--nproc", "2", "--", "trainer", "train"]
    container["args"] = ["--model=gpt2-nano", "--data=text", "--out=/checkpoints", "--steps=40", "--batch-size=32", "--log-every=10"]
    world.apply(manifest)
    until_phase("four", "Succeeded", seconds=240)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in get("pods", selector="job-name=four")}
    equal(sorted(nodes.values()), ["n1", "n2"], "the nodes of the pods")
    master = r"\(master four-worker-0\.four:29500\)"
    for worker in (0, 1):
        name = f"four-worker-{worker}"
        text = world.logs(name)
        joined = re.findall(rf"rank (\d)/4 joined in [0-9.]+ s on node (\S+) {master}$", text, re.MULTILINE)
        wanted = [(str(rank), nodes[name]) for rank in (2 * worker, 2 * worker + 1)]
        equal(sorted(joined), wanted, f"the ranks that joined in {name}, with their nodes")
    first = world.logs("four-worker-0")
    expect(re.search(r"collectives: Gloo over eth0 \([0-9.]+\): no GPU is visible$", first, re.MULTILINE),
           f"rank 0 does not say what carries the collectives:\n{first[:2000]}")
    losses = [float(loss) for loss in re.findall(r"\bloss[ =:]+([0-9.]+)", first)]
    expect(losses and losses[0] > 5 and losses[-1] < losses[0] - 1, f"the loss went from {losses[:1]} to {losses[-1:]}")
    world.delete_job("four")


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


def the_manifest_of_the_design_runs_unmodified():
    capacity = [{"op": "add", "path": f"/status/{field}/nvidia.com~1gpu", "value": "8"} for field in ("capacity", "allocatable")]
    for node in ("n1", "n2"):
        kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps(capacity))
    print_environment()
    kubectl("apply", "-f", EXAMPLES / "taehv-own-script.yaml")
    until_phase("taehv-16gpu-training", "Succeeded")
    pods = get("pods", selector="job-name=taehv-16gpu-training")
    equal(sorted(pod["spec"]["nodeName"] for pod in pods), ["n1", "n2"], "the nodes: each has GPUs for one worker")
    for rank in (0, 1):
        contract = expected_contract("taehv-16gpu-training", rank)
        equal(told("taehv-16gpu-training", rank)[:len(contract)], contract, f"what worker {rank} was told")
    world.delete_job("taehv-16gpu-training")


def the_contract_stands_before_the_users_own_variables():
    manifest = copy.deepcopy(yaml.safe_load((EXAMPLES / "taehv-own-script.yaml").read_text()))
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


def a_worker_resolves_the_master_before_it_is_ready():
    world.apply(stand_in.job("dns", "until getent hosts $MASTER_ADDR; do sleep 0.2; done"))
    until_phase("dns", "Succeeded")
    address = get("pod", "dns-worker-0")["status"]["podIP"]
    expect(world.logs("dns-worker-1").startswith(address), f"worker 1 resolved {world.logs('dns-worker-1')}, not {address}")
    world.delete_job("dns")


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


def nothing_was_lost_and_nothing_doubled():
    """What the side saw in all stories before: never two pods of one rank, never two attempts among ready pods."""
    expect(SIDE.still_watches(), "a watch has ended before its time: something may have passed unseen")
    equal(SIDE.problems, [], "what was wrong at some moment")
    left = [pod["metadata"]["name"] for pod in get("pods", selector="kubebrain.io/trainingjob")]
    services = [service["metadata"]["name"] for service in get("services", selector="kubebrain.io/trainingjob")]
    equal((left, services), ([], []), "the pods and Services that outlived their jobs")
    expect(SIDE.pod_count > 0, "the side has seen no pod at all")
    return f"{SIDE.pod_count} pods in {SIDE.event_count} changes, {len(SIDE.gangs)} gangs complete"


def the_rendered_manifest_installs_it_without_helm():
    manifest = world.ROOT / "manifests/install/trainingjob-operator.yaml"
    kubectl("apply", "--server-side", "--force-conflicts", "-f", manifest)
    kubectl("rollout", "status", f"deployment/{world.RELEASE}", "-n", world.OPERATOR_NAMESPACE, "--timeout=60s")
    if get("tj", "kept"):  # a job of before the uninstall (installs.py): nobody has looked after it since
        until_phase("kept", "Succeeded")
    world.apply(stand_in.job("plain", "echo worker $RANK of $WORLD_SIZE"))
    until_phase("plain", "Succeeded")
    equal([world.logs(f"plain-worker-{rank}") for rank in (0, 1)], ["worker 0 of 2\n", "worker 1 of 2\n"], "the logs")
    for name in ("plain", "kept"):
        world.delete_job(name)
    kubectl("delete", "-f", manifest, "--timeout=90s")


def taking_the_cluster_down_leaves_nothing_behind():
    had_netns_folder = pathlib.Path("/run/netns").exists() and not (world.CACHE / "cluster/netns-folder-is-ours").exists()
    world.run(world.CLUSTER, "down")
    DISK.unmount()
    equal(machine.leftovers(), {}, "what is left on the machine")
    equal(pathlib.Path("/run/netns").exists(), had_netns_folder, "whether /run/netns exists, which it did before")
