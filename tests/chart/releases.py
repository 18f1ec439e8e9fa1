"""A release from its first day to its last: installed, upgraded under a running job, rolled back, removed, put in the
place of an older one; and one that a team installs with no right on the cluster."""
import json
import pathlib

import yaml
from cluster import CHART, CRD, JOBS, NAMESPACE, RELEASE, equal, expect, manifest, stays, uids, until

FIELD_SECONDS_MAX = 30
UNTOUCHED_SECONDS = 2
NEW_FIELD = "fieldOfTheFuture"


def with_a_new_field(text):
    """The resource definition of the next version: one more field of the run policy."""
    crd = yaml.safe_load(text)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["runPolicy"]["properties"][NEW_FIELD] = {"type": "string", "description": "Comes with an upgrade."}
    return yaml.safe_dump(crd, sort_keys=False)


def takes_the_new_field(cluster):
    """Whether the server keeps the field of a job that is created."""
    job = manifest("probe", 1, **{NEW_FIELD: "x"})
    answer = cluster.client.create(JOBS.format("default") + "?dryRun=All", job)
    return NEW_FIELD in answer["spec"]["runPolicy"]


def helm_install_brings_the_operator_and_its_resource(cluster):
    """Into a namespace that takes restricted pods only; the pod of the Deployment is one."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    cluster.helm("install", RELEASE, CHART)
    until(FIELD_SECONDS_MAX, "the resource to be served", cluster.serves_the_resource)
    told = cluster.get("crd", CRD)["metadata"]
    equal((told["annotations"]["helm.sh/resource-policy"], told["annotations"]["meta.helm.sh/release-name"]), ("keep", RELEASE), "the CRD's annotations")
    template = cluster.get("deployment", RELEASE, "-n", NAMESPACE)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "as-deployed"}, "spec": template["spec"]}
    cluster.kubectl("create", "-n", NAMESPACE, "--dry-run=server", "-f", "-", given=json.dumps(pod))
    del pod["spec"]["containers"][0]["securityContext"]
    refused = cluster.refused("kubectl", "create", "-n", NAMESPACE, "--dry-run=server", "-f", "-", given=json.dumps(pod))
    expect('violates PodSecurity "restricted' in refused, refused)


def a_job_runs_and_goes_on_after_a_failure(cluster):
    """What the account may do is enough for it."""
    cluster.training = cluster.place("training")
    cluster.training.create("a", 2)
    cluster.training.wait_running(workers=2)
    cluster.training.fail(rank=1)
    cluster.training.wait_running(attempt=1, workers=2)
    cluster.before = uids(cluster.training)


def expect_undisturbed(cluster):
    status = cluster.training.status()
    equal((status["phase"], status["attempt"], status["restarts"]), ("Running", 1, 1), "phase, attempt and restarts of the job")
    equal(uids(cluster.training), cluster.before, "its pods")


def an_upgrade_changes_the_resource_under_a_job_that_does_not_notice(cluster):
    expect(not takes_the_new_field(cluster), "the field is there before the upgrade")
    cluster.helm("upgrade", RELEASE, cluster.chart_with("next", with_a_new_field), "--set", "podAnnotations.next=yes")
    until(FIELD_SECONDS_MAX, "the server to take the new field", lambda: takes_the_new_field(cluster))
    expect_undisturbed(cluster)
    annotations = cluster.get("deployment", RELEASE, "-n", NAMESPACE)["spec"]["template"]["metadata"]["annotations"]
    equal(annotations, {"next": "yes"}, "the annotations of the operator's pods")


def a_rollback_brings_the_old_resource_back(cluster):
    cluster.helm("rollback", RELEASE, "1")
    until(FIELD_SECONDS_MAX, "the new field to go", lambda: not takes_the_new_field(cluster))
    expect_undisturbed(cluster)
    later = cluster.place("later")
    later.create("a", 1)
    later.wait_running(workers=1)


def a_release_that_lets_go_of_the_resource_leaves_it(cluster):
    """`crd.install=false` in an upgrade: Helm removes what is no longer rendered, but not this."""
    cluster.helm("upgrade", RELEASE, CHART, "--set", "crd.install=false")
    expect(CRD not in cluster.helm("get", "manifest", RELEASE), "it is part of the release still")
    expect(cluster.serves_the_resource(), "the resource went")
    expect_undisturbed(cluster)


def an_uninstall_leaves_the_resource_and_the_jobs(cluster):
    said = cluster.helm("uninstall", RELEASE)
    expect(CRD in said and "kept" in said, said)
    expect(cluster.serves_the_resource(), "the resource went with the release")
    expect_undisturbed(cluster)
    for kind in ("deployment,service,role,rolebinding,networkpolicy,poddisruptionbudget,serviceaccount", "clusterrole,clusterrolebinding"):
        left = cluster.get(kind, "-n", NAMESPACE, "-l", f"app.kubernetes.io/instance={RELEASE}")["items"]
        equal([f"{item['kind']} {item['metadata']['name']}" for item in left], [], "what is left")
    expect_undisturbed(cluster)


def the_same_release_comes_back_to_its_resource(cluster):
    cluster.helm("install", RELEASE, CHART)
    expect_undisturbed(cluster)
    cluster.helm("uninstall", RELEASE)


def forget_the_release(cluster):
    cluster.kubectl("delete", "crd", CRD, "--ignore-not-found", "--timeout=30s")


def a_release_of_the_old_chart_is_upgraded_as_documented(cluster):
    """That chart had the resource definition in crds/, where Helm does not call it part of a release."""
    forget_the_release(cluster)
    old = cluster.chart_with("old", lambda text: text)
    (old / "crds").mkdir()
    (old / "files/trainingjobs.yaml").rename(old / "crds/trainingjobs.yaml")
    (old / "templates/crd.yaml").unlink()
    cluster.helm("install", RELEASE, old, "--set", "replicas=3")
    until(FIELD_SECONDS_MAX, "the resource to be served", cluster.serves_the_resource)
    refused = cluster.refused("helm", "upgrade", RELEASE, CHART, "--namespace", NAMESPACE)
    expect(CRD in refused and "invalid ownership metadata" in refused, refused)
    cluster.documented("A release of the first chart")
    annotations = cluster.get("crd", CRD)["metadata"]["annotations"]
    equal(annotations["helm.sh/resource-policy"], "keep", "its resource policy")
    equal(cluster.get("deployment", RELEASE, "-n", NAMESPACE)["spec"]["replicas"], 3, "what was set before")
    cluster.helm("upgrade", RELEASE, cluster.chart_with("after", with_a_new_field))
    until(FIELD_SECONDS_MAX, "the server to take the new field", lambda: takes_the_new_field(cluster))
    cluster.helm("uninstall", RELEASE)


def a_resource_that_kubectl_made_is_taken_over_as_documented(cluster):
    forget_the_release(cluster)
    cluster.kubectl("apply", "-f", "manifests/crd/trainingjobs.yaml")
    until(FIELD_SECONDS_MAX, "the resource to be served", cluster.serves_the_resource)
    refused = cluster.refused("helm", "install", RELEASE, CHART, "--namespace", NAMESPACE)
    expect("invalid ownership metadata" in refused, refused)
    cluster.documented("A resource definition that is there already")
    equal(cluster.get("crd", CRD)["metadata"]["annotations"]["meta.helm.sh/release-name"], RELEASE, "whose it is")
    changed = cluster.chart_with("taken", with_a_new_field)
    refused = cluster.refused("helm", "upgrade", RELEASE, changed, "--namespace", NAMESPACE)
    expect("conflict" in refused and "kubectl-client-side-apply" in refused, refused)
    cluster.helm("upgrade", RELEASE, changed, "--force-conflicts")  # as the document says of the first change
    until(FIELD_SECONDS_MAX, "the server to take the new field", lambda: takes_the_new_field(cluster))
    cluster.helm("rollback", RELEASE, "1")
    cluster.helm("uninstall", RELEASE)


OWNER = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "owner", "namespace": "team"}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "owner", "namespace": "team"},
     "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "owner", "namespace": "team"},
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "owner"},
     "subjects": [{"kind": "ServiceAccount", "name": "owner", "namespace": "team"}]}]


def as_owner_of(cluster, namespace):
    """A kubeconfig of somebody who may do everything in the namespace and nothing outside of it."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"token": cluster.token_of(namespace, "owner")}
    path = pathlib.Path(cluster.folder, "owner.conf")
    path.write_text(json.dumps(config))
    return path.name


def a_team_installs_it_without_any_right_on_the_cluster(cluster):
    """In its own namespace a job runs; a job elsewhere is not touched."""
    for item in OWNER:
        cluster.kubectl("apply", "-f", "-", given=json.dumps(item))
    owner = as_owner_of(cluster, "team")
    refused = cluster.refused("helm", "install", "tj", CHART, "--namespace", "team", kubeconfig=owner)
    expect("forbidden" in refused, refused)
    cluster.run("helm", "uninstall", "tj", "--namespace", "team", kubeconfig=owner)  # what the refused one has left
    cluster.helm("install", "tj", CHART, "--set", "namespaced=true", namespace="team", kubeconfig=owner)
    elsewhere, team = cluster.place("elsewhere"), cluster.known_place("team")
    with cluster.operator_of("tj-trainingjob-operator", "team"):
        elsewhere.create("a", 2)
        team.create("a", 2)
        team.wait_running(workers=2)
        stays(UNTOUCHED_SECONDS, "a job elsewhere was touched", lambda: not elsewhere.status() and not elsewhere.pods())
    cluster.helm("uninstall", "tj", namespace="team", kubeconfig=owner)
    expect(cluster.serves_the_resource(), "the resource went with a release that had not brought it")
