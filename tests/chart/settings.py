"""What single values do: the resource definition, one namespace alone, placement, network, people's roles, priority."""
import re
import subprocess

import yaml
from rendering import CHART, HELM, MONITORING, NAME, ROOT, equal, expect, grants, helm, pod, render, test

CRD = ("CustomResourceDefinition", "trainingjobs.kubebrain.io")
ACCOUNT = {"kind": "ServiceAccount", "serviceAccount": {"name": NAME, "namespace": "ops"}}


@test
def the_chart_has_nothing_that_a_strict_lint_finds():
    for values in ((), ("--set", "namespaced=true"), ("--set", ",".join((*MONITORING, "flowSchema.enabled=true")))):
        done = subprocess.run([HELM, "lint", "--strict", CHART, *values], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, done.stdout + done.stderr)


@test
def every_value_has_a_comment():
    """A comment is for all that follows it up to an empty line and is indented no less."""
    silent, depth = [], None
    for line in (CHART / "values.yaml").read_text().splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            depth = None
        elif line.lstrip().startswith("#"):
            depth = indent if depth is None else min(indent, depth)
        elif re.match(r" *[A-Za-z]+: +\S", line) and (depth is None or indent < depth):
            silent.append(line)
    equal(silent, [], "values without a comment")


@test
def the_schema_knows_every_value_and_no_other():
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(value, entry, path):
        known = set(entry.get("properties", {}))
        if known and isinstance(value, dict):
            equal(entry.get("additionalProperties"), False, f"what the schema says of other keys in {path or 'the values'}")
            free = {"global", "claims"} if path in ("", ".resources") else set()
            if path != ".affinity":
                equal(known - free, set(value), f"the keys of {path or 'the values'}")
            for key in value:
                compare(value[key], entry["properties"][key], f"{path}.{key}")
    compare(values, schema, "")


@test
def the_resource_definition_is_part_of_the_release_and_kept_when_that_goes():
    source = yaml.safe_load((ROOT / "manifests/crd/trainingjobs.yaml").read_text())
    rendered = render()[CRD]
    equal(rendered["metadata"].pop("annotations"), {"helm.sh/resource-policy": "keep"}, "its annotations")
    equal(rendered["metadata"].pop("labels")["app.kubernetes.io/managed-by"], "Helm", "who manages it")
    equal(rendered, source, "the rest of it")
    expect(not (CHART / "crds").exists(), "a file in crds/ is never upgraded")
    for setting in ("crd.install=false", "namespaced=true"):
        expect(CRD not in render(setting), f"{setting} renders it")


@test
def namespaced_leaves_nothing_outside_of_namespaces():
    """Whatever else is asked for."""
    everything = (*MONITORING, "flowSchema.enabled=true", "watchNodes=true", "crd.install=true", "userRoles.aggregate=true")
    for settings, namespace in ((("namespaced=true", *everything), "ops"), (("namespaced=true", "watchNamespace=team"), "team")):
        objects = render(*settings)
        equal([key for key, item in objects.items() if "namespace" not in item["metadata"]], [], "what is in no namespace")
        roles = {item["roleRef"]["kind"] for (kind, _), item in objects.items() if kind == "RoleBinding"}
        equal(roles, {"Role"}, "the kinds of the roles that are bound")
        equal(objects[("Role", NAME)]["metadata"]["namespace"], namespace, "where the rights are")
        arguments = pod(*settings)["containers"][0]["args"]
        equal(arguments[-3:], ["--watch-nodes=false", "--namespace", namespace], "the last arguments")


@test
def two_operators_are_kept_apart_and_drained_one_by_one():
    constraints = pod()["topologySpreadConstraints"]
    equal([(c["topologyKey"], c["whenUnsatisfiable"]) for c in constraints],
          [("kubernetes.io/hostname", "ScheduleAnyway"), ("topology.kubernetes.io/zone", "ScheduleAnyway")], "what they are spread over")
    labels = render()[("Deployment", NAME)]["spec"]["template"]["metadata"]["labels"].items()
    budget = ("PodDisruptionBudget", NAME)
    for selector in (constraints[0]["labelSelector"], render()[budget]["spec"]["selector"]):
        expect(selector["matchLabels"].items() <= labels, f"{selector} does not select the operator's pods")
    equal(render()[budget]["spec"]["maxUnavailable"], 1, "how many may be down")
    for setting in ("replicas=1", "replicas=0", "podDisruptionBudget.enabled=false"):
        expect(budget not in render(setting), f"{setting} renders a budget")
    strict = pod("topologySpread.whenUnsatisfiable=DoNotSchedule", "topologySpread.topologyKeys={rack}")["topologySpreadConstraints"]
    equal([(c["topologyKey"], c["whenUnsatisfiable"]) for c in strict], [("rack", "DoNotSchedule")], "what it is told")


