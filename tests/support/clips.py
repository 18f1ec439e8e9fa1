#!/usr/bin/python3
"""A few hundred short videos in three codecs, which FFmpeg makes of its own sources and of the documents' pictures: what
TAEHV is trained on. Of each kind the last few are held out, to be looked at only."""
import concurrent.futures
import dataclasses
import pathlib
import shutil
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.ffmpeg import ffmpeg  # noqa: E402
from support.places import ROOT  # noqa: E402

RATE = 24
FRAMES = 24  # of each video
TOGETHER_MAX = 2

CODECS = {  # each video begins with a frame that needs no other
    "mp4": ["-c:v", "libx264", "-preset", "veryfast", "-keyint_min", str(FRAMES), "-sc_threshold", "0", "-bf", "2"],
    "avi": ["-c:v", "mpeg4", "-sc_threshold", "1000000000", "-bf", "0"],
    "webm": ["-c:v", "libvpx-vp9", "-b:v", "0", "-deadline", "realtime", "-cpu-used", "8", "-keyint_min", str(FRAMES),
             "-auto-alt-ref", "0", "-lag-in-frames", "0"],
}
KINDS = ("testsrc2", "mandelbrot", "life", "pictures")
PICTURES = ("flow.svg", "lifecycle.svg", "tensorboard.png")  # of docs/, one for each codec


@dataclasses.dataclass(frozen=True)
class Look:
    """How large, how soft and how good the videos are, and how many of each kind there are in each codec. What is soft has no
    details that a small model would take long to learn."""
    width: int = 192
    height: int = 128
    blur: int = 7  # pixels
    qualities: tuple = ("-crf", "18"), ("-q:v", "2"), ("-crf", "20")  # in the order of CODECS
    train: int = 18
    held_out: int = 2

    @property
    def count(self):
        return self.train + self.held_out


# What lies in manifests/examples/videos: a few, with few bytes.
FEW = Look(width=96, height=64, blur=3, qualities=(("-crf", "28"), ("-q:v", "14"), ("-crf", "42")), train=1, held_out=1)


def source(kind, number, look):
    """The input options, and what is done to its frames; another part of the same source for each codec's `number`."""
    skipped = number * FRAMES * look.count
    soft = f"gblur=sigma={look.blur}"
    size = f"scale={look.width}:{look.height}:flags=bicubic,{soft}"
    if kind == "pictures":  # a window that wanders over one
        wander = (f"crop={look.width}:{look.height}:x='(iw-ow)/2*(1+sin((n+{skipped})/160))':"
                  f"y='(ih-oh)/2*(1+cos((n+{skipped})/110))'")
        path = str(ROOT / "docs" / PICTURES[number])
        return ["-loop", "1", "-framerate", str(RATE), "-i", path], f"scale=3200:-2:flags=bicubic,{wander},{soft}"
    if kind == "life":
        cells = f"life=size=24x16:rate=8:ratio=0.4:seed={7 + number}:mold=12:death_color=0x203080:life_color=0xF0C040"
        return ["-f", "lavfi", "-i", cells], f"fps={RATE},{size}"
    shown = {"testsrc2": f"testsrc2=size=64x42:rate={RATE}", "mandelbrot": f"mandelbrot=size=48x32:rate={RATE}:end_pts=6000"}[kind]
    return ["-f", "lavfi", "-i", shown], f"trim=start_frame={skipped},setpts=PTS-STARTPTS,{size}"


def make_kind(folder, kind, ending, look):
    """All videos of one source in one codec, by one process."""
    number = list(CODECS).index(ending)
    read, shape = source(kind, number, look)
    cuts = ",".join(str(FRAMES * cut) for cut in range(1, look.count))
    ffmpeg(*read, "-vf", f"{shape},format=yuv420p", "-r", RATE, "-frames:v", FRAMES * look.count, *CODECS[ending],
           *look.qualities[number], "-g", FRAMES, "-threads", "1", "-bitexact", "-f", "segment", "-segment_frames", cuts,
           "-reset_timestamps", "1", folder / f"train/{kind}-%02d.{ending}")
    made = sorted(folder.glob(f"train/{kind}-*.{ending}"))
    if len(made) != look.count:
        raise AssertionError(f"ffmpeg made {len(made)} videos of {kind} as {ending}, not {look.count}")
    for path in made[look.train:]:
        shutil.move(path, folder / "held-out" / path.name)


def make(folder, look=Look()):
    """Fills `folder`/train and `folder`/held-out, and says how many videos each has."""
    folder = pathlib.Path(folder)
    for part in ("train", "held-out"):
        (folder / part).mkdir(parents=True)
    with concurrent.futures.ThreadPoolExecutor(TOGETHER_MAX) as pool:
        for done in [pool.submit(make_kind, folder, kind, ending, look) for kind in KINDS for ending in CODECS]:
            done.result()
    return tuple(len(list((folder / part).iterdir())) for part in ("train", "held-out"))


if __name__ == "__main__":
    print("{} videos to train on, {} held out".format(*make(sys.argv[1], FEW)))
