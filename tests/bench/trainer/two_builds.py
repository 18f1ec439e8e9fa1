#!/usr/bin/python3
"""Two builds of the trainer, such as before a change and after it: is one slower, and do both compute the same?

    tests/bench/trainer/two_builds.py BEFORE AFTER [--seconds N]     folders of two builds, such as OTHER_CHECKOUT/build/dev and build/dev

On a machine that others use, too, the same program is at times half as fast, so two runs one after another can't show a hundredth. Here both
builds train GPT-2 nano by one thread on the same core, and all the time one of them is stopped (SIGSTOP): what slows the machine slows both.
Prints how fast AFTER is by BEFORE's speed, over the whole time and over each tenth of it. The last line is "N passed, N failed"; losses of
the same step that differ count as failed.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import contenders  # noqa: E402

TURN_SECONDS = 1.5
CORE = "0"
WARM_UP_STEPS = 10
START_SECONDS_MAX = 120
PARTS = 10
LOSS = re.compile(r"^step (\d+)/\d+ \| loss (\S+)", re.MULTILINE)


class Build:
    def __init__(self, name, folder, steps):
        out = contenders.WORK / "two_builds" / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        self.log = out / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "--cpu-list", CORE, folder / "trainer/trainer-engine", "train", "--model", "gpt2-nano", "--data", contenders.TEXT,
                 "--steps", str(steps), "--threads", "1", "--log-every", "1", "--out", out],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def losses(self):
        """By step; the log's last line may be half written."""
        whole, _, _ = self.log.read_text().rpartition("\n")
        return {int(step): loss for step, loss in LOSS.findall(whole)}

    def steps(self):
        return max(self.losses(), default=0)

    def warm_up(self):
        ends = time.monotonic() + START_SECONDS_MAX
        while self.steps() < WARM_UP_STEPS:
            if self.process.poll() is not None or time.monotonic() > ends:
                sys.exit(f"tests/bench/trainer/two_builds.py: {self.process.args[3]} does not train:\n{self.log.read_text()[-1000:]}")
            time.sleep(0.1)
        self.process.send_signal(signal.SIGSTOP)

    def turn(self):
        self.process.send_signal(signal.SIGCONT)
        time.sleep(TURN_SECONDS)
        self.process.send_signal(signal.SIGSTOP)


def measure(builds, seconds):
    """Steps that each made, (before, after), in each part of the time."""
    made = []
    for _ in range(PARTS):
        began = [build.steps() for build in builds]
        for pair in range(max(1, round(seconds / PARTS / TURN_SECONDS / len(builds)))):
            for build in builds if pair % 2 else reversed(builds):
                build.turn()
        made.append([build.steps() - first for build, first in zip(builds, began)])
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=360)
    options = parser.parse_args()
    builds = []
    try:
        for name, folder in (("before", options.before), ("after", options.after)):
            builds.append(Build(name, folder.resolve(), steps=100_000))
            builds[-1].warm_up()
        made = measure(builds, options.seconds)
    finally:
        for build in builds:
            build.process.kill()
            build.process.wait()
    before, after = (sum(steps) for steps in zip(*made))
    parts = [steps[1] / steps[0] for steps in made if steps[0]]
    seconds = options.seconds / len(builds)
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, gpt2-nano, one thread, in turns of {TURN_SECONDS} s")
    print(f"before {before} steps, after {after}, {seconds:.0f} s each: {after / before:.3f}; "
          f"by parts {min(parts):.3f} to {max(parts):.3f}, median {statistics.median(parts):.3f}")
    losses = [build.losses() for build in builds]
    both = sorted(set(losses[0]) & set(losses[1]))
    apart = next((step for step in both if losses[0][step] != losses[1][step]), None)
    print(f"losses of {len(both)} steps: " + ("the same" if apart is None else f"step {apart}: {losses[0][apart]} before, {losses[1][apart]} after"))
    print("1 passed, 0 failed" if apart is None else "0 passed, 1 failed")
    sys.exit(apart is not None)


if __name__ == "__main__":
    main()
