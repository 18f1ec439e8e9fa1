"""What becomes of the jobs of a soak: each life is a generator that acts and yields what it waits for next."""
import random

from support.client import jobs, pods

FINAL_CODE = 64  # the trainer's "bad configuration": fails the job at once
HOLD_SECONDS = (0.5, 4)


class Life:
    """One job. `world` is what the last look at the API server showed, and the time of it."""

    def __init__(self, world, name, dice):
        self.world, self.name, self.dice = world, name, dice
        self.workers = dice.randint(1, 4)
        self.story = dice.choices([kind for kind, _ in STORIES], [weight for _, weight in STORIES])[0]
        self.steps = self.story(self)
        self.condition = None
        self.what = "to begin"
        self.since = world.now

    def step(self):
        """Goes on as far as it can; True when the life is over."""
        while self.condition is None or self.condition():
            try:
                self.what, self.condition = next(self.steps)
                self.since = self.world.now
            except StopIteration:
                return True
        return False

    # --- what it sees

    def status(self):
        return self.world.jobs.get(self.name, {}).get("status", {})

    def pods(self):
        return self.world.pods.get(self.name, [])

    def phase_is(self, phase):
        return f"phase {phase}", lambda: self.status().get("phase") == phase

    def runs(self, attempt_min=0):
        def all_run():
            pods = [pod for pod in self.pods() if pod["status"]["phase"] == "Running"
                    and "deletionTimestamp" not in pod["metadata"]]
            status = self.status()
            return (status.get("phase") == "Running" and len(pods) == self.workers
                    and status.get("attempt", 0) >= attempt_min)
        return f"all of attempt {attempt_min} to run", all_run

    def hold(self):
        until = self.world.now + self.dice.uniform(*HOLD_SECONDS)
        return "time to pass", lambda: self.world.now >= until

    def gone(self):
        return "nothing to be left", lambda: self.name not in self.world.jobs and not self.pods()

    # --- what it does

    def create(self):
        self.world.create(self.name, self.workers)

    def finish(self, exit_codes):
        """Ends workers, as a kubelet would report it."""
        for index, exit_code in exit_codes.items():
            self.world.end_pod(f"{self.name}-worker-{index}", exit_code)

    def finish_all(self):
        self.finish({index: 0 for index in range(self.workers)})

    def delete(self):
        self.world.delete(self.name)


def succeeds(life):
    life.create()
    yield life.runs()
    yield life.hold()
    life.finish_all()
    yield life.phase_is("Succeeded")
    life.delete()
    yield life.gone()


def fails(life):
    life.create()
    yield life.runs()
    life.finish({life.dice.randrange(life.workers): FINAL_CODE})
    yield life.phase_is("Failed")
    life.delete()
    yield life.gone()


def restarts(life):
    life.create()
    yield life.runs()
    for attempt in range(1, life.dice.randint(1, 3) + 1):
        life.finish({life.dice.randrange(life.workers): life.dice.choice((1, 75, 139))})
        yield life.runs(attempt)
        yield life.hold()
    life.finish_all()
    yield life.phase_is("Succeeded")
    life.delete()
    yield life.gone()


def loses_a_pod(life):
    life.create()
    yield life.runs()
    life.world.delete_pod(f"{life.name}-worker-{life.dice.randrange(life.workers)}")
    yield life.runs(1)
    life.finish_all()
    yield life.phase_is("Succeeded")
    life.delete()
    yield life.gone()


def rests(life):
    life.create()
    yield life.runs()
    life.world.suspend(life.name, True)
    yield life.phase_is("Suspended")
    yield "its pods to go", lambda: not life.pods()
    yield life.hold()
    life.world.suspend(life.name, False)
    yield life.runs(1)
    life.finish_all()
    yield life.phase_is("Succeeded")
    life.delete()
    yield life.gone()


def is_deleted_early(life):
    life.create()
    wait = life.dice.uniform(0, 1.5)
    until = life.world.now + wait
    yield "time to pass", lambda: life.world.now >= until and life.name in life.world.jobs
    life.delete()
    yield life.gone()


STORIES = ((succeeds, 4), (fails, 2), (restarts, 4), (loses_a_pod, 2), (rests, 3), (is_deleted_early, 2))


class World:
    """The one namespace in which all lives pass: what is there, and the hands that change it."""

    def __init__(self, client, namespace, make_job, end_pod):
        self.client, self.namespace = client, namespace
        self.make_job, self.write_end = make_job, end_pod
        self.jobs, self.pods, self.now = {}, {}, 0

    def look(self, now):
        self.now = now
        found = self.client.get(jobs(self.namespace))["items"]
        self.jobs = {job["metadata"]["name"]: job for job in found}
        self.pods = {}
        for pod in self.client.get(pods(self.namespace))["items"]:
            self.pods.setdefault(pod["metadata"]["labels"]["job-name"], []).append(pod)

    def create(self, name, workers):
        self.client.create(jobs(self.namespace), self.make_job(name, self.namespace, workers))

    def delete(self, name):
        self.client.delete(jobs(self.namespace, name))

    def delete_pod(self, name):
        self.client.delete(pods(self.namespace, name))

    def end_pod(self, name, exit_code):
        self.write_end(self.namespace, name, exit_code)

    def suspend(self, name, is_suspended):
        self.client.patch(jobs(self.namespace, name), {"spec": {"runPolicy": {"suspend": is_suspended}}})


def dice(seed):
    return random.Random(seed)
