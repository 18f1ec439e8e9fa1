"""The resource definition on an API server that has just been given it."""
import json

from support.waiting import until

SECONDS_MAX = 30
NAME = "crd/trainingjobs.kubebrain.io"


def wait_until_established(kubectl):
    """`kubectl(*arguments)` gives what it printed. Its own `wait` and its templates end with an error where there are no
    conditions yet."""
    def is_established():
        conditions = json.loads(kubectl("get", NAME, "-o", "json")).get("status", {}).get("conditions") or []
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
    until(SECONDS_MAX, f"{NAME} to be established", is_established)
