"""What happens to a cluster, with jobs in flight: a worker's process killed, a node drained, a node without power, the
leader among the operators killed. Each returns how long it took until all ranks ran again."""
import time

import machine
import stand_in
import world
from failures import restarts
from side import again, attempt, nodes, pods, status, uids, until_all_run, until_phase
from world import equal, expect, get, kubectl, until

TAKEOVER_SECONDS_MAX = 20
NODE_LOSS = {"toleranceSeconds": 5, "forceDeleteSeconds": 5}


def start(name, **spec):
    """A job with a worker on each node, running until it is released."""
    world.apply(stand_in.job(name, stand_in.waits_for(name), **spec))
    until_all_run(name, 0)
    until_phase(name, "Running")
    equal(sorted(nodes(name)), ["n1", "n2"], "the nodes of the workers")


def on_node(name, node):
    return next(pod for pod in pods(name) if pod["spec"]["nodeName"] == node)


def finish(name):
    stand_in.release(name)
    until_phase(name, "Succeeded")
    world.delete_job(name)


def is_ready(node):
    conditions = get("node", node)["status"]["conditions"]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def a_killed_worker_restarts_the_gang_and_is_named():
    start("killed")
    before, fault = uids("killed"), time.monotonic()
    machine.kill_container(pods("killed")[1])
    note = again("killed", 1, fault)
    equal(uids("killed") & before, set(), "the pods of before")
    equal({attempt(pod) for pod in pods("killed")}, {1}, "the attempts of the pods")
    seen = status("killed")
    failure = seen["firstFailure"]
    equal((failure["attempt"], failure["rank"], failure["exitCode"], failure["signal"], failure["cause"]),
          (0, 1, 137, 9, "Signal"), "the first failure")
    expect(failure["node"] in ("n1", "n2"), f"the node of the first failure is {failure['node']}")
    equal(restarts("killed"), (1, 0), "the restarts, and those that count")
    words = f"worker 1 on node {failure['node']} failed first: killed by signal 9"
    told = [e["message"] for e in get("events") if e["involvedObject"]["name"] == "killed" and e["reason"] == "WorkerFailed"]
    equal(len(told), 1, "the events of the failure")
    expect(words in told[0], f"the event does not say {words!r}: {told[0]}")
    described = kubectl("describe", "tj", "killed")
    expect("First Failure:" in described and words in described, f"kubectl describe does not show it:\n{described}")
    finish("killed")
    return note


def a_drained_node_disrupts_the_gang_and_does_not_count():
    start("drained")
    fault = time.monotonic()
    kubectl("drain", "n2", "--pod-selector=job-name=drained", "--ignore-daemonsets", "--timeout=60s")
    try:
        note = again("drained", 1, fault)
        equal(nodes("drained"), ["n1", "n1"], "the nodes")
        failure = status("drained")["firstFailure"]
        equal((failure["node"], failure["cause"], failure["reason"]), ("n2", "Disrupted", "EvictionByEvictionAPI"), "the first failure")
        equal(restarts("drained"), (1, 0), "the restarts, and those that count")
    finally:
        kubectl("uncordon", "n2")
    finish("drained")
    return note


def lose_node_2(name, number):
    """Power off while the job has a worker on it: how long until the gang of that attempt runs on the other."""
    expect("n2" in nodes(name), f"the workers are on {nodes(name)}")
    fault = time.monotonic()
    world.run(world.CLUSTER, "kill-node", 2)
    until(60, "node n2 to be seen as lost", lambda: not is_ready("n2"))
    seen = time.monotonic() - fault
    note = again(name, number, fault, seconds=120)
    equal(nodes(name), ["n1", "n1"], "the nodes")
    failure = status(name)["firstFailure"]
    equal((failure["node"], failure["cause"]), ("n2", "NodeLost"), "the first failure")
    return f"{note}, {seen:.1f} s of which Kubernetes took to see it"


def power_on_node_2():
    world.run(world.CLUSTER, "node", 2)
    until(180, lambda: f"node n2 to be Ready again; its kubelet says:\n{last_of_kubelet()}", lambda: is_ready("n2"))


def last_of_kubelet():
    log = world.CACHE / "cluster/n2/log/kubelet"
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.exists() else "nothing"


def a_node_without_power_loses_its_workers_and_the_second_time_its_place():
    start("orphaned", nodeLoss=NODE_LOSS)
    notes = [lose_node_2("orphaned", 1)]
    seen = status("orphaned")
    equal((seen["nodeFailures"], seen.get("excludedNodes", [])), ([{"node": "n2", "count": 1}], []), "what is held against n2")
    power_on_node_2()
    machine.kill_container(pods("orphaned")[0])  # makes the gang anew: n2 takes part again
    until_all_run("orphaned", 2)
    notes.append(lose_node_2("orphaned", 3))
    seen = status("orphaned")
    equal((seen["nodeFailures"], seen["excludedNodes"]), ([{"node": "n2", "count": 2}], ["n2"]), "what is held against n2")
    power_on_node_2()
    machine.kill_container(pods("orphaned")[0])
    until_all_run("orphaned", 4)
    equal(nodes("orphaned"), ["n1", "n1"], "the nodes, although n2 is back")
    equal(restarts("orphaned"), (4, 0), "the restarts, and those that count")
    finish("orphaned")
    return "; ".join(notes)


def leader():
    """The Lease's holder: the operator's pod that acts."""
    lease = get("lease", world.RELEASE, world.OPERATOR_NAMESPACE)
    return lease["spec"].get("holderIdentity", "") if lease else ""


def pod_of(holder):
    found = get("pod", holder.rpartition("_")[0], world.OPERATOR_NAMESPACE)
    expect(found, f"the Lease is held by {holder!r}, and there is no such pod")
    return found


def the_leader_is_killed_and_another_operator_goes_on():
    start("leaderless")  # loses a worker meanwhile
    start("ending")      # ends meanwhile
    equal(len(get("pods", namespace=world.OPERATOR_NAMESPACE)), 2, "the number of operators")
    before = leader()
    dead = pod_of(before)
    world.apply(stand_in.job("begun", stand_in.waits_for("begun"), replicas=6))  # is being made
    until(30, "the first pod of job begun", lambda: pods("begun"))
    fault = time.monotonic()
    machine.kill_container(dead)
    machine.kill_container(pods("leaderless")[1])
    untouched = uids("ending")
    stand_in.release("ending")
    until(60, "another leader", lambda: leader() not in ("", before))
    takeover = time.monotonic() - fault
    expect(takeover < TAKEOVER_SECONDS_MAX, f"the takeover took {takeover:.1f} s; it may take {TAKEOVER_SECONDS_MAX}")
    note = again("leaderless", 1, fault)
    until_phase("ending", "Succeeded")
    equal(uids("ending"), untouched, "the pods of the job that ended meanwhile")
    until_all_run("begun", 0)
    until_phase("begun", "Running")
    equal([(restarts(name), status(name)["attempt"]) for name in ("ending", "begun")], [((0, 0), 0)] * 2, "restarts and attempts")
    for name in ("leaderless", "begun"):
        finish(name)
    world.delete_job("ending")
    return f"takeover {takeover:.1f} s; {note}"
