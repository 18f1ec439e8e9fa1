#!/usr/bin/python3
"""Where a step spends the CPU, ours and plain PyTorch's, by Linux's perf: how much of it is the matrix products of the library that both
have?

    tests/bench/trainer/cpu_profile.py           of GPT-2 nano: prints a table for docs/measurements.md; two minutes
    tests/bench/trainer/cpu_profile.py qwen      of the Qwen2.5-VL of the part `qwen`, beside transformers under FSDP2; three minutes

Each is sampled over few steps and over many, and the difference is divided by the steps between: no start and no end is in it.
A sample belongs to the first of GROUPS that its function fits. perf is Debian's linux-perf, which nothing else here needs.
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import contenders  # noqa: E402
import qwen_part  # noqa: E402
from contenders import Case  # noqa: E402

SAMPLES_PER_SECOND = 997
FEW, MANY = 40, 240  # steps
QWEN_FEW, QWEN_MANY = 2, 6
NANO = {"preset": "gpt2-nano", "layers": 4, "heads": 4, "width": 128, "vocabulary": 256, "context": 64, "lr": 3e-3}
CASES = (Case("batch 32", batch_size=32, **NANO), Case("batch 12", batch_size=12, **NANO))
GROUPS = (  # name, and what fits "shared object|function"
    ("matrix products (MKL)", r"\|mkl_|\|gemm|\|sgemm"),
    ("kernels of libtorch", r"libtorch_cpu\S*\|.*(at::native|at::vec|at::internal|cpublas|dnnl|Sleef)"),
    ("kernels of this trainer", r"trainer-engine\|.*(_avx|kernel)"),
    ("autograd, dispatch, memory", r"libtorch_cpu|libtorch_python|libc10|trainer-engine|libc\.so|libstdc"),
    ("waiting between threads", r"libgomp"),
    ("Python", r"python|\.cpython-"),
    ("kernel of the system", r"\[kernel|\[k\]|vmlinux"),
    ("other", r""),
)


def group_of(place):
    return next(name for name, fitting in GROUPS if re.search(fitting, place))


def samples(command, environment):
    """By group. The run's children are sampled, too."""
    data = contenders.WORK / "perf.data"
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_PER_SECOND), "-o", data, *command], check=True,
                   cwd=contenders.WORK, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = subprocess.run(["perf", "report", "-i", data, "--stdio", "-t", "|", "--sort", "dso,symbol", "-F", "sample,dso,symbol"],
                            check=True, capture_output=True, text=True, env=environment).stdout
    data.unlink()
    found = collections.Counter()
    for line in report.splitlines():
        if line.startswith("#") or line.count("|") < 2:
            continue
        count, dso, symbol = (part.strip() for part in line.split("|", 2))
        found[group_of(f"{dso}|{re.sub('^.[.k]. ', '', symbol)}")] += int(count)
    return found


def milliseconds_of_step(contender, case, ranks, python, few, many):
    """Of the CPU, by group."""
    seen = []
    for steps in (few, many):
        out = contenders.WORK / "out"
        shutil.rmtree(out, ignore_errors=True)
        command = contenders.command_of(contender, case, ranks, steps, python, contenders.WORK / "text.bin", out)
        seen.append(samples([str(word) for word in command], contenders.environment(ranks) | getattr(case, "environment", {})))
    scale = 1000 / SAMPLES_PER_SECOND / (many - few) / ranks
    return {name: max(0, seen[1][name] - seen[0][name]) * scale for name, _ in GROUPS}


def main():
    if shutil.which("perf") is None:
        sys.exit("tests/bench/trainer/cpu_profile.py: perf is not installed (Debian's linux-perf)")
    python = contenders.python_with_torch()
    contenders.WORK.mkdir(parents=True, exist_ok=True)
    if sys.argv[1:] == ["qwen"]:
        case = qwen_part.FULL.beside
        qwen_part.QwenPart(qwen_part.FULL, python, 0).make(case)
        columns, steps = [("ours", case, 1), ("ours", case, 2), ("transformers", case, 2)], (QWEN_FEW, QWEN_MANY)
    else:
        text = b"".join(path.read_bytes() for path in sorted((contenders.ROOT / "manifests/examples/text").iterdir()))
        (contenders.WORK / "text.bin").write_bytes(b"".join(bytes((byte, 0)) for byte in text))
        columns, steps = [(contender, case, ranks) for case in CASES for ranks in (1, 2) for contender in ("ours", "plain")], (FEW, MANY)
    found = [milliseconds_of_step(contender, case, ranks, python, *steps) for contender, case, ranks in columns]
    names = [f"{case.name}, {ranks} rank{'s' if ranks > 1 else ''}: {contender}" for contender, case, ranks in columns]
    print("| CPU ms of a step and rank | " + " | ".join(names) + " |\n|" + " --- |" * (len(names) + 1))
    for group, _ in GROUPS:
        print(f"| {group} | " + " | ".join(f"{each[group]:.1f}" for each in found) + " |")
    print("| all | " + " | ".join(f"{sum(each.values()):.1f}" for each in found) + " |")
    print("| matrix products of all | " + " | ".join(f"{each[GROUPS[0][0]] / sum(each.values()):.0%}" for each in found) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
