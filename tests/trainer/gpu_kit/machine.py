"""What this machine is: its torch, its card, and where the libraries lie that the kit takes from it."""
import dataclasses
import json
import os
import pathlib
import platform
import re
import subprocess

LOOK_SECONDS_MAX = 120  # the first import of torch reads gigabytes
TORCH_WANTED = "2.11."
LOOK = """
import json, pathlib, torch
lib = pathlib.Path(torch.__file__).parent / "lib"
found = {"torch": torch.__version__, "lib": str(lib), "gpu": None, "memory_gib": 0,
         "nvidia": sorted(str(path) for path in lib.parents[1].glob("nvidia/*/lib"))}
if torch.cuda.is_available():
    card = torch.cuda.get_device_properties(0)
    found.update(gpu=card.name, memory_gib=round(card.total_memory / 2**30, 1))
print(json.dumps(found))
"""
# The trainer's own list. Cards without bfloat16 have one value more.
PEAK = re.compile(r'^\{"([^"]+)", (\d+)\},$', re.MULTILINE)

HERE = pathlib.Path(__file__).resolve().parent
PEAK_FILES = [HERE / folder / "peak_flops.inc" for folder in ("", "../../../trainer/train")]  # in the kit, in the tree


@dataclasses.dataclass
class Machine:
    commit: str
    torch: str
    torch_lib: str
    nvidia_libs: list
    gpu: str = ""  # empty: none
    memory_gib: float = 0
    driver: str = ""
    cpu: str = ""
    cores: int = 0

    @property
    def peak_tflops(self):
        """10^12 FLOP/s of dense bfloat16; None where the card is not in the list."""
        peaks = PEAK.findall(next(path for path in PEAK_FILES if path.exists()).read_text())
        return next((int(peak) for name, peak in peaks if name in f"{self.gpu},"), None)

    def heading(self):
        card = f"{self.gpu} {self.memory_gib} GiB, driver {self.driver}" if self.gpu else f"no GPU ({self.cpu}), no driver"
        return f"commit {self.commit} | {card} | torch {self.torch} | {self.cores} cores"

    def facts(self):
        return {"gpu": self.gpu, "memory_gib": self.memory_gib, "driver": self.driver, "torch": self.torch,
                "cpu": self.cpu, "cores": self.cores, "kernel": platform.release()}

    def library_path(self, kit_lib):
        """torch's own first: its OpenMP must be the one that the engine takes. What the caller has (the driver's folder)
        stays, the kit's own last but it.
        """
        own = [self.torch_lib, *self.nvidia_libs, str(kit_lib)]
        return ":".join([*own, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


def memory_in_use_mib():
    """Of the first card, by all programs: a program of the kit is alone on it. 0: unknown."""
    try:
        asked = subprocess.run(["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                               capture_output=True, text=True, check=True, timeout=LOOK_SECONDS_MAX)
        return int(asked.stdout.split()[0])
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return 0


def driver():
    try:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                               capture_output=True, text=True, check=True, timeout=LOOK_SECONDS_MAX)
        return asked.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def cpu():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    return next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), "unknown CPU")


def look(root, python):
    done = subprocess.run([python, "-c", LOOK], capture_output=True, text=True, check=False, timeout=LOOK_SECONDS_MAX)
    if done.returncode != 0:
        raise SystemExit(f"gpu-kit/run: {python} can't import torch (--python names another one): "
                         + (done.stderr.strip().splitlines() or ["no cause given"])[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    if not found["torch"].startswith(TORCH_WANTED):
        raise SystemExit(f"gpu-kit/run: {python} has torch {found['torch']}; the programs are linked to {TORCH_WANTED}x")
    return Machine(commit=(root / "COMMIT").read_text().strip(), torch=found["torch"], torch_lib=found["lib"],
                   nvidia_libs=found["nvidia"], gpu=found["gpu"] or "", memory_gib=found["memory_gib"],
                   driver=driver() if found["gpu"] else "", cpu=cpu(), cores=len(os.sched_getaffinity(0)))
