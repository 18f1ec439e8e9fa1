"""Runs the kit's programs: each with a deadline, alone in its process group, its output kept as a log."""
import array
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import selectors
import signal
import shutil
import subprocess
import time

import machine as machines
import sizes

STEP = re.compile(r"^step (\d+)/\d+ \| loss (\S+)")
TAIL_LINES = 3
NOISE_TOKENS = 2_000_000
END_SECONDS = 5  # from SIGTERM to SIGKILL


class Failed(Exception):
    """A program did not end well, or in time."""


@dataclasses.dataclass
class Ended:
    lines: list  # (seconds since the start, text)
    card_mib: int = 0  # that the card's memory had in use, of a run that was ended at a step

    @property
    def text(self):
        return "\n".join(line for _, line in self.lines)

    def found(self, pattern):
        match = re.search(pattern, self.text, re.MULTILINE)
        return match[1] if match else ""

    def steps(self):
        """[(seconds at its end, loss)]"""
        matches = ((when, STEP.match(line)) for when, line in self.lines)
        return [(when, float(match[2])) for when, match in matches if match]

    def seconds_per_step(self, warmup):
        ends = [when for when, _ in self.steps()]
        return (ends[-1] - ends[warmup - 1]) / (len(ends) - warmup)


def end(process):
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            return


def lines_until_end(process, began, deadline):
    """(seconds since `began`, line) as they come. Raises TimeoutError at the deadline."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            now, chunk = time.monotonic() - began, os.read(process.stdout.fileno(), 1 << 16)
            *whole, rest = (rest + chunk).split(b"\n")
            yield from ((now, line.decode(errors="replace")) for line in whole)
            if not chunk:
                return


@dataclasses.dataclass(frozen=True)
class Pictures:
    frames: int = 48
    width: int = 48
    height: int = 48

    def pixels(self, frame):
        """RGB, row by row."""
        square = self.width // 4
        left = 2 * frame % (self.width - square)
        row_of = bytearray(3 * self.width)
        row_of[1::3] = bytes(2 * column % 256 for column in range(self.width))
        row_of[2::3] = bytes([(90 + frame) % 256]) * self.width
        made = bytearray()
        for row in range(self.height):
            row_of[0::3] = bytes([3 * row % 256]) * self.width
            pixels = bytearray(row_of)
            if (row - frame) % self.height < square:
                pixels[3 * left:3 * (left + square)] = bytes((230, 200, 40)) * square
            made += pixels
        return bytes(made)


@dataclasses.dataclass
class Kit:
    root: pathlib.Path
    out: pathlib.Path
    python: str
    machine: machines.Machine
    size: sizes.Size
    ends: float  # time.monotonic(), of all parts
    part_ends: float = 0.0
    runs: int = 0
    kernels: dict = dataclasses.field(default_factory=dict)  # by title

    @property
    def has_gpu(self):
        return bool(self.machine.gpu)

    @property
    def device(self):
        return "cuda" if self.has_gpu else "cpu"

    def program(self, name):
        return self.root / "bin" / name

    def data(self, name):
        return self.root / "data" / name

    def number_of_samples(self):
        """A file that says of how many samples made-up data is."""
        path = self.out / "samples.txt"
        path.write_text("4096")
        return path

    def scenes(self):
        """A file that says which rooms a Qwen2.5-VL sees."""
        path = self.out / "scenes.json"
        path.write_text(json.dumps({"count": 4096, "task": "rooms"}))
        return path

    def pictures(self, size=Pictures()):
        """A folder of PPM pictures, which are read without FFmpeg's libraries: a bright square that moves over a slope."""
        folder = self.out / f"pictures-{size.frames}x{size.width}x{size.height}"
        if not folder.exists():
            folder.mkdir()
            for frame in range(size.frames):
                head = b"P6 %d %d 255\n" % (size.width, size.height)
                (folder / f"{frame:04}.ppm").write_bytes(head + size.pixels(frame))
        return folder

    def environment(self, more):
        """One card, whatever there is; nothing else of the caller's that could change a run."""
        kept = ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", "VIRTUAL_ENV")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        env["LD_LIBRARY_PATH"] = self.machine.library_path(self.root / "lib")
        env["TRAININGJOB_TERMINATION_LOG"] = str(self.out / "last-words")
        env["PYTHONUNBUFFERED"] = "1"
        if self.has_gpu:
            env["CUDA_VISIBLE_DEVICES"] = "0"
        env.update(more)
        return {name: value for name, value in env.items() if value is not None}

    def run(self, name, command, environment=None, code=0, until_step=None):
        """`name` is the log's. With `until_step` it is ended after that step. Raises Failed with the last lines."""
        self.runs += 1
        log = self.out / "logs" / f"{self.runs:02}-{name}.log"
        lines, card_mib, began = [], 0, time.monotonic()
        ended = code
        process = subprocess.Popen([str(word) for word in command], env=self.environment(environment or {}), cwd=self.out,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            for when, line in lines_until_end(process, began, self.part_ends):
                lines.append((when, line))
                if until_step and (found := STEP.match(line)) and int(found[1]) == until_step:
                    card_mib = machines.memory_in_use_mib() if self.has_gpu else 0
                    break
            else:
                ended = process.wait(END_SECONDS)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise Failed(f"{name} did not end in the {time.monotonic() - began:.0f} s that were left for it"
                         + tail_of(lines)) from None
        finally:
            end(process)
            process.stdout.close()
            log.write_text("".join(f"{when:8.3f} {line}\n" for when, line in lines))
        if ended != code:
            raise Failed(f"{name}: exit code {ended}{tail_of(lines)}")
        return Ended(lines, card_mib)

    def folder(self, name):
        """Empty, for the output of one training."""
        folder = self.out / "trainings" / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def train(self, name, *flags, ranks=1, device=None, out=None, environment=None, program="trainer", **ends):
        """Trains with the kit's trainer, or with that of another `program`; `device` is its own word."""
        command = [self.program(program), "train", "--device", device or self.device, "--log-dir", "off", "--tensorboard",
                   "off", "--out", out or self.folder(name), *flags]
        if ranks > 1:
            command = [self.program(program), "launch", "--nproc", ranks, "--", *command]
        return self.run(name, command, environment, **ends)

    def clear(self):
        """A checkpoint of 124M parameters has 1.5 GB."""
        shutil.rmtree(self.out / "trainings", ignore_errors=True)

    def noise(self, vocabulary):
        """A file of random tokens, for what only takes time."""
        path = self.out / f"noise-{vocabulary}.bin"
        if not path.exists():
            dice = random.Random(1)
            count = NOISE_TOKENS // (20 if self.size.is_small else 1)
            path.write_bytes(array.array("H", dice.choices(range(vocabulary), k=count)).tobytes())
        return path


def tail_of(lines):
    said = [line for _, line in lines if line.strip()][-TAIL_LINES:]
    return "".join(f"; {line}" for line in said)


def events(folder):
    """The lines of a training's metrics.jsonl."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def losses(folder):
    return {line["step"]: line["loss"] for line in events(folder) if "loss" in line}


def differences(one, other):
    """The relative differences of two runs' losses, which must be of the same steps."""
    if one.keys() != other.keys() or not one:
        raise Failed(f"losses of other steps: {sorted(one)} and {sorted(other)}")
    return [abs(one[step] - other[step]) / max(abs(one[step]), 1e-9) for step in one]


def farthest(one, other):
    return max(differences(one, other))
