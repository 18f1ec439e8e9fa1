"""The server and what lies between: each story breaks one thing and yields what it measured, a line each."""
import random
import threading
import time

from proxy import Faults
from support.client import Refused
from support.waiting import equal, expect, until

WORKERS = 8
BLIND_SECONDS_MAX = 100
TOKEN_SECONDS_MAX = 60    # the server remembers for a while that a token was good
WATCH_SECONDS = 3         # how long a story looks whether anything goes on
NODES_ASKED_MAX = 10
WRITES_REFUSED_MAX = 20   # it asks less and less often
CALLS_AFTER_GONE_MAX = 4  # a watch that is renewed, not a storm
CALLS_PER_POD_MAX = 12
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
OPERATOR_ROLES = ("trainingjob-operator", "trainingjob-operator-nodes")


def api_server_killed_in_the_middle_of_a_gang(world, is_full):
    moments = ("while the gang is restarted", "while it is created", "while all run")
    for when in moments if is_full else moments[:1]:
        place = world.namespace(f"server-{when.split()[-1]}")
        with world.operator(place.name, through_proxy=False):
            place.create(workers=WORKERS)
            attempt = 0
            if when == "while it is created":
                place.wait("half of the pods", lambda: len(place.pods()) >= WORKERS // 2)
            else:
                place.wait_running(workers=WORKERS)
            if when == moments[0]:
                attempt = 1
                place.fail(rank=2)
                place.wait("the first pod of attempt 1", lambda: place.pods(attempt=1))
            broken = time.monotonic()
            world.server.kill()
            world.server.start_again()
            world.server.wait_ready()
            back = time.monotonic()
            if when == "while all run":  # and the operator is there when it is needed
                attempt = 1
                place.fail(rank=2)
            place.wait_running(attempt=attempt, workers=WORKERS)
            now = time.monotonic()
            yield f"{when}: all run {now - broken:.2f} s after the kill, {now - back:.2f} s after the server is back"
        place.expect_nothing_wrong(pods_created=WORKERS * (attempt + 1))


class Blind(Faults):
    """Watches that begin while it is blind wait until it sees again; what the server calls too old is kept."""

    def __init__(self):
        self.sees, self.gone = threading.Event(), []
        self.sees.set()

    def before(self, call):
        return not call.is_watch or self.sees.wait(BLIND_SECONDS_MAX)

    def after(self, call, status):
        if status == 410:
            self.gone.append(call.what)
        return True

    def chunk(self, call, data):
        if b'"code":410' in data:
            self.gone.append(call.what)
        return data, self.sees.is_set()


def etcd_compacted_while_the_watch_is_cut(world, is_full):
    """The server starts anew after it: else its own cache would still know the versions that etcd has forgotten."""
    place = world.namespace("compacted")
    with world.operator(place.name) as (_, proxy):
        proxy.faults = blind = Blind()
        place.create()
        place.wait_running()
        blind.sees.clear()
        proxy.cut(only_watches=True)
        place.fail(rank=1)  # while nobody looks: one worker fails, another's pod is lost for good
        gone = place.pods()[2]
        world.client.delete(f"/api/v1/namespaces/{place.name}/pods/{gone['metadata']['name']}", gracePeriodSeconds=0)
        place.wait("the pod to go", lambda: len(place.pods()) == 2)
        world.server.compact()
        world.server.kill()
        world.server.start_again()
        world.server.wait_ready()
        blind.sees.set()
        sees = time.monotonic()
        place.wait_running(attempt=1)
        expect("watch pods" in blind.gone, f"the server did not say 410 to the watch of pods, but to {blind.gone}")
        equal(place.status()["firstFailure"]["rank"], 1, "rank of the first failure")
        yield (f"410 to: {', '.join(sorted(set(blind.gone)))}; all run {time.monotonic() - sees:.2f} s after the "
               f"operator may watch again")
    place.expect_nothing_wrong(pods_created=6)


class CutAt(Faults):
    """Cuts the watch of pods within the bytes that come next."""

    def __init__(self, dice):
        self.dice, self.is_armed, self.cut_at, self.length = dice, False, None, None

    def chunk(self, call, data):
        if not self.is_armed or call.what != "watch pods":
            return data, True
        self.is_armed, self.length, self.cut_at = False, len(data), self.dice.randrange(len(data))
        return data[:self.cut_at], False


def watch_cut_at_a_random_byte(world, is_full):
    seed = random.SystemRandom().randrange(10**6)
    dice = random.Random(seed)
    place = world.namespace("cut")
    count = 40 if is_full else 6
    seconds = []
    with world.operator(place.name) as (_, proxy):
        place.create(maxRestarts=1000)
        place.wait_running()
        for attempt in range(1, count + 1):
            proxy.faults = cut = CutAt(dice)
            cut.is_armed = True
            began = time.monotonic()
            place.fail(rank=dice.randrange(3))
            place.wait_running(attempt=attempt)
            seconds.append(time.monotonic() - began)
            expect(cut.cut_at is not None, "the watch was not cut")
    place.expect_nothing_wrong(pods_created=3 * (count + 1))
    median = sorted(seconds)[count // 2]
    yield (f"{count} cuts (seed {seed}) in the event of a failed worker: all run again after {median:.2f} s (median), "
           f"{max(seconds):.2f} s (longest)")


def revoke(world, secret, token):
    """Takes back the token that was bound to the Secret; until the server knows."""
    world.client.delete(f"/api/v1/namespaces/trainingjob-system/secrets/{secret}")
    stranger = type(world.client)(world.server.folder, token)

    def is_refused():
        try:
            stranger.get("/apis/kubebrain.io/v1/trainingjobs")
        except Refused as refused:
            return refused.code == 401
        return False
    until(TOKEN_SECONDS_MAX, "the old token to be refused", is_refused)


def token_rotated(world, is_full):
    """A mounted token is a file that changes. Once the new one is there in time, once too late."""
    place = world.namespace("token")
    tokens = {name: world.server.token(secret=name) for name in ("first", "second", "third")}
    with world.operator(place.name, token=tokens["first"]) as (operator, proxy):
        place.create()
        place.wait_running()
        operator.token_file.write_text(tokens["second"])
        revoke(world, "first", tokens["first"])
        began = time.monotonic()
        place.fail(rank=1)
        place.wait_running(attempt=1)
        expect(proxy.tokens[tokens["second"]] > 0, "the second token was never used")
        yield f"in time: all run {time.monotonic() - began:.2f} s after a worker failed, the old token being refused"
        revoke(world, "second", tokens["second"])
        calls = proxy.count()
        place.fail(rank=1)
        until(TOKEN_SECONDS_MAX, "a call with the token that is refused", lambda: proxy.count() > calls)
        operator.token_file.write_text(tokens["third"])
        began = time.monotonic()
        place.wait_running(attempt=2)
        yield f"too late: all run {time.monotonic() - began:.2f} s after the file holds a good token again"
    place.expect_nothing_wrong(pods_created=9)


class Without:
    """The operator's rights without one verb on one resource, until the block ends."""

    def __init__(self, world, verb, resource):
        self.client, self.verb, self.resource = world.client, verb, resource

    def __enter__(self):
        roles = {role: self.client.get(f"{ROLES}/{role}")["rules"] for role in OPERATOR_ROLES}
        self.role, self.rules = next((role, rules) for role, rules in roles.items()
                                     if any(self.verb in rule["verbs"] and self.resource in rule["resources"]
                                            for rule in rules))
        kept = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != self.verb]}
                if self.resource in rule["resources"] else rule for rule in self.rules]
        self.client.patch(f"{ROLES}/{self.role}", {"rules": [rule for rule in kept if rule["verbs"]]})
        return self

    def __exit__(self, *_):
        self.client.patch(f"{ROLES}/{self.role}", {"rules": self.rules})


