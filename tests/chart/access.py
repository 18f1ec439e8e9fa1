"""Who may do what once the chart is installed: the operator, people, and whose requests the API server answers first."""
import json

import yaml
from cluster import CHART, NAMESPACE, RELEASE, ROOT, equal, expect, until
from support import documented_rights
from support.client import Client

ROLE_SECONDS_MAX = 30
PEOPLE = ("view", "edit")


def the_operator_may_do_what_the_documents_say(cluster):
    documented_rights.expect_as_documented(cluster.kubectl, NAMESPACE, RELEASE)


def the_page_may_do_nothing_and_is_admitted_where_pods_are_restricted(cluster):
    """Its account may do what any account may: ask who it is."""
    name = f"{RELEASE}-page"
    cluster.helm("upgrade", RELEASE, CHART, "--set", "page.enabled=true")
    own, everybodys = (documented_rights.rights_of(cluster.kubectl, f"system:serviceaccount:{NAMESPACE}:{account}", NAMESPACE)
                       for account in (name, "nobody"))
    equal(own, everybodys, "what the page's account may do")
    template = cluster.get("deployment", name, "-n", NAMESPACE)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "as-deployed"}, "spec": template["spec"]}
    cluster.kubectl("create", "-n", NAMESPACE, "--dry-run=server", "-f", "-", given=json.dumps(pod))


def may(cluster, who, verb, part="", namespace="training"):
    question = ("auth", "can-i", verb, "trainingjobs.kubebrain.io", f"--subresource={part}", "--namespace", namespace, f"--as={who}")
    return cluster.run("kubectl", *question)[0] == 0


def people_with_the_clusters_roles_may_look_or_train(cluster):
    """In their own namespace, and no further."""
    for role in PEOPLE:
        cluster.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er", "-n", "training")
    until(ROLE_SECONDS_MAX, "the roles to take the rights in", lambda: may(cluster, "editer", "create"))
    seen = {who: {verb for verb in ("get", "watch", "create", "patch", "delete") if may(cluster, who, verb)}
            for who in ("viewer", "editer")}
    equal(seen, {"viewer": {"get", "watch"}, "editer": {"get", "watch", "create", "patch", "delete"}}, "who may do what")
    equal([may(cluster, who, "patch", "scale") for who in ("viewer", "editer")], [False, True], "who may scale")
    equal([may(cluster, "editer", verb, "status") for verb in ("get", "patch")], [True, False], "the status: read, and written")
    expect(not may(cluster, "editer", "get", namespace="default"), "an editor of one namespace sees another one")


def flow_of(client, path):
    """The name of the flow schema by which the server has answered."""
    response, _ = client.exchange("GET", path, None, None)
    return response.headers["X-Kubernetes-PF-FlowSchema-UID"]


def the_api_server_puts_the_operator_where_the_chart_says(cluster):
    cluster.helm("upgrade", RELEASE, CHART, "--set", "flowSchema.enabled=true")
    names = {item["metadata"]["uid"]: item["metadata"]["name"] for item in cluster.get("flowschemas")["items"]}
    operator = Client(cluster.folder, cluster.token_of(NAMESPACE, RELEASE))
    cluster.kubectl("create", "serviceaccount", "somebody", "-n", "default")
    other = Client(cluster.folder, cluster.token_of("default", "somebody"))
    jobs = "/apis/kubebrain.io/v1/trainingjobs"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}"
    wanted = {(operator, jobs): RELEASE, (operator, lease): f"{RELEASE}-lease"}
    for (client, path), name in wanted.items():
        until(ROLE_SECONDS_MAX, f"{path} to be answered by {name}", lambda: names.get(flow_of(client, path)) == name)
    expect(names.get(flow_of(other, jobs)) not in wanted.values(), "another account's requests are taken for the operator's")


def the_server_takes_what_every_set_of_values_renders(cluster):
    """The server itself takes each object that the golden sets of values render, those of other APIs left out."""
    cluster.kubectl("create", "namespace", "ops")
    for values in sorted((ROOT / "tests/golden/chart").glob("*.values.yaml")):
        text = cluster.do("helm", "template", "tj", CHART, "--namespace", "ops", "-f", values)
        objects = [item for item in yaml.safe_load_all(text) if item and "coreos" not in item["apiVersion"] and item["kind"] != "CustomResourceDefinition"]
        objects = [item for item in objects if item["metadata"].get("namespace", "ops") == "ops"]
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        cluster.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", given=json.dumps(items))

