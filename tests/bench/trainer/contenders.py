"""Who trains in the benchmark, how each is started, and when each finished which step, seen from outside."""
import contextlib
import dataclasses
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests"))
from support import processes, robot_arm  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WORK = ROOT / "build/bench/trainer"
TEXT = ROOT / "manifests/examples/text"
TRAINER = pathlib.Path(os.environ.get("TJ_BUILD") or ROOT / "build/dev").resolve() / "trainer/trainer"
STEP_SECONDS_MIN = 1e-5  # of lines that a late reader gets all at once
STEP = re.compile(r"step (\d+)/\d+ \| loss ([0-9.einf+-]+)")
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
TAIL_LINES = 15


@dataclasses.dataclass(frozen=True)
class Case:
    """One piece of work, the same for all contenders."""
    name: str
    preset: str
    layers: int
    heads: int
    width: int
    vocabulary: int
    context: int
    batch_size: int  # over all ranks
    lr: float

    @property
    def tokens_per_step(self):
        return self.batch_size * self.context


@dataclasses.dataclass(frozen=True)
class ClipCase:
    """The same of TAEHV."""
    name: str
    preset: str
    frames: int
    side: int  # pixels
    batch_size: int  # clips
    lr: float


@dataclasses.dataclass(frozen=True)
class PolicyCase:
    """The same of pi0: the rest of its shape is that of pi0_loop.py."""
    name: str
    preset: str
    side: int  # pixels of a picture; two cameras
    batch_size: int
    lr: float


@dataclasses.dataclass
class Seen:
    """What one run did: seconds from its start to the end of each step, the losses, the peak of resident memory of its
    largest process before the last step (0: it had a single one), and the seconds of all cores up to each step's end.
    """
    ends: list
    losses: list
    peak_mib: int = 0
    cpu_seconds: list = dataclasses.field(default_factory=list)

    def seconds_per_step(self, warmup):
        return max(STEP_SECONDS_MIN, per_step(self.ends, warmup))

    def cpu_seconds_per_step(self, warmup):
        return per_step(self.cpu_seconds, warmup)


def per_step(ends, warmup):
    return (ends[-1] - ends[warmup - 1]) / (len(ends) - warmup)


def clip_command(contender, case, steps, python, data, out, more=()):
    """`data` has the videos for us and their clips for PyTorch; the initial weights are one file."""
    if contender == "ours":
        return [TRAINER, "train", "--model", case.preset, "--data", data.videos, "--clip-frames", case.frames, "--clip-size",
                case.side, "--init-from", data.weights, "--batch-size", case.batch_size, "--steps", steps, "--lr", case.lr,
                "--out", out, *more]
    kind = ["--channels-last"] if contender == "channels-last" else []
    return [python, HERE / "taehv_loop.py", "--model", case.preset, "--weights", data.weights, "--data", data.clips,
            "--frames", case.frames, "--side", case.side, "--batch-size", case.batch_size, "--steps", steps, "--lr", case.lr,
            *kind, *more]


def policy_command(contender, case, steps, python, data, out, more=()):
    """`data` is of tests/arm/record.py."""
    if contender == "ours":
        return [TRAINER, "train", "--model", case.preset, "--data", data / "set", "--tokenizer", data / "tokenizer.model", "--cameras",
                "base_0_rgb,wrist_0_rgb", "--camera-map", "base_0_rgb=observation.images.top,wrist_0_rgb=observation.images.wrist",
                "--no-augmentation", "--image-size", case.side, "--prompt-tokens", 16, "--horizon", 8, "--action-dim", 8, "--vocabulary", 1024,
                "--batch-size", case.batch_size, "--steps", steps, "--lr", case.lr, "--out", out, *more]
    return [python, HERE / "pi0_loop.py", "--data", data, "--side", case.side, "--batch-size", case.batch_size, "--steps", steps, "--lr",
            case.lr, *more]


def command_of(contender, case, ranks, steps, python, data, out, more=()):
    if hasattr(case, "command"):
        return case.command(contender, ranks, steps, python, out, more)
    if isinstance(case, ClipCase):
        return clip_command(contender, case, steps, python, data, out, more)
    if isinstance(case, PolicyCase):
        return policy_command(contender, case, steps, python, data, out, more)
    if contender == "ours":
        train = [TRAINER, "train", "--model", case.preset, "--data", data, "--vocabulary", case.vocabulary,
                 "--seq-len", case.context, "--batch-size", case.batch_size, "--steps", steps, "--lr", case.lr,
                 "--out", out, *more]
        return train if ranks == 1 else [TRAINER, "launch", "--nproc", ranks, "--", *train]
    loop = [HERE / "torch_loop.py", "--model", contender, "--data", data, "--layers", case.layers, "--heads",
            case.heads, "--width", case.width, "--context", case.context, "--vocabulary", case.vocabulary,
            "--batch-size", case.batch_size, "--steps", steps, "--lr", case.lr, *more]
    if ranks == 1:
        return [python, *loop]
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, *loop]


