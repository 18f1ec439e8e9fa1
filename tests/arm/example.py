"""The data set of manifests/examples/pi0-nano.yaml: a few episodes, with the statistics of `trainer prepare lerobot`.

usage: example.py FOLDER

Makes FOLDER/reach anew, and FOLDER/tokenizer.model.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support import robot_arm  # noqa: E402
from support.places import BUILD, ROOT  # noqa: E402

EPISODES = 16
PLACE = ROOT / "manifests/examples/robot"
INDEX = "videos/videos.index.jsonl"  # knows a video by its time of change, which a checkout does not keep
PREPARE_SECONDS_MAX = 60


def main():
    folder = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="tj-example-") as work:
        robot_arm.record(sys.executable, work, EPISODES)
        made = pathlib.Path(work, "set").rename(pathlib.Path(work, "reach"))
        shutil.rmtree(made / "images")  # LeRobot's, empty
        subprocess.run([BUILD / "trainer/trainer", "prepare", "lerobot", "--input", made, *robot_arm.PREPARE_FLAGS], check=True,
                       timeout=PREPARE_SECONDS_MAX, env=dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull))
        (made / INDEX).unlink()
        shutil.rmtree(folder / "reach", ignore_errors=True)
        shutil.copytree(made, folder / "reach")
        shutil.copy(pathlib.Path(work, "tokenizer.model"), folder)


if __name__ == "__main__":
    main()
