"""The NetworkPolicies of the chart and of a job, on a cluster that enforces them. Each story also opens the same connections without the
policy: there they must come about."""
import http.client
import json
import re
import subprocess

import asking
import installs
import stories
import world
import yaml
from asking import CONTROL_PLANE, everybody, until_answers
from side import pods, status, until_all_run, until_phase
from world import equal, expect, get, kubectl, until

METRICS, PROBES = 8080, 8081  # of the operator
PAGE, PAGE_PORT = f"{world.RELEASE}-page", 8080
MASTER, PROGRESS = 29500, 29600  # of a job's worker 0
CLOSED = 9  # nobody listens there: who is let through is refused
SECONDS_MAX = 60
NAMED = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
          "podSelector": {"matchLabels": {"app": "prometheus"}}}]


def with_values(**values):
    """The release with these values, and else those of the chart."""
    sets = [word for name, value in values.items() for word in ("--set-json", f"{name.replace('_', '.', 1)}={json.dumps(value)}")]
    installs.brought_up("upgrade", installs.CHART, "--reset-values", *installs.ON_NODE_1, *sets)


def address(pod):
    return pod["status"]["podIP"]


def of_the_chart(name):
    return get("pods", namespace=world.OPERATOR_NAMESPACE, selector=f"app.kubernetes.io/name={name}")


def health(pod):
    container = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["uid"], container["ready"], container["restartCount"]


def the_metrics_are_read_by_whom_the_chart_names_and_no_other_port_is_reached():
    asking.ready()
    operators = of_the_chart(world.RELEASE)
    equal(len(operators), 2, "the operators")
    targets = [f"{address(pod)}/{port}" for pod in operators for port in (METRICS, PROBES)]

    def until_ports(when, metrics, probes, **others):
        answer = (metrics, probes) * len(operators)
        until_answers(when, targets, everybody(*answer, **{name: pair * len(operators) for name, pair in others.items()}))

    nobody = ("silent", "silent")
    until_ports("by default", "open", "silent", **{CONTROL_PLANE: nobody})
    service = f"{world.RELEASE}-metrics.{world.OPERATOR_NAMESPACE}/{METRICS}"
    expect("\ntrainingjob_queue_depth" in asking.inside("scraper", asking.READ, service, "/metrics"), "by its Service's name there are no metrics")
    with_values(networkPolicy_metricsFrom=NAMED)
    until_ports("with a namespace and a label", *nobody, scraper=("open", "silent"))
    with_values(networkPolicy_metricsFrom=[])
    until_ports("with nobody", *nobody)
    with_values(networkPolicy_enabled=False)
    until_ports("without the policy", "open", "open")
    with_values()
    until_ports("by default again", "open", "silent", **{CONTROL_PLANE: nobody})
    # Probes came through all the time: they are the node's.
    equal(sorted(map(health, of_the_chart(world.RELEASE))), sorted((pod["metadata"]["uid"], True, 0) for pod in operators),
          "the operators, whether they are ready, their restarts")


def policed():
    """The example, as long as it is looked at, a worker on each node."""
    manifest = yaml.safe_load((stories.EXAMPLES / "gpt2-nano.yaml").read_text())
    manifest["metadata"]["name"] = "policed"
    manifest["spec"]["network"] = {"networkPolicy": True}
    pod = manifest["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    pod["topologySpreadConstraints"][0].update(whenUnsatisfiable="DoNotSchedule", labelSelector={"matchLabels": {"job-name": "policed"}})
    arguments = pod["containers"][0]["args"]
    arguments[arguments.index("--steps=150")] = "--steps=100000"
    return manifest


def job_targets():
    first, second = (address(pod) for pod in pods("policed"))
    return [f"{first}/{MASTER}", f"{first}/{PROGRESS}", f"{second}/{CLOSED}"]


def step():
    return status("policed").get("progress", {}).get("step", 0)


def a_job_with_a_policy_trains_on_two_nodes_alone_and_the_operator_reads_its_progress():
    asking.ready()
    world.apply(policed())
    until_all_run("policed", 0, SECONDS_MAX)
    equal(sorted(pod["spec"]["nodeName"] for pod in pods("policed")), ["n1", "n2"], "the nodes of the pods")
    begun = until(2 * SECONDS_MAX, lambda: f"the operator to read the progress of {status('policed')}", step)
    nobody = ("silent", "silent", "silent")
    until_answers("with the job's policy", job_targets(), everybody(*nobody, colleague=("silent", "open", "silent")))
    until(SECONDS_MAX, lambda: f"the progress to go on after step {begun}: {status('policed')}", lambda: step() > begun)
    equal((status("policed")["phase"], status("policed").get("attempt", 0)), ("Running", 0), "phase and attempt of the job after all that")
    ended = step()
    world.patch("policed", {"runPolicy": {"suspend": True}, "network": {"networkPolicy": False}})
    until_phase("policed", "Suspended", SECONDS_MAX)
    world.patch("policed", {"runPolicy": {"suspend": False}})
    until_all_run("policed", 1, SECONDS_MAX)
    equal(get("networkpolicy", "policed"), None, "the job's policy, which is no longer wanted")
    until_answers("without the job's policy", job_targets(), everybody("open", "open", "refused"))
    world.delete_job("policed")
    return f"steps {begun} to {ended} were read under the policy"


def forwarded(path):
    """The status of the page's answer by `kubectl port-forward`."""
    process = subprocess.Popen([world.BIN / "kubectl", "port-forward", "-n", world.OPERATOR_NAMESPACE, f"service/{PAGE}", f":{PAGE_PORT}"],
                               stdout=subprocess.PIPE, text=True, env=world.with_kubeconfig())
    try:
        line = process.stdout.readline()
        port = re.search(r"127\.0\.0\.1:(\d+) ", line)
        expect(port, f"kubectl port-forward says {line!r}")
        connection = http.client.HTTPConnection("127.0.0.1", int(port.group(1)), timeout=SECONDS_MAX)
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        process.terminate()
        process.wait(timeout=SECONDS_MAX)


def the_page_is_reached_by_whom_the_chart_names_and_by_port_forward():
    asking.ready()
    with_values(page_enabled=True)
    (pod,) = of_the_chart(PAGE)
    targets = [f"{address(pod)}/{port}" for port in (PAGE_PORT, CLOSED)]
    nobody = ("silent", "silent")
    until_answers("by default", targets, everybody(*nobody))
    equal(forwarded("/healthz"), 200, "the page by kubectl port-forward")
    with_values(page_enabled=True, page_from=NAMED)
    until_answers("with a namespace and a label", targets, everybody(*nobody, scraper=("open", "silent")))
    with_values(page_enabled=True, networkPolicy_enabled=False)
    until_answers("without the policy", targets, everybody("open", "refused"))
    with_values()
    kubectl("wait", f"pod/{pod['metadata']['name']}", "-n", world.OPERATOR_NAMESPACE, "--for=delete", f"--timeout={SECONDS_MAX}s")


CHAPTERS = [
    [the_metrics_are_read_by_whom_the_chart_names_and_no_other_port_is_reached],
    [a_job_with_a_policy_trains_on_two_nodes_alone_and_the_operator_reads_its_progress],
    [the_page_is_reached_by_whom_the_chart_names_and_by_port_forward],
    [stories.nothing_was_lost_and_nothing_doubled],
]
