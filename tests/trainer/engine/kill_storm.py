#!/usr/bin/env python3
"""Kills a run of two ranks again and again (kill -9), half of the time while it saves, and resumes it.

At the end weights, moments, the manifest and every loss that was ever written must equal those of a
run that nobody disturbed, bit for bit.

  TJ_ENGINE=build/dev/trainer/trainer-engine tests/trainer/engine/kill_storm.py --kills 50
"""

import argparse
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from engine import ENGINE, TEXT, free_port

RANKS = 2
SAVE_EVERY = 5
STEPS_BETWEEN_KILLS_MAX = 14
SAVES_BETWEEN_KILLS_MAX = 3
STEPS_PER_KILL = 17  # room: a kill may come a little late, and the run may not end before the last one
CYCLE_SECONDS_MAX = 240  # until a run reaches the place where it is killed; a machine may be busy
MODEL = ("--layers", 2, "--width", 64, "--heads", 2, "--seq-len", 64, "--batch-size", 16, "--log-style", "trainer")


class Run:
    """One attempt of all ranks."""

    def __init__(self, folder, out, flags):
        self.out = out
        port = free_port()
        self.errors = [open(folder / f"stderr-{rank}", "w+", encoding="utf-8") for rank in range(RANKS)]
        self.text = b""
        self.ranks = []
        for rank in range(RANKS):
            environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
            environment.update(
                OMP_NUM_THREADS="1",
                WORLD_SIZE=str(RANKS),
                RANK=str(rank),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
                TRAININGJOB_TERMINATION_LOG=str(folder / f"words-{rank}"),
            )
            command = [ENGINE, "train", "--data", str(folder / "text"), "--out", str(out), "--resume", *map(str, flags)]
            said = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            self.ranks.append(subprocess.Popen(command, env=environment, stdout=said, stderr=self.errors[rank]))
        self.deadline = time.monotonic() + CYCLE_SECONDS_MAX

    def listen(self, seconds):
        """Takes in what rank 0 says within so long; False once it has ended."""
        pipe = self.ranks[0].stdout
        if not select.select([pipe], [], [], seconds)[0]:
            return True
        chunk = os.read(pipe.fileno(), 65536)
        self.text += chunk
        return bool(chunk)

    def until(self, condition):
        """Listens until the condition holds; fails when the run ends before, or the deadline passes."""
        while not condition():
            if not self.listen(0.001):
                raise SystemExit(f"the run ended before it was killed:\n{self.text.decode()}\n{self.stderr()}")
            if time.monotonic() > self.deadline:
                raise SystemExit(f"no progress within {CYCLE_SECONDS_MAX} s:\n{self.text.decode()}\n{self.stderr()}")

    def wait(self, seconds):
        """A moment of the run's life, so that a kill may come anywhere in a save or a step."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.listen(max(0, end - time.monotonic())):
            pass

    def step(self):
        steps = re.findall(rb"(?m)^step (\d+)/", self.text)
        return int(steps[-1]) if steps else 0

    def began_at(self):
        found = re.search(rb"(?m)^resumed from .*: (\d+) steps done", self.text)
        return int(found.group(1)) if found else 0

    def is_training(self):
        return self.step() > 0

    def drafts(self):
        return {name for name in os.listdir(self.out) if name.startswith(".draft-step-")}

    def kill(self):
        for process in self.ranks:
            process.send_signal(signal.SIGKILL)
        for process in self.ranks:
            process.wait()
        while self.listen(0):
            pass

    def finish(self):
        while self.listen(1):
            if time.monotonic() > self.deadline:
                self.kill()
        codes = [process.wait() for process in self.ranks]
        if any(codes):
            raise SystemExit(f"exit codes {codes}:\n{self.text.decode()}\n{self.stderr()}")

    def stderr(self):
        return "\n".join((pathlib.Path(file.name)).read_text() for file in self.errors)

    def close(self):
        self.ranks[0].stdout.close()
        for file in self.errors:
            file.close()


def kill_at_a_step(run, choice):
    """At a random moment of a random step after the resume."""
    run.until(run.is_training)
    target = run.began_at() + choice.randint(1, STEPS_BETWEEN_KILLS_MAX)
    run.until(lambda: run.step() >= target)
    run.wait(choice.uniform(0, 0.02))


def kill_in_a_save(run, choice):
    """A random moment after the first, second or third draft was seen."""
    run.until(run.is_training)
    target = run.began_at() + SAVE_EVERY * choice.randint(1, SAVES_BETWEEN_KILLS_MAX)
    run.until(lambda: any(int(name.split("-")[2]) >= target for name in run.drafts()))
    run.wait(choice.choice((0, choice.uniform(0, 0.005), choice.uniform(0, 0.03))))


def storm(folder, kills, seed):
    choice = random.Random(seed)
    steps = 40 + kills * STEPS_PER_KILL
    flags = (*MODEL, "--steps", steps, "--save-every", SAVE_EVERY, "--keep", 2, "--log-every", 1)
    (folder / "text").mkdir()
    (folder / "text" / "a.txt").write_text(TEXT)
    calm, stormy = folder / "calm", folder / "stormy"
    undisturbed = Run(folder, calm, flags)
    undisturbed.finish()
    undisturbed.close()
    stormy.mkdir()
    left_drafts = 0
    for number in range(kills):
        run = Run(folder, stormy, flags)
        aim = kill_in_a_save if number % 2 else kill_at_a_step
        aim(run, choice)
        run.kill()
        left = run.drafts()
        left_drafts += bool(left)
        print(
            f"kill {number + 1}: {aim.__name__}, began at step {run.began_at()}, reached {run.step()}"
            + (f", in the middle of {sorted(left)[0]}" if left else ""),
            flush=True,
        )
        if b"not usable" in run.text:
            raise SystemExit("a kill has left a damaged checkpoint:\n" + run.text.decode())
        run.close()
    last = Run(folder, stormy, flags)
    last.finish()
    last.close()
    return calm, stormy, steps, left_drafts


def metrics(out):
    lines = [json.loads(line) for line in whole_lines(out / "metrics.jsonl")]
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


def whole_lines(path):
    """A kill may cut a line; the next one begins where it ended."""
    for line in path.read_text().splitlines():
        while line:
            try:
                json.loads(line)
                yield line
                break
            except json.JSONDecodeError:
                line = line[line.find("{", 1) :] if "{" in line[1:] else ""


def compare(calm, stormy, steps):
    name = f"step-{steps:06}"
    files = sorted(path.name for path in (calm / name).iterdir())
    assert files == sorted(path.name for path in (stormy / name).iterdir()), "other files"
    for file in files:
        assert (calm / name / file).read_bytes() == (stormy / name / file).read_bytes(), f"{file} differs"
    losses = dict(metrics(calm))
    assert len(losses) == steps
    repeated = metrics(stormy)
    assert {step for step, _ in repeated} == set(losses), "a step is missing"
    for step, loss in repeated:
        assert loss == losses[step], f"step {step}: {loss} instead of {losses[step]}"
    return len(files), len(repeated)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-storm-"))
    begun = time.monotonic()
    try:
        calm, stormy, steps, left_drafts = storm(folder, options.kills, options.seed)
        files, lines = compare(calm, stormy, steps)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{options.kills} kills (seed {options.seed}), {left_drafts} of them in the middle of a save, "
        f"{time.monotonic() - begun:.0f} s: {steps} steps, {files} files of the last checkpoint and "
        f"{lines} losses are those of the undisturbed run, bit for bit"
    )
    # Kills aimed at a save may come just after it; that none hits would mean that nothing was tested.
    if options.kills > 1 and left_drafts == 0:
        sys.exit("no kill hit a save")


if __name__ == "__main__":
    main()
