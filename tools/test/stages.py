"""What `make test` runs, in order. A command runs in the root of the checkout, under bash -euo pipefail."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    what: str
    command: str
    needs: tuple = ()
    counts: str = ""  # "ctest": a JUnit file, "script": the closing line "N passed, N failed"; "": no tests
    beside: bool = False  # runs next to the following stages until one needs it
    minutes_max: int = 20


def build(preset, targets=""):
    return f"cmake --preset {preset} && cmake --build --preset {preset} {targets}".rstrip()


def ctest(preset, select=""):
    return f"ctest --preset {preset} --output-junit {{junit}} {select}".rstrip()


STAGES = [
    Stage("packages", "Debian packages", "tools/deps apt", minutes_max=15),
    Stage("cluster", "Kubernetes from Go modules", "nice tools/deps cluster", ("packages",), beside=True, minutes_max=45),
    Stage("libtorch", "libtorch", "tools/deps build", ("packages",), minutes_max=15),
    Stage("runner", "tests of this runner and of the lint", "tests/check/run", ("packages",), "script"),
    Stage("configure", "cmake, preset dev", "cmake --preset dev", ("libtorch",)),
    Stage("check", "format, lint, clang-tidy", "tools/check/all", ("configure",), "script", minutes_max=40),
    Stage("build", "everything, preset dev", build("dev"), ("configure",), minutes_max=40),
    Stage("unit", "unit, golden, command line and trainer tests", ctest("dev", "--label-exclude simulation"), ("build", "cluster"),
          "ctest"),
    Stage("simulation", "a million steps of the operator in simulated worlds, and planted bugs",
          ctest("dev", "--label-regex simulation --verbose"), ("build",), "ctest"),
    Stage("asan", "contract and operator under ASan and UBSan", build("asan") + " && " + ctest("asan", "--label-exclude long"),
          ("packages", "cluster"), "ctest", minutes_max=40),
    Stage("tsan", "the loop under TSan", build("tsan", "--target loop_test") + " && " + ctest("tsan", "--label-regex loop"), ("packages", "cluster"), "ctest",
          minutes_max=30),
    Stage("fuzz", "what reads others' bytes, fuzzed for a minute", build("fuzz") + " && tests/fuzz/run --short", ("packages",),
          "script", minutes_max=40),
    Stage("docs", "documents against the programs", "tests/docs/run", ("build",), "script"),
    Stage("crd", "the resource's rules on a real API server", "tests/crd/run", ("cluster",), "script"),
    Stage("faults", "the operator, killed and cut off, on a real API server", "tests/faults/run", ("build", "cluster"),
          "script"),
    Stage("chart", "the chart and what is rendered from it", "tests/chart/run", ("cluster",), "script"),
    Stage("bench", "the benchmark of the operator, a tenth of it", "tests/bench/operator/run --small", ("build", "cluster"),
          "script"),
    Stage("python-torch", "a Python with torch", "tools/deps python-torch", ("libtorch",), minutes_max=15),
    Stage("interop", "the trainer against PyTorch's own Python", "tests/interop/run", ("build", "python-torch"), "script"),
    Stage("events", "the trainer's event files, read by TensorBoard", "tests/interop/events.py", ("build",), "script"),
    Stage("bench-trainer", "the benchmark of the trainer, a little of it", "tests/bench/trainer/run --small",
          ("build", "python-torch"), "script"),
    Stage("soak", "30 jobs come and go; the operator may not grow", "tests/soak/run --short", ("build", "cluster"), "script"),
    Stage("e2e", "images, chart and jobs on a two-node Kubernetes", "tests/e2e/run", ("build", "cluster"), "script",
          minutes_max=40),
]
