"""The drawn arm of tests/arm: recorded by LeRobot's own Python, and moved by a policy that `trainer train` has made."""
import json
import os
import pathlib
import subprocess
import tempfile

from support.places import ROOT

FOLDER = ROOT / "tests/arm"
PYTHON_SECONDS_MAX = 900  # where it is missing, it is made
RECORD_SECONDS_MAX = 300
ACT_SECONDS_MAX = 900
# As `trainer prepare lerobot` and `trainer train` are told of it: both joints turn by so much; chunks of eight.
PREPARE_FLAGS = ("--delta-actions", "2", "--horizon", "8")
TRAIN_FLAGS = ("--cameras=top,wrist", "--delta-actions=2", "--no-augmentation", "--batch-size=32")
LEARNING_RATE = "2e-3"


def python():
    """The interpreter with LeRobot, NumPy and Pillow."""
    done = subprocess.run([ROOT / "tools/deps", "lerobot"], stdout=subprocess.PIPE, text=True, timeout=PYTHON_SECONDS_MAX, check=True)
    return pathlib.Path(done.stdout.strip())


def said(command, env, seconds_max):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **env), timeout=seconds_max, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[1]} ended with {done.returncode}: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def record(interpreter, out, episodes, with_frames=False):
    """`out`/set, a data set of LeRobot's, and `out`/tokenizer.model for its prompts; `out`/frames.npz, too, if it is wanted."""
    stubs = pathlib.Path(interpreter).parent.parent / "stubs"  # of NVIDIA's libraries, which torchcodec asks for
    with tempfile.TemporaryDirectory(prefix="tj-hub-") as hub:
        said([interpreter, FOLDER / "record.py", out, episodes, *(["frames"] if with_frames else [])],
             {"LD_LIBRARY_PATH": str(stubs), "HF_HOME": hub, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}, RECORD_SECONDS_MAX)
    for path in pathlib.Path(out).rglob("*"):  # LeRobot leaves its videos to its own user
        path.chmod(0o755 if path.is_dir() else 0o644)


def reached(interpreter, trainer, out, episodes):
    """Share of the episodes, of starts and targets that nobody recorded, in which the policy in `out` brings the tip onto the disc, and
    how far from it the tips end on average."""
    told = json.loads(said([interpreter, FOLDER / "reach.py", trainer, out, episodes], {}, ACT_SECONDS_MAX))
    return told["reached"], told["distance"]
