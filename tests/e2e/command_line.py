"""tj on the cluster, as a person uses it."""
import json
import subprocess
import threading

import stand_in
import world
from side import until_all_run, until_phase
from world import equal, expect, until

TJ = world.ROOT / "build/dev/cli/tj"
MISSING_IMAGE = "trainingjob-test/not-built:2"


def tj(*arguments):
    return world.run(TJ, *arguments, env=world.kubeconfig())


class Reader:
    """A tj that goes on: its lines as they come."""

    def __init__(self, *arguments):
        self.lines = []
        self.process = subprocess.Popen([TJ, *arguments], env=world.with_kubeconfig(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.thread = threading.Thread(target=lambda: self.lines.extend(line.rstrip("\n") for line in self.process.stdout), daemon=True)
        self.thread.start()

    def end(self, seconds):
        try:
            code = self.process.wait(seconds)
        finally:
            self.process.kill()
            self.thread.join(10)
        return code


def tj_explain_names_an_image_that_does_not_exist():
    manifest = stand_in.job("no-image", "true")
    stand_in.container_of(manifest)["image"] = MISSING_IMAGE
    world.apply(manifest)

    seen = []

    def is_told_of_both():  # at any moment one of them may be pulling once more
        seen[:] = [each for each in json.loads(tj("explain", "no-image", "-o", "json"))["findings"]
                   if each["cause"] in ("ImageNotFound", "ImageDenied", "RegistryUnreachable") and "workers 0-1" in each["what"]]
        return seen
    until(90, lambda: f"tj to explain it; it says {tj('explain', 'no-image')}", is_told_of_both)
    (found,) = seen
    expect("no-image-worker-0" in found["object"], f"it names another: {found}")
    expect(found["time"] and found["remedy"], f"it has no time, or nothing to do: {found}")
    world.delete_job("no-image")


def tj_logs_follows_a_job_across_a_restart():
    """And says alike what all ranks say alike."""
    script = ("echo attempt $TRAININGJOB_ATTEMPT; for i in $(seq 200); do echo rank $RANK line $i; done; " +
              stand_in.waits_for("followed-$TRAININGJOB_ATTEMPT") + "; " + stand_in.fails_once(1, "exit 3") + "; echo the end")
    world.apply(stand_in.job("followed", script))
    reader = Reader("logs", "followed", "-f")
    until_all_run("followed", 0)
    until(60, "the lines of the first attempt", lambda: sum("line 200" in line for line in reader.lines) == 2)
    stand_in.release("followed-0")
    until_all_run("followed", 1)
    stand_in.release("followed-1")
    until_phase("followed", "Succeeded")
    equal(reader.end(60), 0, "the exit code of tj logs -f")
    for rank in (0, 1):
        wanted = [f"[{rank}] rank {rank} line {i}" for i in range(1, 201)]
        equal([line for line in reader.lines if line.startswith(f"[{rank}] rank ")], wanted * 2, f"the lines of rank {rank}")
    expect(any(line.endswith("attempt 1") for line in reader.lines), f"no line of attempt 1: {reader.lines[-5:]}")
    said = tj("logs", "followed", "--rank", "1", "--tail", "1")
    equal(said, "[1] the end\n", "the last line of rank 1")
    expect("Restarted" in tj("explain", "followed"), "tj explain does not tell of the restart")
    world.delete_job("followed")
