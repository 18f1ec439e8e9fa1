"""Debian's Prometheus reads the real operator by the labels that a ServiceMonitor gives: the alerts of the chart load and
fire, and each query of the dashboard finds something."""
import contextlib
import http.server
import json
import math
import pathlib
import re
import subprocess
import threading
import urllib.parse
import urllib.request

import yaml
from cluster import BIN, CHART, JOBS, NAMESPACE, RELEASE, equal, expect, free_port, manifest, until

SECONDS_MAX = 30
MONITORING = "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true"


def rules_of(cluster):
    """As the chart renders them, but without the minutes for which an alert waits."""
    text = cluster.do("helm", "template", RELEASE, CHART, "--namespace", NAMESPACE, "--set", MONITORING, "-s", "templates/prometheusrule.yaml")
    spec = yaml.safe_load(text)["spec"]
    for group in spec["groups"]:
        group["interval"] = "500ms"
        for rule in group["rules"]:
            rule.pop("for", None)
    return spec


class Prometheus:
    def __init__(self, cluster, target):
        self.folder = pathlib.Path(cluster.folder, "prometheus")
        self.folder.mkdir()
        self.port = free_port()
        (self.folder / "rules.yaml").write_text(yaml.safe_dump(rules_of(cluster)))
        labels = {"namespace": NAMESPACE, "pod": "a"}
        scrape = {"job_name": f"{RELEASE}-metrics", "static_configs": [{"targets": [f"127.0.0.1:{target}"], "labels": labels}]}
        (self.folder / "config.yaml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": ["rules.yaml"], "scrape_configs": [scrape]}))

    @contextlib.contextmanager
    def running(self):
        command = [BIN / "prometheus", f"--config.file={self.folder}/config.yaml", f"--storage.tsdb.path={self.folder}/data",
                   f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until(SECONDS_MAX, lambda: f"Prometheus; its log: {(self.folder / 'log').read_text()[-1000:]}", self.is_ready)
            yield self
        finally:
            process.kill()
            process.wait()

    def is_ready(self):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        return False

    def ask(self, path, **parameters):
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression):
        """The numbers that a query finds now."""
        found = self.ask("query", query=expression)
        return [float(sample["value"][1]) for sample in found["result"]]

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}


def queries():
    """{title of the panel: expressions}, with Grafana's variables as a person who chose nothing has them."""
    board = json.loads((CHART / "files/dashboard.json").read_text())
    variables = {"$__rate_interval": "1m"} | {f"${entry['name']}": entry.get("allValue", "") for entry in board["templating"]["list"]}
    def filled(expression):
        for name, value in variables.items():
            expression = expression.replace(name, value)
        equal(re.findall(r"\$\w+", expression), [], "variables that the dashboard does not have")
        return expression
    return {panel["title"]: [filled(target["expr"]) for target in panel["targets"]] for panel in board["panels"]}


def label_queries():
    board = json.loads((CHART / "files/dashboard.json").read_text())
    return [re.fullmatch(r"label_values\((\w+), (\w+)\)", entry["query"]).groups()
            for entry in board["templating"]["list"] if entry["type"] == "query"]


def every_query_of_the_dashboard_finds_something(cluster):
    """After a job has run, has been restarted, and another one has failed; numbers, for there has been something of each."""
    prometheus = cluster.prometheus
    for title, expressions in queries().items():
        for expression in expressions:
            def finds(expression=expression):
                values = prometheus.values(expression)
                return values and any(math.isfinite(value) for value in values)
            until(SECONDS_MAX, lambda: f"{title}: {expression} to find something; it has {prometheus.values(expression)}", finds)
    for metric, label in label_queries():
        expect(prometheus.ask(f"label/{label}/values", **{"match[]": metric}), f"no values of label {label} of {metric}")
    equal(prometheus.values(queries()["Operators that lead"][0]), [1.0], "the operators that lead")
    seen = prometheus.values(queries()["Failed within an hour"][0])
    expect(seen and seen[0] > 0, f"a job has failed, and the dashboard shows {seen}")


class StandingStill(http.server.BaseHTTPRequestHandler):
    """A rank 0 whose run has not moved for a day."""

    def do_GET(self):  # the library's name for it
        text = json.dumps({"version": 1, "attempt": 0, "step": 5, "totalSteps": 10, "heartbeatAgeSeconds": 86400}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Nothing: the operator's questions are no news."""


def jobs_fail_and_stand_still(cluster):
    """For the metrics: one job has no restarts left; of another one rank 0 says that it stands still."""
    broken = cluster.place("broken")
    broken.create("a", 1, maxRestarts=0)
    broken.wait_running(workers=1)
    broken.fail(rank=0)
    broken.wait_phase("Failed")
    rank_0 = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandingStill)
    threading.Thread(target=rank_0.serve_forever, daemon=True).start()
    standing = cluster.place("standing")
    job = manifest("a", 1, heartbeatTimeoutSeconds=10)
    job["metadata"]["annotations"] = {"kubebrain.io/progress-port": str(rank_0.server_port)}
    cluster.client.create(JOBS.format("standing"), job)
    standing.wait_running(workers=1)
    address = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    cluster.client.patch("/api/v1/namespaces/standing/pods/a-worker-0/status", address)


def the_alerts_load_and_are_silent(cluster):
    prometheus = cluster.prometheus
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    equal(len(rules), 5, "the number of alerts")
    until(SECONDS_MAX, "all of them to be looked at without an error",
          lambda: all(rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"]))
    until(SECONDS_MAX, "the operator to be read", lambda: prometheus.values("trainingjob_leader") == [1.0])
    until(SECONDS_MAX, lambda: f"the alerts to be silent; {prometheus.firing()} fire", lambda: not prometheus.firing())


def a_run_that_stands_still_is_told(cluster):
    """Its rank 0 says that nothing has moved for long, and the operator makes the gang anew."""
    place = cluster.known_place("standing")
    place.wait("the gang that stood still to be made anew", lambda: place.status().get("restarts") == 1)
    equal(place.status()["firstFailure"]["cause"], "Hung", "what ended the attempt")
    until(SECONDS_MAX, "the alert on a job that stands still", lambda: "TrainingJobHung" in cluster.prometheus.firing())


def an_operator_that_is_gone_is_told(cluster):
    until(SECONDS_MAX, "the alert on an operator that is gone", lambda: "TrainingJobOperatorDown" in cluster.prometheus.firing())
