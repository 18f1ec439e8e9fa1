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
import shutil
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import contenders  # noqa: E402
from support.processes import Process  # noqa: E402

TURN_SECONDS = 1.5
STEPS_MAX = 100_000
WARM_UP_STEPS = 10
START_SECONDS_MAX = 120
PARTS = 10


class Build:
    def __init__(self, name, folder):
        out = contenders.WORK / "two_builds" / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        self.engine = folder / "trainer/trainer-engine"
        self.process = Process(["taskset", "--cpu-list", contenders.core_of(0), self.engine, "train", "--model", "gpt2-nano",
                                "--data", contenders.TEXT, "--steps", STEPS_MAX, "--threads", "1", "--log-every", "1", "--out", out], out / "log")

    def losses(self):
        """By step; the log's last line may be half written."""
        whole, _, _ = self.process.log.read_text().rpartition("\n")
        return {int(step): loss for step, loss in contenders.STEP.findall(whole)}

    def steps(self):
        return max(self.losses(), default=0)

    def check(self, is_in_time=True):
        if not is_in_time or not self.process.is_running():
            sys.exit(f"tests/bench/trainer/two_builds.py: {self.engine} does not train:\n{self.process.last_words()}")

    def warm_up(self):
        ends = time.monotonic() + START_SECONDS_MAX
        while self.steps() < WARM_UP_STEPS:
            self.check(time.monotonic() < ends)
            time.sleep(0.1)
        self.process.popen.send_signal(signal.SIGSTOP)

    def turn(self):
        self.process.popen.send_signal(signal.SIGCONT)
        time.sleep(TURN_SECONDS)
        self.process.popen.send_signal(signal.SIGSTOP)
        self.check()

    def end(self):
        self.process.popen.kill()
        self.process.popen.wait()


def measure(builds, turns):
    """Steps that each made, (before, after), in each part of the time, of `turns` turns for each."""
    made = []
    for _ in range(PARTS):
        began = [build.steps() for build in builds]
        for turn in range(turns):
            for build in builds if turn % 2 else reversed(builds):
                build.turn()
        made.append([build.steps() - first for build, first in zip(builds, began)])
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=360)
    options = parser.parse_args()
    turns = max(1, round(options.seconds / 2 / PARTS / TURN_SECONDS))
    builds = []
    try:
        for name, folder in (("before", options.before), ("after", options.after)):
            builds.append(Build(name, folder.resolve()))
            builds[-1].warm_up()
        made = measure(builds, turns)
    finally:
        for build in builds:
            build.end()
    before, after = (sum(steps) for steps in zip(*made))
    parts = [steps[1] / steps[0] for steps in made if steps[0]]
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, gpt2-nano, one thread, in turns of {TURN_SECONDS} s")
    print(f"before {before} steps, after {after}, {PARTS * turns * TURN_SECONDS:.0f} s each: {after / before:.3f}; "
          f"by parts {min(parts):.3f} to {max(parts):.3f}, median {statistics.median(parts):.3f}")
    losses = [build.losses() for build in builds]
    both = sorted(set(losses[0]) & set(losses[1]))
    apart = next((step for step in both if losses[0][step] != losses[1][step]), None)
    print(f"losses of {len(both)} steps: " + ("the same" if apart is None else f"step {apart}: {losses[0][apart]} before, {losses[1][apart]} after"))
    print("1 passed, 0 failed" if apart is None else "0 passed, 1 failed")
    sys.exit(apart is not None)


if __name__ == "__main__":
    main()