def may_not_create_pods(world, is_full):
    place = world.namespace("rbac")
    with world.operator(place.name) as (_, proxy):
        with Without(world, "create", "pods"):
            place.create()
            place.wait("the refusal in the status", lambda: place.status().get("reason") == "CreateFailed")
            message = place.status()["message"]
            expect('cannot create resource "pods"' in message and place.status()["phase"] == "Pending", place.seen())
            calls = proxy.count(writes_only=True)
            time.sleep(WATCH_SECONDS)
            writes = proxy.count(writes_only=True) - calls
            expect(writes <= WRITES_REFUSED_MAX, f"{writes} writes in the {WATCH_SECONDS} s after the refusal")
            yield f"status: {message}"
            yield f"{writes} writes in the {WATCH_SECONDS} s after it"
        began = time.monotonic()
        place.wait_running()
        yield f"all run {time.monotonic() - began:.2f} s after the right is granted"
    place.expect_nothing_wrong(pods_created=3)


def may_not_list_nodes(world, is_full):
    place = world.namespace("nodes")
    with Without(world, "list", "nodes"), world.operator(place.name) as (_, proxy):
        began = time.monotonic()
        place.create()
        place.wait_running()
        yield f"all run {time.monotonic() - began:.2f} s after the job is created"
        began = time.monotonic()
        place.fail(rank=0)
        place.wait_running(attempt=1)
        yield f"all run again {time.monotonic() - began:.2f} s after a worker failed"
        asked = sum(call.what == "list nodes" for call in proxy.calls)
        expect(1 <= asked <= NODES_ASKED_MAX, f"the nodes were asked for {asked} times")
    place.expect_nothing_wrong(pods_created=6)


