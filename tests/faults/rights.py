"""The rights that the chart grants and the calls that the operator makes are the same, both ways."""
import yaml

from server import INSTALL
from support.waiting import equal, until
from world import JOBS, STEP_SECONDS_MAX, manifest

# A right without a call: the API server asks for it where a child names the job as an owner that blocks its deletion.
NOT_CALLED = {"update trainingjobs/finalizers"}


def granted():
    """"create pods", "patch trainingjobs/status", ... of all roles that the install manifest binds."""
    items = [item for item in yaml.safe_load_all(INSTALL.read_text()) if item]
    bound = {item["roleRef"]["name"] for item in items if item["kind"].endswith("Binding")}
    roles = [item for item in items if item["kind"] in ("Role", "ClusterRole") and item["metadata"]["name"] in bound]
    return {f"{verb} {resource}" for role in roles for rule in role["rules"]
            for resource in rule["resources"] for verb in rule["verbs"]}


def stand_in_the_way(place):
    """Objects of the names that the job's children must have; the job waits until they are gone."""
    core = f"/api/v1/namespaces/{place.name}"
    return {  # in the order in which the operator creates its own
        f"/apis/networking.k8s.io/v1/namespaces/{place.name}/networkpolicies":
            {"metadata": {"name": "a"}, "spec": {"podSelector": {}}},
        f"{core}/services": {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}},
        f"{core}/pods": {"metadata": {"name": "a-worker-0"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}}


def every_right_is_used_and_every_call_allowed(world, is_full):
    place = world.namespace("rights")
    leads = ("--leader-elect", "--lease-namespace", "trainingjob-system")
    with world.operator(place.name, arguments=leads) as (_, proxy):
        def calls():
            return {call.what for call in proxy.calls}

        obstacles = stand_in_the_way(place)
        for path, body in obstacles.items():
            place.client.create(path, body)
        job = manifest("a", 2)
        job["spec"]["network"] = {"networkPolicy": True}
        place.client.create(JOBS.format(place.name), job)
        for path, body in obstacles.items():
            place.wait(f"{path} to be in the way", lambda: place.status().get("reason") == "NameConflict")
            asked = f"get {path.rpartition('/')[2]}"
            until(STEP_SECONDS_MAX, asked, lambda: asked in calls())
            place.client.delete(f"{path}/{body['metadata']['name']}", gracePeriodSeconds=0)
        place.wait_running(workers=2)
        with world.kubelet.silence(place.name):
            place.fail(rank=1)  # the next attempt's pods stay silent about why they don't start
            until(STEP_SECONDS_MAX, "the events of a silent pod to be read", lambda: "list events" in calls())
        place.wait_running(attempt=1, workers=2)
        port = {"metadata": {"annotations": {"kubebrain.io/progress-port": "8000"}}}
        place.client.patch(place.path(), port)
        until(STEP_SECONDS_MAX, "the policy to follow the port", lambda: "update networkpolicies" in calls())
        place.patch({"runPolicy": {"suspend": True}, "network": {"networkPolicy": False}})
        place.wait("the job to be suspended", lambda: place.status().get("phase") == "Suspended" and not place.pods())
        place.patch({"runPolicy": {"suspend": False}})
        until(STEP_SECONDS_MAX, "the policy to go", lambda: "delete networkpolicies" in calls())
        place.wait_running(attempt=2, workers=2)
        place.patch({"runPolicy": {"ttlSecondsAfterFinished": 0}})
        for pod in place.pods():
            world.kubelet.end(pod, 0)
        place.wait_gone()
        used = calls()
    equal(sorted(used - granted()), [], "calls without a right")
    equal(sorted(granted() - used - NOT_CALLED), [], "rights that no call needs")
    yield f"{len(used)} kinds of calls, {len(granted())} rights"
