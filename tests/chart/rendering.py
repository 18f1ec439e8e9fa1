"""How the chart is rendered in its tests, and the register of these."""
import pathlib
import subprocess
import sys

import yaml

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.places import BIN, ROOT  # noqa: E402
from support.waiting import equal, expect  # noqa: E402, F401 (tests look here)

HELM = BIN / "helm"
CHART = ROOT / "charts/trainingjob-operator"
NAME = "tj-trainingjob-operator"
MONITORING = ("monitoring.serviceMonitor.enabled=true", "monitoring.prometheusRule.enabled=true",
              "monitoring.dashboard.enabled=true")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def helm(*settings, arguments=()):
    command = [HELM, "template", "tj", CHART, "--namespace", "ops", *arguments]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def objects_of(text):
    """{(kind, name): object}."""
    return {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}


def render(*settings, arguments=()):
    """{(kind, name): object} of what the chart renders."""
    result = helm(*settings, arguments=arguments)
    expect(result.returncode == 0, result.stderr)
    return objects_of(result.stdout)


def pod(*settings):
    return render(*settings)[("Deployment", NAME)]["spec"]["template"]["spec"]


def grants(role):
    return {(group, resource, verb) for rule in role["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def kinds(objects):
    return sorted(kind for kind, _ in objects)