@test
def the_network_policy_lets_in_to_the_metrics_whom_the_values_name():
    policy = ("NetworkPolicy", NAME)
    rule = render()[policy]["spec"]
    equal((rule["policyTypes"], rule["ingress"]),
          (["Ingress"], [{"from": [{"namespaceSelector": {}}], "ports": [{"protocol": "TCP", "port": "http"}]}]), "the rules")
    labels = render()[("Deployment", NAME)]["spec"]["template"]["metadata"]["labels"].items()
    expect(rule["podSelector"]["matchLabels"].items() <= labels, "it does not select the operator's pods")
    nobody = render("networkPolicy.metricsFrom=null")[policy]["spec"]
    equal(nobody["ingress"], [], "the rules where nobody may read")
    equal(render(r"networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus")[policy]["spec"]["ingress"][0]["from"],
          [{"podSelector": {"matchLabels": {"app": "prometheus"}}}], "the peers")
    expect(policy not in render("networkPolicy.enabled=false"), "one that was not asked for")


@test
def people_get_their_rights_through_the_clusters_own_roles():
    objects = render()
    view, edit = objects[("ClusterRole", f"{NAME}-view")], objects[("ClusterRole", f"{NAME}-edit")]
    aggregates = {key.rpartition("-")[2] for key in view["metadata"]["labels"] if "aggregate-to" in key}
    equal(aggregates, {"view", "edit", "admin"}, "where reading is added")
    equal({key.rpartition("-")[2] for key in edit["metadata"]["labels"] if "aggregate-to" in key}, {"edit", "admin"}, "where writing is added")
    equal({verb for _, _, verb in grants(view)}, {"get", "list", "watch"}, "what a reader may do")
    equal({resource for _, resource, _ in grants(edit)}, {"trainingjobs", "trainingjobs/scale"}, "what a writer may write")
    equal([key for key in render("userRoles.aggregate=false") if key[1].endswith(("-view", "-edit"))], [], "roles not asked for")


@test
def the_api_server_hears_the_operator_first_where_that_is_asked_for():
    equal([key for key in render() if key[0] == "FlowSchema"], [], "flow schemas not asked for")
    objects = render("flowSchema.enabled=true")
    lease, others = objects[("FlowSchema", f"{NAME}-lease")]["spec"], objects[("FlowSchema", NAME)]["spec"]
    equal([flow["priorityLevelConfiguration"]["name"] for flow in (lease, others)], ["leader-election", "workload-high"], "the levels")
    expect(lease["matchingPrecedence"] < others["matchingPrecedence"], "the Lease does not come first")
    equal([flow["rules"][0]["subjects"] for flow in (lease, others)], [[ACCOUNT]] * 2, "whose requests")


@test
def monitoring_is_off_until_it_is_asked_for():
    wanted = {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
    equal(wanted & {kind for kind, _ in render()}, set(), "what comes by default")
    labels = [f"monitoring.{part}.labels.release=prom" for part in ("serviceMonitor", "prometheusRule", "dashboard")]
    objects = render(*MONITORING, *labels, "monitoring.serviceMonitor.interval=7s")
    equal({kind for kind, _ in objects} & wanted, wanted, "what comes")
    for (kind, name), item in objects.items():
        if kind in wanted:
            equal(item["metadata"]["labels"].get("release"), "prom", f"the label of {kind} {name}")
    monitor = objects[("ServiceMonitor", NAME)]["spec"]
    service = objects[("Service", f"{NAME}-metrics")]
    expect(monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), "it does not select the Service")
    equal(monitor["endpoints"], [{"port": service["spec"]["ports"][0]["name"], "path": "/metrics", "interval": "7s"}], "what is read")
    refused = helm("monitoring.serviceMonitor.enabled=true", "metricsService.enabled=false")
    expect(refused.returncode != 0 and "metricsService.enabled must be true" in refused.stderr, refused.stderr)


@test
def the_notes_say_what_is_next():
    def notes(*arguments):
        command = [HELM, "install", "tj", CHART, "--namespace", "ops", "--dry-run=client", "--hide-notes=false", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.partition("NOTES:")[2]
    text = notes()
    for words in ("serves all namespaces", f"rollout status deployment/{NAME}", "apply -f manifests/examples/gpt2-nano.yaml",
                  "helm uninstall` leaves it and the jobs"):
        expect(words in text, f"no {words!r} in:\n{text}")
    expect("administrator" not in text, f"it asks for an administrator:\n{text}")
    alone = notes("--set", "namespaced=true")
    for words in ("serves namespace ops", "kubectl --namespace ops apply -f", "kubectl apply --server-side -f manifests/crd/trainingjobs.yaml"):
        expect(words in alone, f"no {words!r} in:\n{alone}")
