"""One whole life of a job, with the operator killed -9 at one of its calls: the end must be as if nothing had been."""
import concurrent.futures
import dataclasses
import statistics
import threading
import time

from proxy import Faults
from support.waiting import Failure, equal, expect

WORKERS = 3
PODS_CREATED = 3 * WORKERS  # attempt 0, the one after the failure, the one after the suspension
LANES = 3                   # lives side by side, each with its own operator, proxy and namespace
KILLS_SHORT = 18
CALLS_MIN = 30
CALLS_MAX = 150
FIELDS = ("phase", "reason", "attempt", "restarts", "restartsCounted", "worldSize")


class KillAt(Faults):
    """Kills the operator at one call, before the server hears of it or before the operator hears the answer."""

    def __init__(self, number, is_after):
        self.number, self.is_after = number, is_after
        self.operator = None
        self.lock = threading.Lock()
        self.call, self.killed_at = None, None
        self.is_over = False

    def strike(self, call, is_after):
        """True where this is the place. The next operator comes at once."""
        with self.lock:
            if self.is_over or self.killed_at or call.number != self.number or is_after != self.is_after:
                return False
            self.operator.kill()
            self.call, self.killed_at = call, time.monotonic()
            self.operator.start()
            return True

    def end(self):
        """A life's last calls, its events, may come when it is over: who stops the operator must not meet a kill."""
        with self.lock:
            self.is_over = True

    def before(self, call):
        return not self.strike(call, is_after=False)

    def after(self, call, status):
        return not self.strike(call, is_after=True)


@dataclasses.dataclass
class Life:
    """What a life came to."""
    calls: list = dataclasses.field(default_factory=list)
    ends: dict = dataclasses.field(default_factory=dict)   # step -> what held at its end
    times: dict = dataclasses.field(default_factory=dict)  # step -> when it was done
    killed_in: str = ""                                    # the step
    recovered: float = 0                                   # seconds from the kill to the end of that step


def what_holds(place):
    status = place.status()
    failure = status.get("firstFailure", {})
    return {**{field: status.get(field) for field in FIELDS},
            "first failure": {key: failure.get(key) for key in ("attempt", "rank", "exitCode", "cause", "collateral")},
            "conditions": sorted(each["type"] for each in status.get("conditions", ()) if each["status"] == "True")}


def suspend(place):
    place.patch({"runPolicy": {"suspend": True}})

    def holds():
        status = place.status()
        is_empty = status.get("replicaStatuses", {}).get("Worker", {}).get("active") == 0
        return status.get("phase") == "Suspended" and is_empty and not place.pods()
    place.wait("the job to be suspended and without pods", holds)


def resume(place):
    place.patch({"runPolicy": {"suspend": False}})
    place.wait_running(attempt=2)


def restart(place):
    place.fail(rank=1, code=1)
    place.wait_running(attempt=1)


def succeed(place):
    for pod in place.pods():
        place.world.kubelet.end(pod, 0)
    place.wait_phase("Succeeded")


def create(place):
    place.create(workers=WORKERS)
    place.wait_running(attempt=0)


def delete(place):
    place.client.delete(place.path(), propagationPolicy="Background")
    place.wait_gone()


STEPS = {"create": create, "restart": restart, "suspend": suspend, "resume": resume, "succeed": succeed,
         "delete": delete}
LAST_STEP = list(STEPS)[-1]


def live(world, name, faults):
    life = Life()
    place = world.namespace(name)
    with world.operator(namespace=name) as (operator, proxy):
        if isinstance(faults, KillAt):
            faults.operator = operator
        proxy.faults = faults
        for step, act in STEPS.items():
            act(place)
            life.times[step] = time.monotonic()
            life.ends[step] = what_holds(place)
        life.calls = list(proxy.calls)
        if isinstance(faults, KillAt):
            faults.end()
    place.expect_nothing_wrong(PODS_CREATED)
    return life


def live_with_a_kill(world, calm, number, is_after):
    """None where this life had ended before its call of that number."""
    kill = KillAt(number, is_after)
    when = f"call {number}, {'before its answer' if is_after else 'before the server heard it'}"
    try:
        life = live(world, f"kill-{number}-{'after' if is_after else 'before'}", kill)
        if kill.killed_at is None or kill.killed_at > life.times[LAST_STEP]:
            return None
        for step, end in life.ends.items():
            equal(end, calm.ends[step], f"the end of {step}")
    except Failure as reason:
        what = f" ({kill.call.what})" if kill.call else ""
        raise Failure(f"killed at {when}{what}: {reason}") from None
    life.killed_in, done = next((step, at) for step, at in life.times.items() if at >= kill.killed_at)
    life.recovered = done - kill.killed_at
    return kill.call.what, is_after, life


def places_to_kill(call_count, is_full):
    both = [(number, is_after) for number in range(1, call_count + 1) for is_after in (False, True)]
    if is_full:
        return both
    stride = max(len(both) // KILLS_SHORT, 1) | 1  # odd: befores and afters by turns
    return both[::stride]


def table(kills):
    """Rows of: during, kills, at which calls, median and longest seconds until the step was done."""
    for step in STEPS:
        those = [(what, life) for what, _, life in kills if life.killed_in == step]
        if not those:
            continue
        counts = {}
        for what, _ in those:
            counts[what] = counts.get(what, 0) + 1
        seconds = [life.recovered for _, life in those]
        named = ", ".join(what + (f" x{count}" if count > 1 else "") for what, count in sorted(counts.items()))
        yield step, len(those), statistics.median(seconds), max(seconds), named


def killed_at_each_call_of_a_lifecycle(world, is_full):
    calm = live(world, "calm", Faults())
    count = len(calm.calls)
    expect(CALLS_MIN <= count <= CALLS_MAX, f"a life took {count} calls: {[call.what for call in calm.calls]}")
    places = places_to_kill(count, is_full)
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        done = list(lanes.map(lambda place: live_with_a_kill(world, calm, *place), places))
    kills = [each for each in done if each]
    # A life has no fixed number of calls: counts are written by the second.
    expect(len(kills) >= len(places) * 0.9, f"only {len(kills)} of {len(places)} kills took place")
    yield f"a life of {count} calls, {len(kills)} kills; seconds from the kill to the end of the step under way:"
    for step, number, median, longest, named in table(kills):
        yield f"{step:8} {number:4} kills  median {median:.2f} s, longest {longest:.2f} s  ({named})"
