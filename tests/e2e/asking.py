"""Pods, and a place that is none, which open connections: who is let in where, whatever the program at the port would say."""
import concurrent.futures
import dataclasses
import functools

import stand_in
import world
from world import kubectl, until

SILENT_SECONDS = 2  # a connection that takes longer was dropped
SECONDS_MAX = 60
# Of each argument, ADDRESS/PORT: open; refused, by the kernel of the pod, which the packet has reached; or silent.
TRY = f"""for target; do {{
  said=$(timeout {SILENT_SECONDS} bash -c "exec 3<>/dev/tcp/$target" 2>&1)
  case $? in
    0) said=open ;;
    124) said=silent ;;
    *) case $said in *refused*) said=refused ;; esac ;;
  esac
  printf '%s %s\\n' "$target" "${{said//$'\\n'/ }}"
}} & done; wait"""
READ = r"""exec 3<>/dev/tcp/$1 && printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&3 && cat <&3"""
OPERATOR_LABEL = {"kubebrain.io/component": "trainingjob-operator"}


@dataclasses.dataclass(frozen=True)
class Asker:
    namespace: str
    node: str
    labels: dict

    def pod(self, name):
        container = {"name": "asker", "image": stand_in.IMAGE, "imagePullPolicy": "IfNotPresent",
                     "command": ["/bin/bash", "-c", "trap 'exit 0' TERM; sleep infinity & wait"],
                     "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": self.labels},
                "spec": {"nodeSelector": {"kubernetes.io/hostname": self.node}, "automountServiceAccountToken": False,
                         "terminationGracePeriodSeconds": 2, "containers": [container],
                         "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}}}


# The operators are on n1: there are askers on their node and on the other one.
ASKERS = {
    "scraper": Asker("monitoring", "n2", {"app": "prometheus"}),
    "neighbour": Asker("monitoring", "n1", {}),
    "namesake": Asker("elsewhere", "n1", {"app": "prometheus"}),
    "bystander": Asker("default", "n1", {}),  # where the jobs are
    "impostor": Asker("elsewhere", "n2", OPERATOR_LABEL),
    "colleague": Asker(world.OPERATOR_NAMESPACE, "n2", OPERATOR_LABEL),
}
CONTROL_PLANE = "control plane"  # in the network of no pod, and of no node that pods run on
ALL = (*ASKERS, CONTROL_PLANE)


@functools.cache
def ready():
    """Starts the pods; once."""
    for namespace in ("monitoring", "elsewhere"):
        kubectl("create", "namespace", namespace)
    for name, asker in ASKERS.items():
        world.apply(asker.pod(name), namespace=asker.namespace)
    for name, asker in ASKERS.items():
        kubectl("wait", f"pod/{name}", "-n", asker.namespace, "--for=condition=Ready", f"--timeout={SECONDS_MAX}s")


def inside(who, script, *arguments):
    """What a line of bash prints that runs there, once all are `ready`."""
    bash = ("bash", "-c", script, "bash", *arguments)
    if who == CONTROL_PLANE:
        return world.run("ip", "netns", "exec", "tj", *bash)
    return kubectl("exec", "-n", ASKERS[who].namespace, who, "--", *bash)


def answers(who, targets):
    said = dict(line.split(" ", 1) for line in inside(who, TRY, *targets).splitlines())
    return tuple(said.get(target) for target in targets)


def until_answers(when, targets, wanted):
    """Waits until each asker gets the wanted answers, one for each target: a policy is not in force in the moment in which it is written."""
    seen = {}

    def look():
        with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
            seen.update(zip(wanted, pool.map(lambda who: answers(who, targets), wanted)))
        return seen == wanted

    until(SECONDS_MAX, lambda: f"{when}: {targets} must answer {wanted}, and answer {seen}", look)


def everybody(*answer, **others):
    """What all get, but for those named."""
    return {who: others.get(who, answer) for who in ALL}