def environment(ranks):
    """Both sides get the same threads: the cores shared out over the ranks."""
    kept = ("PATH", "HOME", "TMPDIR", "LANG")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // ranks))
    env["TRANSFORMERS_VERBOSITY"] = "error"
    env["HF_HUB_OFFLINE"] = "1"
    env["TOKENIZERS_PARALLELISM"] = "false"
    env["PYTHONPATH"] = str(ROOT / "tests/interop")  # its TAEHV
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["TRAININGJOB_TERMINATION_LOG"] = str(WORK / "last-words")
    return env


def core_of(rank):
    """Each rank has one; where there are fewer they share them."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[rank % len(usable)]


def end(process):
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sig)
            process.wait(10)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def lines_of(process, deadline):
    """(seconds of the clock, line) as they come, until the output ends. Raises TimeoutError at the deadline."""
    descriptor, rest = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0, deadline - time.monotonic())):
                raise TimeoutError("no end in time")
            now, chunk = time.monotonic(), os.read(descriptor, 1 << 16)
            if not chunk:
                return
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield now, line.decode(errors="replace")


def peak_mib(pid):
    """Of this process and those below it the one with the most."""
    peaks_kib = [0]
    for each in processes.processes_from(pid):
        with contextlib.suppress(OSError):
            peaks_kib += map(int, PEAK.findall(pathlib.Path(f"/proc/{each}/status").read_text()))
    return round(max(peaks_kib) / 1024)


def cpu_seconds(pid):
    """Of this process and those below it, in user and system mode, that have not ended."""
    seconds = 0
    for each in processes.processes_from(pid):
        with contextlib.suppress(OSError):
            seconds += processes.cpu_seconds(each)
    return seconds


def run(contender, case, ranks, steps, python, data, more=(), seconds_max=300):
    """Trains `steps` steps from scratch. Raises RuntimeError with the last lines when it fails."""
    out = WORK / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [str(word) for word in command_of(contender, case, ranks, steps, python, data, out, more)]
    seen, tail = Seen([], []), []
    began = time.monotonic()
    env = environment(ranks) | getattr(case, "environment", {})
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=WORK, env=env,
                          start_new_session=True) as process:
        try:
            for now, line in lines_of(process, began + seconds_max):
                tail = [*tail[1 - TAIL_LINES:], line]
                found = STEP.search(line)
                if found:
                    seen.ends.append(now - began)
                    seen.losses.append(float(found[2]))
                    seen.cpu_seconds.append(cpu_seconds(process.pid))
                    if len(seen.ends) == steps - 1:  # ours saves after the last one
                        seen.peak_mib = peak_mib(process.pid)
            code = process.wait(30)
        except BaseException:
            end(process)
            raise
    if code != 0 or len(seen.ends) != steps:
        raise RuntimeError(f"{contender}, {case.name}, {ranks} ranks: exit code {code} after {len(seen.ends)} of {steps} "
                           "steps; its last lines:\n" + "\n".join(tail))
    return seen


def run_to_end(command, seconds_max=300):
    """(what it printed, peak of its resident memory in MiB). Raises RuntimeError when it fails."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, cwd=WORK, env=environment(1), start_new_session=True) as process:
        try:
            said = [line for _, line in lines_of(process, time.monotonic() + seconds_max)]
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            end(process)
            raise
    if process.returncode != 0:
        raise RuntimeError(f"{command[1]}: exit code {process.returncode}; its last lines:\n" + "\n".join(said[-TAIL_LINES:]))
    return "\n".join(said), round(usage.ru_maxrss / 1024)


def python_with_torch(of="python-torch"):
    """Made on the way where it is missing."""
    done = subprocess.run([ROOT / "tools/deps", of], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"tests/bench/trainer/run: tools/deps {of} failed")
    return done.stdout.strip()


def record_arm(python, episodes):
    """The data set of tests/arm, by LeRobot."""
    out = WORK / "arm"
    shutil.rmtree(out, ignore_errors=True)
    robot_arm.record(python, out, episodes, with_frames=True)
    return out
