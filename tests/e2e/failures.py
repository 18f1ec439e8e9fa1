"""Jobs that fail, wait, are stopped and go on, on a cluster in good health. They share nothing: the runner may tell them
at the same time."""
import time

import stand_in
import world
from side import again, job, pods, status, uids, until_all_run, until_end_of, until_no_pods, until_phase
from world import equal, expect, get, kubectl, until

MISSING_IMAGE = "trainingjob-test/not-built:1"


def restarts(name):
    """All restarts, and those that count."""
    seen = status(name)
    return seen.get("restarts", 0), seen.get("restartsCounted", 0)


def warnings_about(name):
    return [(event["reason"], event["message"]) for event in get("events")
            if event["involvedObject"]["name"] == name and event["type"] == "Warning"]


def a_worker_that_fails_restarts_the_gang_until_the_budget_is_used_up():
    script = 'if [ $RANK = 1 ]; then echo "no space left in /data" >&2; exit 3; fi; ' + stand_in.waits_for("never")
    world.apply(stand_in.job("broken", script, runPolicy={"maxRestarts": 2, "restartBackoffSeconds": 1}))
    until_phase("broken", "Failed")
    seen = status("broken")
    equal(seen["reason"], "RestartsExhausted", "the reason")
    for words in ("worker 1 on node n", "no space left in /data", "runPolicy.maxRestarts, 2, is used up"):
        expect(words in seen["message"], f"the message does not say {words!r}: {seen['message']}")
    failure = seen["firstFailure"]
    equal((failure["attempt"], failure["rank"], failure["exitCode"]), (2, 1, 3), "the attempt, rank and code of the first failure")
    equal(restarts("broken"), (2, 2), "the restarts, and those that count")
    until(30, "worker 0 to be stopped", lambda: [pod["metadata"]["name"] for pod in pods("broken")] == ["broken-worker-1"])
    expect("no space left" in world.logs("broken-worker-1"), "the log of the failed worker is gone")
    told = warnings_about("broken")
    equal([reason for reason, _ in told].count("RestartsExhausted"), 1, "the events of the end")
    for words in ("attempt 1 begins in 1 s, at", "attempt 2 begins in 2 s, at"):
        expect(any(words in message for _, message in told), f"no event says {words!r}: {told}")
    world.delete_job("broken")


def a_deleted_pod_restarts_the_gang_without_counting():
    world.apply(stand_in.job("robbed", stand_in.waits_for("robbed")))
    until_all_run("robbed", 0)
    until_phase("robbed", "Running")
    before, fault = uids("robbed"), time.monotonic()
    kubectl("delete", "pod", "robbed-worker-1", "--force", "--grace-period=0")
    note = again("robbed", 1, fault)
    equal(uids("robbed") & before, set(), "the pods of before")
    equal(restarts("robbed"), (1, 0), "the restarts, and those that count")
    failure = status("robbed")["firstFailure"]
    equal((failure["rank"], failure["attempt"]), (1, 0), "the first failure's rank and attempt")
    expect(failure["cause"] in ("PodDeleted", "Signal"), f"the cause is {failure['cause']}: {failure['message']}")
    stand_in.release("robbed")
    until_phase("robbed", "Succeeded")
    world.delete_job("robbed")
    return note


def a_worker_out_of_memory_is_named_and_restarts_the_gang():
    eats = stand_in.fails_once(1, "x=$(head -c 300000000 /dev/zero | tr '\\0' x)")
    manifest = stand_in.job("hungry", f"{eats}; " + stand_in.waits_for("hungry"))
    stand_in.container_of(manifest)["resources"] = {"limits": {"memory": "64Mi"}}
    world.apply(manifest)
    note = again("hungry", 1, until_end_of("hungry", 0, 1))
    failure = status("hungry")["firstFailure"]
    equal((failure["rank"], failure["cause"]), (1, "OOMKilled"), "the first failure's rank and cause")
    equal(restarts("hungry"), (1, 1), "the restarts, and those that count")
    told = [message for reason, message in warnings_about("hungry") if reason == "OOMKilled"]
    equal(len(told), 1, f"the events OOMKilled among {warnings_about('hungry')}")
    expect("out of memory" in told[0], f"the event does not say it in plain words: {told[0]}")
    stand_in.release("hungry")
    until_phase("hungry", "Succeeded")
    world.delete_job("hungry")
    return note


