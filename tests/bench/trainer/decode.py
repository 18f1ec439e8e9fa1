#!/usr/bin/python3
"""Measures how long a training waits for its videos: the nano model, two threads that decode, and the goodput ledger's word.

    tests/bench/trainer/decode.py                       both sets of videos
    tests/bench/trainer/decode.py --sets long           one of them
    tests/bench/trainer/decode.py --small               a few videos and steps: does it work? Its figures say nothing.

`many`: 210 short clips of four sources in three codecs. `long`: 8 videos of H.264 with a key frame every 250 frames and what
x264 does by itself (B-frames, a pyramid), so that a clip lies far behind the frame from which it can be decoded. Each set is
trained on as it is, with nothing kept of what was decoded, and with room for all of it. They are made once, in build/bench/decode.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests"))
from support.ffmpeg import ffmpeg  # noqa: E402

WORK = ROOT / "build/bench/decode"
TRAINER = ROOT / "build/dev/trainer/trainer"
SOURCES = ("testsrc2", "mandelbrot", "life=mold=10:death_color=#4060c0:life_color=#f0e040", "gradients=seed=7")
H264 = ("-c:v", "libx264", "-g", "250", "-pix_fmt", "yuv420p")
CODECS = {"mp4": H264, "webm": ("-c:v", "libvpx-vp9", "-g", "60", "-deadline", "realtime", "-cpu-used", "8", "-pix_fmt", "yuv420p"),
          "avi": ("-c:v", "mpeg4", "-g", "60", "-q:v", "3", "-pix_fmt", "yuv420p")}


@dataclasses.dataclass(frozen=True)
class Set:
    name: str
    count: int
    frames: int
    size: str
    endings: tuple

    @property
    def folder(self):
        return WORK / f"{self.name}-{self.count}-{self.frames}-{self.size}"


FULL = (Set("many", 210, 72, "160x96", ("mp4", "webm", "avi")), Set("long", 8, 500, "480x320", ("mp4",)))
SMALL = (Set("many", 6, 24, "96x64", ("mp4", "webm", "avi")), Set("long", 2, 60, "96x64", ("mp4",)))


def make(videos):
    """Anew where a run was broken off in the middle: the folder's name comes last."""
    if videos.folder.exists():
        return
    draft = videos.folder.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for number in range(videos.count):
        source, ending = SOURCES[number % len(SOURCES)], videos.endings[number % len(videos.endings)]
        lavfi = f"{source}{':' if '=' in source else '='}size={videos.size}:rate=24"
        ffmpeg("-f", "lavfi", "-i", lavfi, "-vf", f"trim=start={number / 8},setpts=PTS-STARTPTS", "-frames:v", videos.frames,
               *CODECS[ending], draft / f"{number:03}.{ending}", seconds_max=300)
    subprocess.run([TRAINER, "prepare", "video", "--input", draft], check=True, stdout=subprocess.DEVNULL, timeout=300)
    draft.rename(videos.folder)


def train(videos, steps, threads, more):
    """Seconds by kind, as the ledger has them."""
    out = WORK / "out"
    shutil.rmtree(out, ignore_errors=True)
    kept = ("PATH", "HOME", "TMPDIR", "LANG")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    done = subprocess.run([str(word) for word in (
        TRAINER, "train", "--model", "taehv-nano", "--data", videos.folder, "--out", out, "--steps", steps, "--data-threads", threads,
        "--log-every", steps, "--tensorboard", "off", "--log-dir", "off", *more)], env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        sys.exit(f"tests/bench/trainer/decode.py: exit code {done.returncode}\n{done.stderr}")
    return json.loads((out / "ledger.json").read_text())["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="many,long", metavar="NAME,...")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--data-threads", type=int, default=2)
    parser.add_argument("--threads", help="that compute (the trainer's own choice)")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    steps = 8 if options.small else options.steps
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, taehv-nano, {steps} steps of 8 clips, "
          f"--data-threads {options.data_threads}", flush=True)
    for videos in SMALL if options.small else FULL:
        if videos.name not in options.sets.split(","):
            continue
        make(videos)
        megabytes = sum(path.stat().st_size for path in videos.folder.iterdir()) / 1e6
        print(f"{videos.name}: {videos.count} videos of {videos.frames} frames, {videos.size}, {', '.join(videos.endings)}, {megabytes:.1f} MB")
        for more in ((), ("--frame-cache", "0"), ("--frame-cache", "2GB")):
            threads = ("--threads", options.threads) if options.threads else ()
            seconds = train(videos, steps, options.data_threads, (*threads, *more))
            of_steps = sum(seconds[kind] for kind in ("compute", "communication", "data"))
            print(f"  {' '.join(more) or 'as it is':<16} waiting for data {seconds['data']:.2f} s: "
                  f"{100 * seconds['data'] / sum(seconds.values()):.2f} % of {sum(seconds.values()):.1f} s, "
                  f"{100 * seconds['data'] / of_steps:.2f} % of the {of_steps:.1f} s of the steps", flush=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
