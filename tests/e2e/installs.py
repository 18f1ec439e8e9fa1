"""The life of the chart's release beside jobs that run: its rights, an upgrade with another resource definition, the way
back, the end of the release; and an operator for one namespace only."""
import json
import pathlib
import shutil
import tempfile

import stand_in
import world
import yaml
from side import SIDE, status, uids, until_all_run, until_phase
from support import documented_rights
from world import equal, expect, get, kubectl, until

CHART = world.ROOT / "charts/trainingjob-operator"
CRD = "trainingjobs.kubebrain.io"
NEW_FIELD = "fieldOfTheFuture"
ON_NODE_1 = ("--set", r"nodeSelector.kubernetes\.io/hostname=n1")  # no story switches that one off


def brought_up(verb, *arguments, name=world.RELEASE, namespace=world.OPERATOR_NAMESPACE):
    world.helm(verb, name, *arguments, "--namespace", namespace, "--wait", "--timeout", "90s")


def operators(namespace=world.OPERATOR_NAMESPACE):
    return [pod for pod in get("pods", namespace=namespace) if "deletionTimestamp" not in pod["metadata"]]


def the_rights_that_helm_gave_are_those_of_the_documents():
    documented_rights.expect_as_documented(kubectl, world.OPERATOR_NAMESPACE, world.RELEASE)
    everything, _ = documented_rights.documented()
    return f"{len(everything)} rights"


def pods_that_are_not_restricted_do_not_get_into_the_namespace_that_helm_installed_into():
    for pod in operators():
        equal(pod["status"]["phase"], "Running", "the phase of an operator")
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": {"containers": [{"name": "a", "image": stand_in.IMAGE}]}}
    refused = world.run(world.BIN / "kubectl", "create", "-n", world.OPERATOR_NAMESPACE, "-f", "-", given=json.dumps(bare), check=False,
                        env=world.kubeconfig())
    expect(refused.returncode != 0 and 'violates PodSecurity "restricted' in refused.stderr, f"it was let in: {refused}")


def takes_the_new_field():
    """Whether the server keeps the field of a job that is created: then it serves the new definition."""
    probe = stand_in.job("probe", "echo", runPolicy={NEW_FIELD: "x"})
    answer = kubectl("create", "--dry-run=server", "--validate=ignore", "-o", "json", "-f", "-", given=json.dumps(probe))
    return NEW_FIELD in json.loads(answer)["spec"]["runPolicy"]


def next_chart(folder):
    """The chart with one more field in the resource definition."""
    copy = pathlib.Path(folder, "chart")
    shutil.copytree(CHART, copy)
    path = copy / "files/trainingjobs.yaml"
    crd = yaml.safe_load(path.read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["runPolicy"]["properties"][NEW_FIELD] = {"type": "string"}
    path.write_text(yaml.safe_dump(crd, sort_keys=False))
    return copy


def expect_undisturbed(name, before):
    seen = status(name)
    equal((seen["phase"], seen["attempt"], seen["restarts"], uids(name)), ("Running", 0, 0, before), f"job {name}")


def helm_upgrade_and_rollback_change_the_resource_and_no_job_notices():
    world.apply(stand_in.job("steady", stand_in.waits_for("steady")))
    until_all_run("steady", 0)
    until_phase("steady", "Running")
    expect(not takes_the_new_field(), "the field is there before the upgrade")
    before, old = uids("steady"), {pod["metadata"]["uid"] for pod in operators()}
    revision = json.loads(world.helm("history", world.RELEASE, "--namespace", world.OPERATOR_NAMESPACE, "-o", "json"))[-1]["revision"]
    with tempfile.TemporaryDirectory(prefix="tj-e2e-chart-") as folder, SIDE.away_from_jobs():
        brought_up("upgrade", next_chart(folder), "--reset-then-reuse-values", "--set", "podAnnotations.next=yes")
        until(30, "the server to take the new field", takes_the_new_field)
    equal(old & {pod["metadata"]["uid"] for pod in operators()}, set(), "the operators of before")
    expect_undisturbed("steady", before)
    with SIDE.away_from_jobs():
        brought_up("rollback", str(revision))
        until(30, "the new field to go", lambda: not takes_the_new_field())
    expect_undisturbed("steady", before)
    world.apply(stand_in.job("later", "echo $RANK"))
    until_phase("later", "Succeeded")
    expect_undisturbed("steady", before)
    stand_in.release("steady")
    until_phase("steady", "Succeeded")
    for name in ("steady", "later"):
        world.delete_job(name)


def helm_uninstall_removes_the_operator_and_leaves_a_job_that_runs():
    """It runs on; the stories after this one see that nobody else touches it, and that who comes next looks after it."""
    world.apply(stand_in.job("kept", stand_in.waits_for("kept")))
    until_all_run("kept", 0)
    until_phase("kept", "Running")
    before = uids("kept")
    world.helm("uninstall", world.RELEASE, "--namespace", world.OPERATOR_NAMESPACE, "--wait", "--timeout", "60s")
    until(60, "the operator's pods to go", lambda: not get("pods", namespace=world.OPERATOR_NAMESPACE))
    for kind in ("deployment", "service", "role", "rolebinding", "networkpolicy", "poddisruptionbudget", "clusterrole", "clusterrolebinding"):
        found = get(kind, namespace=world.OPERATOR_NAMESPACE, selector="app.kubernetes.io/instance=" + world.RELEASE)
        equal([item["metadata"]["name"] for item in found], [], f"what is left of kind {kind}")
    expect(get("crd", CRD), "the resource definition went with the operator, and all jobs with it")
    expect_undisturbed("kept", before)


def helm_install_in_one_namespace_serves_that_one_alone():
    brought_up("install", CHART, "--create-namespace", "--set", "namespaced=true", *ON_NODE_1, name="tj", namespace="team")
    mine = "app.kubernetes.io/instance=tj"
    for kind in ("clusterrole", "clusterrolebinding", "flowschema"):
        equal([item["metadata"]["name"] for item in get(kind, selector=mine)], [], f"what is in no namespace, of kind {kind}")
    before, kept = get("tj", "kept")["status"], uids("kept")
    world.apply(stand_in.job("untouched", "echo"))
    world.apply(stand_in.job("here", "echo worker $RANK of $WORLD_SIZE"), namespace="team")
    until(60, "the job of the namespace to succeed", lambda: get("tj", "here", "team").get("status", {}).get("phase") == "Succeeded")
    equal([kubectl("logs", f"here-worker-{rank}", "-n", "team") for rank in (0, 1)], ["worker 0 of 2\n", "worker 1 of 2\n"], "its logs")
    equal((get("tj", "kept")["status"], uids("kept")), (before, kept), "a job elsewhere")
    expect("status" not in get("tj", "untouched") and not get("pods", selector="job-name=untouched"), "a new job elsewhere was touched")
    kubectl("delete", "tj", "untouched")
    world.helm("uninstall", "tj", "--namespace", "team", "--wait", "--timeout", "60s")
    kubectl("delete", "namespace", "team", "--timeout=90s")
    stand_in.release("kept")
