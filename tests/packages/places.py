"""Where packages are tried: a folder of this checkout's disk, and a Debian in which nothing is installed."""
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.places import ROOT  # noqa: E402

SECONDS_MAX = 240


def run(*command, code=0, **options):
    """What it printed, of both outputs; its exit code must be `code`."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS_MAX, check=False, **options)
    assert done.returncode == code, f"{' '.join(words)} ended with {done.returncode}, not {code}:\n{done.stdout[-4000:]}"
    return done.stdout


def said(*command, **options):
    """Its standard output alone."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    return done.stdout


@contextlib.contextmanager
def scratch():
    """On the disk of the checkout, so that libtorch can be linked instead of copied."""
    (ROOT / "build").mkdir(exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="packages-test.", dir=ROOT / "build"))
    folder.chmod(0o755)  # other users of the clean Debian read it
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class Container:
    """A container of `image`: commands as a user, with folders of this machine in it."""

    def __init__(self, image):
        self.name = buildah("from", "--pull-never", image).strip()
        self.volumes = []

    def mount(self, folder, inside, options="rw"):
        self.volumes.append(f"--volume={folder}:{inside}:{options}")

    def run(self, script, user="0:0", code=0):
        return run(ROOT / "tools/buildah", "run", "--isolation", "chroot", "--user", user, *self.volumes, self.name, "--",
                   "bash", "-euc", script, code=code)

    def remove(self):
        buildah("rm", self.name)


def buildah(*words):
    return said(ROOT / "tools/buildah", *words)


@contextlib.contextmanager
def container(image):
    made = Container(image)
    try:
        yield made
    finally:
        made.remove()


def base_image():
    return said(ROOT / "tools/images", "base").split()[-1]