def namespace_deleted_under_it(world, is_full):
    place, other = world.namespace("doomed"), world.namespace("bystander")
    with world.operator() as (_, proxy):
        place.create(workers=WORKERS)
        place.wait_running(workers=WORKERS)
        calls = proxy.count()
        world.client.delete(f"/api/v1/namespaces/{place.name}")
        place.wait_gone()
        until(60, "the namespace to go", lambda: world.client.find(f"/api/v1/namespaces/{place.name}") is None)
        spent = proxy.count(since=calls)
        expect(spent <= WORKERS * CALLS_PER_POD_MAX, f"{spent} calls while a namespace with {WORKERS} pods went")
        calls = proxy.count()
        time.sleep(WATCH_SECONDS)
        later = proxy.count(since=calls)
        expect(later <= CALLS_AFTER_GONE_MAX, f"{later} calls in the {WATCH_SECONDS} s after the namespace was gone")
        began = time.monotonic()
        other.create()
        other.wait_running()
        yield (f"{spent} calls while it went, {later} in the {WATCH_SECONDS} s after; a job elsewhere: all run after "
               f"{time.monotonic() - began:.2f} s")
    other.expect_nothing_wrong(pods_created=3)


def deleted_and_created_again_at_once(world, is_full):
    place = world.namespace("again")
    with world.operator(place.name):
        first = place.create()["metadata"]["uid"]
        place.wait_running()
        place.client.delete(place.path(), propagationPolicy="Background")
        began = time.monotonic()
        second = place.create()["metadata"]["uid"]
        place.wait("the first job's pods to go", lambda: not any(
            owner["uid"] == first for pod in place.pods() for owner in pod["metadata"].get("ownerReferences", ())))
        place.wait_running()
        uids = {owner["uid"] for pod in place.pods() for owner in pod["metadata"]["ownerReferences"]}
        equal(uids, {second}, "owners of the pods")
        yield f"all run {time.monotonic() - began:.2f} s after the second job of the name is created"
    place.expect_nothing_wrong(pods_created=6)


def pods_orphaned_by_an_earlier_job_of_the_name(world, is_full):
    """kubectl delete --cascade=orphan: they are nobody's, and hold the names."""
    place = world.namespace("orphan")
    with world.operator(place.name) as (_, proxy):
        place.create()
        place.wait_running()
        place.client.delete(place.path(), propagationPolicy="Orphan")
        place.wait("the job to go", lambda: not place.mirror.of("jobs", place.name))
        orphans = {pod["metadata"]["uid"] for pod in place.pods()}
        equal(len(orphans), 3, "orphans")
        place.create()
        place.wait("the conflict in the status", lambda: place.status().get("reason") == "NameConflict")
        yield f"status: {place.status()['message']}"
        calls = proxy.count(writes_only=True)
        time.sleep(WATCH_SECONDS)
        writes = proxy.count(writes_only=True) - calls
        expect(writes <= 1, f"{writes} writes while it waits; its event may come after the status, no more")
        yield f"{writes} writes in the {WATCH_SECONDS} s after it"
        equal({pod["metadata"]["uid"] for pod in place.pods()}, orphans, "the orphans")
        for kind, items in (("pods", place.pods()), ("services", place.mirror.of("services", place.name))):
            for item in items:
                place.client.delete(f"/api/v1/namespaces/{place.name}/{kind}/{item['metadata']['name']}")
        began = time.monotonic()
        place.wait_running()
        yield f"all run {time.monotonic() - began:.2f} s after the orphans are deleted"
    place.expect_nothing_wrong(pods_created=6)


STORIES = [api_server_killed_in_the_middle_of_a_gang, etcd_compacted_while_the_watch_is_cut,
           watch_cut_at_a_random_byte, token_rotated, may_not_create_pods, may_not_list_nodes,
           namespace_deleted_under_it, deleted_and_created_again_at_once, pods_orphaned_by_an_earlier_job_of_the_name]
