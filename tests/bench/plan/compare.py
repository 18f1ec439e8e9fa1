"""`trainer plan` against runs of two ranks on two nodes (network namespaces) with a shaped cable between them.

What the planner is told: the link is measured by --probe between the same nodes; computing by its own passes, one core
each, at the same time. What it is held to: the mean step of the run, and the peak of rank 0's memory.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "trainer"), str(HERE.parents[1])]
import nodes  # noqa: E402
from support.places import ROOT  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TJ_BUILD", ROOT / "build/dev"))
ENGINE = BUILD / "trainer/trainer-engine"
LINKS = ("50mbit", "200mbit", "1gbit")
MODELS = {
    "narrow": ("--layers", 4, "--width", 128, "--heads", 4, "--seq-len", 64, "--vocabulary", 4096),
    "wide": ("--layers", 6, "--width", 256, "--heads", 8, "--seq-len", 128, "--vocabulary", 4096),
}
MICRO_BATCH = 8
PASSES = (1, 4)
RANKS = 2
STEPS = 24  # of which the first few warm up
WARM = 6
SHARE_MAX = 0.10
SECONDS_MAX = 300
TEXT = "the quick brown fox jumps over the lazy dog and runs away. " * 4000


class Bench:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-plan-"))
        self.nodes = nodes.Nodes()
        data = self.folder / "text"
        data.mkdir()
        (data / "a.txt").write_text(TEXT)
        self.data = data

    def close(self):
        self.nodes.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def shape(self, rate):
        for node in range(RANKS):
            self.nodes.run(node, f"tc qdisc replace dev eth0 root tbf rate {rate} burst 64kb latency 100ms")

    def ranks(self, command, *flags):
        """Both, each on its node and core; what they print."""
        running = []
        for rank in range(RANKS):
            environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "WORLD_SIZE": str(RANKS), "RANK": str(rank),
                           "MASTER_ADDR": nodes.ADDRESSES[0], "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1",
                           "TRAININGJOB_TERMINATION_LOG": str(self.folder / f"words-{rank}")}
            core = rank % os.cpu_count()
            words = [*self.nodes.within(rank), "taskset", "-c", core, ENGINE, command, *flags]
            if command == "train":
                words += ["--out", self.folder / f"out-{rank}"]
            running.append(subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True))
        outs = []
        try:
            for process in running:
                out, _ = process.communicate(timeout=SECONDS_MAX)
                outs.append(out)
                if process.returncode != 0:
                    raise SystemExit(f"{command} {flags}: exit code {process.returncode}\n{out}")
        finally:
            for process in running:
                process.kill()
                process.wait()
        return outs

    def run(self, model, passes):
        flags = (*MODELS[model], "--batch-size", MICRO_BATCH * passes * RANKS, "--accumulation", passes)
        said = self.ranks("plan", *flags, "--probe", "--json", "--pass-seconds", 6)[0]
        planned = json.loads(said[said.index("{\n"):])  # a line on how long it waited may come before
        for rank in range(RANKS):
            shutil.rmtree(self.folder / f"out-{rank}", ignore_errors=True)
        out = self.ranks("train", *flags, "--data", self.data, "--steps", STEPS, "--log-style", "trainer", "--tensorboard", "off")
        lines = [json.loads(line) for line in (self.folder / "out-0/metrics.jsonl").read_text().splitlines()]
        seconds = [line["seconds"] for line in lines if "loss" in line and "step" in line][WARM:]
        return planned, statistics.mean(seconds), out

    def peak_of_a_run(self, model):
        """One rank by itself: its peak, as the kernel counts it, and what was planned."""
        flags = (*MODELS[model], "--batch-size", MICRO_BATCH)
        planned = json.loads(subprocess.run([ENGINE, "plan", *map(str, flags), "--json"], check=True, capture_output=True,
                                            text=True).stdout)
        words = [ENGINE, "train", *flags, "--data", self.data, "--steps", STEPS, "--out", self.folder / f"alone-{model}",
                 "--tensorboard", "off"]
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"train: status {status}")
        return planned["memory"]["bytes"], used.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", nargs="*", default=LINKS)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--passes", nargs="*", type=int, default=PASSES)
    asked = parser.parse_args()
    bench, worst = Bench(), 0
    try:
        print("| link | model | passes | measured link | predicted step | measured step | off by |\n|---|---|---|---|---|---|---|")
        for link in asked.links:
            bench.shape(link)
            for model in asked.models:
                for passes in asked.passes:
                    planned, measured, _ = bench.run(model, passes)
                    predicted = planned["step"]["step_seconds"]
                    off = predicted / measured - 1
                    worst = max(worst, abs(off))
                    rate = planned["link"]["bytes_per_second"] / 1e6
                    print(f"| {link} | {model} | {passes} | {rate:.1f} MB/s | {predicted:.3f} s | {measured:.3f} s | "
                          f"{100 * off:+.1f} % |", flush=True)
        print("\n| model | planned memory | measured peak | off by |\n|---|---|---|---|")
        for model in asked.models:
            planned, measured = bench.peak_of_a_run(model)
            off = planned / measured - 1
            worst = max(worst, abs(off))
            print(f"| {model} | {planned / 1e6:.0f} MB | {measured / 1e6:.0f} MB | {100 * off:+.1f} % |", flush=True)
    finally:
        bench.close()
    return 1 if worst > SHARE_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