def an_image_that_does_not_exist_is_said_and_can_be_corrected():
    manifest = stand_in.job("typo", stand_in.waits_for("typo"))
    right = stand_in.container_of(manifest)["image"]
    stand_in.container_of(manifest)["image"] = MISSING_IMAGE
    world.apply(manifest)
    until(60, lambda: f"the status to say what is wrong; it is {status('typo')}",
          lambda: "waiting for 2 of 2 workers: worker 0: its image is not found in the registry" == status("typo").get("message")
          and [trouble["reason"] for trouble in status("typo")["troubledRanks"]] == ["ImagePullBackOff"] * 2)
    equal((status("typo")["phase"], status("typo")["attempt"], restarts("typo")), ("Starting", 0, (0, 0)), "phase, attempt, restarts")
    world.patch("typo", {"runPolicy": {"suspend": True}})
    until_phase("typo", "Suspended")
    stand_in.container_of(manifest)["image"] = right
    world.patch("typo", manifest["spec"])
    fault = time.monotonic()
    world.patch("typo", {"runPolicy": {"suspend": False}})
    note = again("typo", 1, fault).replace("again ", "").replace("the fault", "its correction")
    stand_in.release("typo")
    until_phase("typo", "Succeeded")
    equal(restarts("typo"), (0, 0), "the restarts, and those that count")
    world.delete_job("typo")
    return note


def a_pod_too_big_for_every_node_says_for_what_it_waits():
    manifest = stand_in.job("greedy", "true", replicas=1)
    stand_in.container_of(manifest)["resources"] = {"limits": {"nvidia.com/gpu": 64}}
    world.apply(manifest)
    words = "waiting for 1 of 1 workers: 0/2 nodes have 64 nvidia.com/gpu free, since "
    until(30, lambda: f"the status to say what is missing; it is {status('greedy')}",
          lambda: status("greedy").get("message", "").startswith(words))
    equal((status("greedy")["phase"], restarts("greedy")), ("Starting", (0, 0)), "the phase and the restarts")
    world.delete_job("greedy")


def a_job_is_suspended_and_goes_on():
    world.apply(stand_in.job("paused", stand_in.waits_for("paused")))
    until_all_run("paused", 0)
    world.patch("paused", {"runPolicy": {"suspend": True}})
    seen = until_phase("paused", "Suspended")
    until_no_pods("paused")
    equal(seen.get("startTime"), None, "the start of a job that is suspended")
    world.patch("paused", {"runPolicy": {"suspend": False}})
    until_all_run("paused", 1)
    until_phase("paused", "Running")
    expect(status("paused").get("startTime"), "a job that goes on has no start")
    equal(restarts("paused"), (0, 0), "the restarts, and those that count")
    stand_in.release("paused")
    until_phase("paused", "Succeeded")
    world.delete_job("paused")


def a_job_born_suspended_has_no_pods_until_it_may_start():
    world.apply(stand_in.job("unborn", "true", runPolicy={"suspend": True}))
    until_phase("unborn", "Suspended")
    equal(pods("unborn"), [], "the pods")
    world.patch("unborn", {"runPolicy": {"suspend": False}})
    until_phase("unborn", "Succeeded")
    equal(status("unborn")["attempt"], 0, "the attempt: nothing had begun before")
    world.delete_job("unborn")


def a_finished_job_goes_when_its_time_is_over():
    world.apply(stand_in.job("brief", "true", runPolicy={"ttlSecondsAfterFinished": 2}))
    until_phase("brief", "Succeeded")
    until(30, "the job to go by itself", lambda: not job("brief"))
    until_no_pods("brief")
    until(30, "its Service to go", lambda: not get("services", selector="job-name=brief"))


def more_workers_are_a_new_gang_with_a_new_world_size():
    world.apply(stand_in.job("growing", f"echo $RANK of $WORLD_SIZE; {stand_in.waits_for('growing')}"))
    until_all_run("growing", 0)
    until_phase("growing", "Running")
    kubectl("scale", "tj", "growing", "--replicas=3")
    until_all_run("growing", 1)
    stand_in.release("growing")
    until_phase("growing", "Succeeded")
    equal([world.logs(f"growing-worker-{rank}") for rank in range(3)], [f"{rank} of 3\n" for rank in range(3)], "the logs")
    equal(restarts("growing"), (0, 0), "the restarts, and those that count")
    world.delete_job("growing")
