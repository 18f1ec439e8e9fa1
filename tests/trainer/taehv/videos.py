"""Videos that FFmpeg makes of its own sources."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))
from support.ffmpeg import ffmpeg  # noqa: E402

SOURCES = ("testsrc2", "mandelbrot", "life=mold=10:death_color=blue:life_color=yellow", "gradients=seed=7")
# Three ways to keep frames: with frames of both sides, without a loss, and of older make. And one without times.
CODECS = {
    "mp4": ["-c:v", "libx264", "-g", "12", "-bf", "2", "-pix_fmt", "yuv420p", "-threads", "1"],
    "mkv": ["-c:v", "ffv1", "-g", "8"],
    "avi": ["-c:v", "mpeg4", "-g", "10", "-bf", "2", "-q:v", "3"],
    "webm": ["-c:v", "libvpx-vp9", "-g", "15", "-deadline", "realtime", "-cpu-used", "8", "-threads", "1"],
}


def make(path, source="testsrc2", frames=40, size="96x64", rate=24, codec=None, skip=0):
    """`skip`: seconds of the source that are left out, so that two videos of one differ."""
    path.parent.mkdir(parents=True, exist_ok=True)
    separator = ":" if "=" in source else "="
    shown = f"{source}{separator}size={size}:rate={rate}"
    ffmpeg("-f", "lavfi", "-i", shown, "-vf", f"trim=start={skip},setpts=PTS-STARTPTS", "-frames:v", frames, "-bitexact",
           *(codec or CODECS[path.suffix[1:]]), path)
    return path


def make_pictures(folder, count=6, frames=40):
    """As folders of PPM pictures, which cost a trainer neither FFmpeg's libraries nor a look at each file."""
    for number in range(count):
        inner = folder / f"{number:03}"
        inner.mkdir(parents=True)
        source = SOURCES[number % len(SOURCES)]
        ffmpeg("-f", "lavfi", "-i", f"{source}{':' if '=' in source else '='}size=96x64:rate=24", "-ss", number / 4,
               "-frames:v", frames, inner / "%03d.ppm")


def make_some(folder, count=6, frames=40):
    """Of each source and codec in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    endings = ("mp4", "mkv", "avi")
    return [make(folder / f"{number:03}.{endings[number % 3]}", SOURCES[number % len(SOURCES)], frames, skip=number / 4)
            for number in range(count)]
