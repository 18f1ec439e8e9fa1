"""Data sets by LeRobot's own Python, and what its own reader reads of them.

usage: lerobot_sets.py OUT CODEC [large]

Makes OUT/set by the LeRobot that is imported (0.3.3 writes v2.1, 0.4.4 v3.0) with videos of CODEC, and OUT/read.npz: every sample by
LeRobotDataset with a chunk of HORIZON actions. "large": two cameras of 640 x 480, 120 frames, and nothing is read. With the codec "image" pictures lie in Parquet, and nothing is read. "speed FOLDER COUNT"
prints samples a second of its reader instead.
"""
import pathlib
import sys
import time

import numpy as np
import torch
from lerobot.datasets.lerobot_dataset import CODEBASE_VERSION, LeRobotDataset

FPS = 10
HORIZON = 6
LENGTHS = (7, 12, 3, 9, 16)
TASKS = ("push_the red cube", "open the drawer ")
STATE, ACTION = 5, 6
CAMERAS = {"observation.images.top": (64, 96), "observation.images.wrist": (80, 64)}


def features(codec):
    kind = "image" if codec == "image" else "video"
    cameras = {name: {"dtype": kind, "shape": (*size, 3), "names": ["height", "width", "channels"]} for name, size in CAMERAS.items()}
    numbers = {"observation.state": STATE, "action": ACTION}
    return cameras | {name: {"dtype": "float32", "shape": (width,), "names": [f"joint_{i}" for i in range(width)]} for name, width in numbers.items()}


def picture(size, step, random):
    """Smooth, so that a codec keeps it, and another one in each frame."""
    rows, columns = np.mgrid[0:size[0], 0:size[1]]
    waves = [np.sin(rows / (9 + 2 * channel) + step * 0.7) + np.cos(columns / 11 + step * 0.4 + channel) for channel in range(3)]
    return (np.stack(waves, -1) * 50 + 120 + random.integers(0, 6)).clip(0, 255).astype(np.uint8)


def write(folder, codec, lengths):
    random = np.random.default_rng(5)
    options = {"vcodec": codec} if "vcodec" in LeRobotDataset.create.__code__.co_varnames and codec != "image" else {}
    data = LeRobotDataset.create("test/reach", FPS, features(codec), root=folder, use_videos=codec != "image", **options)
    step = 0
    for episode, length in enumerate(lengths):
        for _ in range(length):
            step += 1
            frame = {name: picture(size, step, random) for name, size in CAMERAS.items()}
            frame["observation.state"] = random.normal(size=STATE).astype(np.float32) * 3
            frame["action"] = random.normal(size=ACTION).astype(np.float32) + 1
            task = TASKS[episode % len(TASKS)]
            if CODEBASE_VERSION == "v2.1":
                data.add_frame(frame, task)
            else:
                data.add_frame(frame | {"task": task})
        data.save_episode()
    if hasattr(data, "finalize"):
        data.finalize()


def reader(folder):
    return LeRobotDataset("test/reach", root=folder, delta_timestamps={"action": [step / FPS for step in range(HORIZON)]})


def read(folder):
    data = reader(folder)
    items = [data[index] for index in range(len(data))]
    stacked = {name: torch.stack([item[name] for item in items]).numpy() for name in ("observation.state", "action", "action_is_pad", "timestamp")}
    for name in CAMERAS:
        stacked[name] = np.round(torch.stack([item[name] for item in items]).numpy() * 255).astype(np.uint8)
    stacked["episode"] = np.array([int(item["episode_index"]) for item in items])
    stacked["task"] = np.array([item["task"] for item in items])
    return stacked


def speed(folder, count):
    torch.set_num_threads(1)
    data = reader(folder)
    data[0]
    order = np.random.default_rng(0).integers(0, len(data), count)
    begun = time.monotonic()
    for index in order:
        data[int(index)]
    return count / (time.monotonic() - begun)


def main():
    if sys.argv[1] == "speed":
        print(speed(pathlib.Path(sys.argv[2]), int(sys.argv[3])))
        return
    out, codec = pathlib.Path(sys.argv[1]), sys.argv[2]
    is_large = sys.argv[3:] == ["large"]
    if is_large:
        CAMERAS.update({name: (480, 640) for name in CAMERAS})
    write(out / "set", codec, (60, 60) if is_large else LENGTHS)
    if codec != "image" and not is_large:
        np.savez(out / "read.npz", **read(out / "set"))


if __name__ == "__main__":
    main()
