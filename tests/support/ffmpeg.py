"""FFmpeg's own program, by which tests make videos and see what is in them."""
import subprocess

SECONDS_MAX = 120


def ffmpeg(*arguments, seconds_max=SECONDS_MAX):
    """What it writes to its standard output. Files that are there are written anew."""
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, arguments)]
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=seconds_max).stdout


def pixels(path):
    """All frames, one after another, as red, green and blue: none left out or doubled for a rate."""
    return ffmpeg("-i", path, "-fps_mode", "passthrough", "-pix_fmt", "rgb24", "-f", "rawvideo", "-")
