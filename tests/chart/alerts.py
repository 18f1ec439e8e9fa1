"""The alerts that the chart brings, held by Prometheus' own promtool to alerts.test.yaml; and that alerts and dashboard
ask for what the operator has."""
import json
import pathlib
import re
import subprocess
import tempfile

import yaml
from rendering import BIN, CHART, MONITORING, NAME, ROOT, equal, expect, render, test

CASES = pathlib.Path(__file__).with_name("alerts.test.yaml")
DASHBOARD = CHART / "files/dashboard.json"


def rules():
    """What of the PrometheusRule is Prometheus' own."""
    return render(*MONITORING)[("PrometheusRule", NAME)]["spec"]


def promtool(*arguments, folder):
    done = subprocess.run([BIN / "promtool", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@test
def the_alerts_fire_when_they_must_and_no_sooner():
    with tempfile.TemporaryDirectory(prefix="trainingjob-alerts-") as folder:
        pathlib.Path(folder, "rules.yaml").write_text(yaml.safe_dump(rules()))
        pathlib.Path(folder, "cases.yaml").write_text(CASES.read_text())
        for arguments in (("check", "rules", "rules.yaml"), ("test", "rules", "cases.yaml")):
            code, said = promtool(*arguments, folder=folder)
            expect(code == 0, said)
    cases = yaml.safe_load(CASES.read_text())["tests"]
    asked = [case for group in cases for case in group["alert_rule_test"]]
    for rule in (rule for group in rules()["groups"] for rule in group["rules"]):
        outcomes = {bool(case.get("exp_alerts")) for case in asked if case["alertname"] == rule["alert"]}
        equal(outcomes, {True, False}, f"how {rule['alert']} is seen to end")


def names_in(expression):
    return set(re.findall(r"\btrainingjob_\w+", expression))


@test
def alerts_and_dashboard_ask_for_metrics_that_the_operator_has():
    shown = set(re.findall(r'Name\("(\w+)"\)', (ROOT / "operator/loop/metrics.cc").read_text()))
    shown |= {f"{name}_bucket" for name in shown if name.endswith("_seconds")}
    board = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    equal(sorted(set().union(*(names_in(expression) for expression in asked)) - shown), [], "what the dashboard asks for in vain")
    asked_by_alerts = [rule["expr"] for group in rules()["groups"] for rule in group["rules"]]
    equal(sorted(set().union(*(names_in(expression) for expression in asked_by_alerts)) - shown), [], "what the alerts ask for in vain")


@test
def the_dashboard_is_one_that_grafana_can_place():
    board = json.loads(DASHBOARD.read_text())
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        expect(at["x"] + at["w"] <= 24 and not cells & taken, f"panel {panel['title']!r} lies on another one or outside")
        taken |= cells
    numbers = [panel["id"] for panel in board["panels"]]
    equal(len(set(numbers)), len(numbers), "the number of different panels")
    rendered = render(*MONITORING)[("ConfigMap", f"{NAME}-board")]
    equal(json.loads(rendered["data"]["trainingjob-operator.json"]), board, "the dashboard in its ConfigMap")
    equal(rendered["metadata"]["labels"]["grafana_dashboard"], "1", "the label that Grafana's sidecar looks for")
