"""Videos for this trainer, the same ones decoded and cut into clips for PyTorch, and weights with which both begin."""
import dataclasses
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/trainer/taehv"), str(ROOT / "tests")]
import videos  # noqa: E402
from support import ffmpeg  # noqa: E402

# Larger than a clip, so that there is something to decode and to cut out.
WIDTH, HEIGHT, FRAMES = 256, 192, 72
KINDS = (("mp4", "testsrc2"), ("mkv", "gradients=seed=3"), ("avi", "mandelbrot"))
STRIDE_MAX = 5  # of the trainer, unless --frame-stride says otherwise
CLIPS = 24
MAKE_SECONDS_MAX = 120
# The figure of the author: 61 frames of 512 x 320 in 0.5 s and less than 0.5 GB on a GH200.
DECODED_FRAMES, DECODED_SIZE = 61, "512x320"


@dataclasses.dataclass(frozen=True)
class ClipData:
    videos: pathlib.Path
    clips: pathlib.Path
    weights: pathlib.Path


def clip(rgb, case, dice):
    """uint8 [frames, 3, side, side], drawn as the trainer draws its own."""
    stride = dice.randint(1, min(STRIDE_MAX, (FRAMES - 1) // (case.frames - 1)))
    first = dice.randrange(FRAMES - (case.frames - 1) * stride)
    top, left = dice.randrange(HEIGHT - case.side + 1), dice.randrange(WIDTH - case.side + 1)
    planes = bytearray()
    for frame in range(first, first + case.frames * stride, stride):
        begins = [((frame * HEIGHT + row) * WIDTH + left) * 3 for row in range(top, top + case.side)]
        for channel in range(3):
            for begin in begins:
                planes += rgb[begin + channel:begin + 3 * case.side:3]
    return planes


def make(folder, case, python, environment):
    """For one case. Needs FFmpeg; `python` has torch."""
    data = ClipData(folder / "videos", folder / f"{case.preset}.clips", folder / f"{case.preset}.pth")
    paths = [data.videos / f"{source.partition('=')[0]}.{ending}" for ending, source in KINDS]
    for path, (_, source) in zip(paths, KINDS):
        if not path.exists():
            videos.make(path, source, FRAMES, f"{WIDTH}x{HEIGHT}")
    dice, pixels = random.Random(1), [ffmpeg.pixels(path) for path in paths]
    data.clips.write_bytes(b"".join(clip(pixels[number % len(pixels)], case, dice) for number in range(CLIPS)))
    loop = pathlib.Path(__file__).resolve().parent / "taehv_loop.py"
    subprocess.run([python, loop, "--model", case.preset, "--weights", data.weights, "--make-weights"], check=True,
                   env=environment, stdin=subprocess.DEVNULL, timeout=MAKE_SECONDS_MAX)
    return data


def latents(folder, weights, preset, trainer):
    """Of the video of the figure, as `trainer encode` makes them."""
    video, made = folder / "decoded.mkv", folder / "latents.safetensors"
    if not video.exists():
        videos.make(video, "testsrc2", DECODED_FRAMES, DECODED_SIZE)
    made.unlink(missing_ok=True)
    subprocess.run([trainer, "encode", "--model", preset, "--weights", weights, "--in", video, "--out", made], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=2 * MAKE_SECONDS_MAX)
    return made
