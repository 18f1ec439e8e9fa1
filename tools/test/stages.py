"""What `make test` runs. A command runs in the root of the checkout, under bash -euo pipefail.

Stages of one lane run one after another, in this order; lanes run beside each other (schedule.py). The lane `build` keeps
both cores busy; `cluster` is the Kubernetes of two nodes; stages on an API server alone (`plane`) mostly wait for something,
and a few others fill that time. A little of each benchmark runs beside them: it shows that the benchmark works, and its
figures are no one's. A lane has no priority: the clusters' programs are compiled first because the longest stages wait for
them, and `nice` would not tell two sessions apart.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    what: str
    command: str
    needs: tuple = ()
    counts: str = ""  # "ctest": a JUnit file, "script": the closing line "N passed, N failed"; "": no tests
    lane: str = "build"
    after: tuple = ()  # not needed, but in its way
    warm_seconds: int = 60  # its budget (budget.py) where the caches have what it makes
    cold_seconds: int = 0  # and where it makes anything; 0: the same


def build(preset, targets=""):
    return f"cmake --preset {preset} && cmake --build --preset {preset} {targets}".rstrip()


def ctest(preset, select=""):
    # What a passing program printed is kept whole: results.py counts the tests in it.
    return f"ctest --preset {preset} --output-junit {{junit}} --test-output-size-passed 1048576 {select}".rstrip()


WAITING = '--parallel "$(($(nproc) + 2))"'  # half of these tests' time is waiting


STAGES = [
    Stage("packages", "Debian packages", "tools/deps apt", cold_seconds=600),
    Stage("cluster", "Kubernetes from Go modules", "tools/deps cluster", ("packages",), lane="cluster", cold_seconds=1800),
    Stage("libtorch", "libtorch", "tools/deps build", ("packages",), cold_seconds=600),
    Stage("python-torch", "a Python with torch", "tools/deps python-torch", ("libtorch",), lane="fetch", cold_seconds=600),
    Stage("runner", "tests of this runner and of the lint", "tests/check/run", ("packages",), "script"),
    Stage("configure", "cmake, preset dev", "cmake --preset dev", ("libtorch",)),
    Stage("build", "everything, preset dev", build("dev"), ("configure",), warm_seconds=360, cold_seconds=2400),
    Stage("check", "format, lint, clang-tidy", "tools/check/all", ("configure",), "script", cold_seconds=1800),
    Stage("unit", "unit, golden, command line and trainer tests",
          ctest("dev", f"--label-exclude 'simulation|apiserver' {WAITING}"),
          ("build",), "ctest", warm_seconds=2400),
    Stage("simulation", "a million steps of the operator in simulated worlds, and planted bugs",
          ctest("dev", "--label-regex simulation --verbose"), ("build",), "ctest", "plane", warm_seconds=180),
    Stage("asan", "contract and operator under ASan and UBSan",
          build("asan") + " && " + ctest("asan", f"--label-exclude 'long|apiserver' {WAITING}"), ("packages",), "ctest",
          warm_seconds=720, cold_seconds=1800),
    Stage("tsan", "the loop under TSan", build("tsan", "--target loop_test") + " && " + ctest("tsan", "--label-regex loop"),
          ("packages",), "ctest", "plane", ("build",), warm_seconds=420, cold_seconds=720),
    Stage("fuzz", "what reads others' bytes, fuzzed for half a minute", build("asan", "--target fuzzers") + " && tests/fuzz/run --short",
          ("packages",), "script", warm_seconds=240, cold_seconds=900),
    Stage("docs", "documents against the programs", "tests/docs/run", ("build",), "script", "scripts", warm_seconds=660),
    Stage("interop", "the trainer against PyTorch's own Python", "tests/interop/run", ("build", "python-torch"), "script", "scripts",
          warm_seconds=300),
    Stage("recipes", "the recipes, with the packages of PyPI", "tests/recipes/run", ("build", "python-torch"), "script", "scripts",
          warm_seconds=420, cold_seconds=540),
    Stage("lerobot", "data sets by LeRobot's own Python, and prompts", "tests/lerobot/run", ("build", "python-torch"), "script", "scripts",
          cold_seconds=360, warm_seconds=300),
    Stage("arm", "a drawn arm, its expert, and a policy that has learned nothing", "tests/arm/run", ("build", "python-torch"), "script",
          "scripts", warm_seconds=240),
    Stage("events", "the trainer's event files, read by TensorBoard", "tests/interop/events.py", ("build",), "script", "scripts",
          cold_seconds=300),

    Stage("gpu-kit", "the kit for a machine with a GPU: packed, and what a CPU can show of it", "tests/trainer/gpu_kit/packed",
          ("build", "python-torch"), "script", "scripts", warm_seconds=240),

    Stage("chart", "the chart and what is rendered from it", "tests/chart/run", ("cluster",), "script", "plane"),
    Stage("chart-server", "the chart, its rights and its alerts on a real API server", "tests/chart/on_server", ("build", "cluster"),
          "script", "plane", warm_seconds=180),
    Stage("crd", "the resource's rules on a real API server", "tests/crd/run", ("build", "cluster"), "script", "plane",
          warm_seconds=120),
    Stage("apiserver", "the client on a real API server", ctest("dev", "--label-regex apiserver"), ("build", "cluster"), "ctest",
          "plane", warm_seconds=120),
    Stage("page", "the page of tj ui in a headless Chromium, and over an API server", "tests/page/run", ("build", "cluster"),
          "script", "plane", warm_seconds=180, cold_seconds=360),
    Stage("images", "the images, of the programs built already", "tools/images", ("build",), lane="cluster", warm_seconds=240,
          cold_seconds=900),
    Stage("packages-made", "make install, tarballs, Debian packages and images, used on a bare Debian", "tests/packages/run", ("images",),
          "script", "scripts", warm_seconds=360, cold_seconds=480),
    Stage("faults", "the operator, killed and cut off, on a real API server", "tests/faults/run", ("build", "cluster"), "script",
          "plane", warm_seconds=240),
    Stage("launchers", "tj slurm on a real SLURM, and the forms by hand", "tests/launchers/run", ("build",), "script", "plane",
          warm_seconds=360),
    Stage("soak", "30 jobs come and go; the operator may not grow", "tests/soak/run --short", ("build", "cluster"), "script",
          "plane", warm_seconds=420),
    Stage("e2e", "images, chart and jobs on a two-node Kubernetes", "tests/e2e/run", ("images", "cluster", "python-torch"), "script", "cluster",
          warm_seconds=2400),
    Stage("apiserver-asan", "the client on a real API server, under ASan", ctest("asan", "--label-regex apiserver"),
          ("asan", "cluster"), "ctest", "plane", warm_seconds=120),

    Stage("bench", "the benchmark of the operator, a tenth of it", "tests/bench/operator/run --small", ("build", "cluster"),
          "script", "plane", warm_seconds=180),
    Stage("bench-trainer", "the benchmark of the trainer, a little of it", "tests/bench/trainer/run --small",
          ("build", "python-torch"), "script", "scripts", warm_seconds=480),
    Stage("bench-logs", "the benchmark of tj logs, a little of it", "tests/bench/logs/run --small", ("build",), "script",
          "scripts", warm_seconds=120),
    Stage("bench-tokenizer", "the benchmark of the tokenizer, a little of it", "tests/bench/tokenizer/run --small",
          ("build", "python-torch"), "script", "scripts"),
    Stage("bench-lerobot", "the benchmark of robots' data, a little of it", "tests/bench/lerobot/run --small",
          ("build", "python-torch"), "script", "scripts"),
    Stage("bench-slow-network", "the benchmark of a slow network, a little of it", "tests/bench/slow_network/run --small",
          ("build", "python-torch"), "script", "scripts", warm_seconds=120),
]
