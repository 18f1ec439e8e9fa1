"""A user who may create jobs in one namespace applies what the generator of tests/hostile thinks of, while another's job
trains: nobody else notices."""
import re

import training
import world
from side import until_phase
from support.client import Client, Refused
from world import equal, expect, get, kubectl, until

NAMESPACE = "hostile"
COUNT, SEED = 200, 20261122
COLLECTION = f"/apis/kubebrain.io/v1/namespaces/{NAMESPACE}/trainingjobs"
ACCEPTED_MIN = 40  # of these the schema lets pass: a test that is refused at the door shows nothing
LOOKED_AT_SECONDS_MAX = 180


def manifests():
    built = sorted(world.ROOT.glob("build/*/tests/hostile/hostile_manifests"), key=lambda path: path.stat().st_mtime)
    expect(built, "the generator is not built: cmake --preset dev && cmake --build --preset dev --target hostile_manifests")
    return world.run(built[-1], COUNT, SEED).splitlines()


def losses(name):
    text = world.logs(f"{name}-worker-0")
    found = re.findall(r"^step (\d+)/\d+\b.*?\bloss[ =:]+([0-9.]+)", text, re.MULTILINE)
    expect(found, f"{name} shows no losses:\n{text[:2000]}")
    return found


def start_training(name):
    world.apply(training.nano(name, "--steps=60", "--batch-size=16", "--log-every=1"))


def let_a_user_in():
    """A client with the rights of one who has a namespace."""
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "serviceaccount", "user", "-n", NAMESPACE)
    kubectl("create", "role", "jobs", "-n", NAMESPACE, "--verb=create,get,list,patch,update,delete",
            "--resource=trainingjobs.kubebrain.io")
    kubectl("create", "rolebinding", "jobs", "-n", NAMESPACE, "--role=jobs", f"--serviceaccount={NAMESPACE}:user")
    return Client(world.client().folder, kubectl("create", "token", "user", "-n", NAMESPACE).strip())


def is_taken(user, manifest):
    """By the server, without kubectl's own looks."""
    try:
        user.bytes("POST", COLLECTION, manifest.encode())
    except Refused:
        return False
    return True


def not_looked_at():
    """A job that names another manager is none of ours."""
    jobs = get("tj", namespace=NAMESPACE)
    ours = [job for job in jobs if job["spec"].get("runPolicy", {}).get("managedBy", "").endswith("trainingjob-operator")]
    return [job["metadata"]["name"] for job in ours if not job.get("status", {}).get("reason")]


def operator_restarts():
    pods = get("pods", namespace=world.OPERATOR_NAMESPACE)
    return [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods]


def two_hundred_hostile_manifests_disturb_nobody():
    before = operator_restarts()
    start_training("calm")
    until_phase("calm", "Succeeded", seconds=300)
    wanted = losses("calm")
    world.delete_job("calm")

    start_training("beside")
    until(120, "the first step of beside", lambda: re.search(r"^step 1/", world.log_so_far("beside-worker-0"), re.MULTILINE))
    user = let_a_user_in()
    try:
        accepted = sum(is_taken(user, manifest) for manifest in manifests())
        expect(accepted >= ACCEPTED_MIN, f"the server took {accepted} of {COUNT} manifests; it must take {ACCEPTED_MIN}")
        until(LOOKED_AT_SECONDS_MAX, lambda: f"a status of {not_looked_at()[:10]}", lambda: not not_looked_at())
        until_phase("beside", "Succeeded", seconds=400)
        equal(losses("beside"), wanted, "the losses of the job beside them")
        equal(operator_restarts(), before, "the restarts of the operators")
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--timeout=180s", check=False)
    world.delete_job("beside")
    return f"the server took {accepted} of {COUNT}; {len(wanted)} losses are the same"
