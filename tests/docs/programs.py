"""The programs that the documents speak of: what they print, and their pages of metrics while they run."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.places import BUILD, ROOT  # noqa: E402
from support.ports import free_port  # noqa: E402

PROGRAM_FOLDERS = [BUILD / "cli", BUILD / "trainer", BUILD / "operator" / "loop"]


def environment():
    env = dict(os.environ, NO_COLOR="1")
    env["PATH"] = ":".join([*map(str, PROGRAM_FOLDERS), env["PATH"]])
    for name in ("KUBECONFIG", "WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)
    return env


def program_output(*command, stdin=None):
    done = subprocess.run(command, env=environment(), input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def metrics_checked(text):
    """What promtool has to say about a page of metrics: nothing, where all is well."""
    promtool = subprocess.check_output([ROOT / "tools" / "deps", "path"], text=True).strip() + "/bin/promtool"
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
    return checked.returncode, checked.stdout + checked.stderr


@contextlib.contextmanager
def scraped_trainer():
    """The address of a run that goes on and on."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        text = ROOT / "manifests/examples/text"
        command = ["trainer", "train", "--data", text, "--eval-data", text, "--eval-every", "20", "--eval-batches", "1",
                   "--out", f"{folder}/out", "--layers", "1",
                   "--width", "32", "--heads", "2", "--seq-len", "32", "--batch-size", "4", "--steps", "10000000", "--save-every", "20",
                   "--peak-tflops", "1", "--progress-port", str(port)]
        with open(f"{folder}/said", "w", encoding="utf-8") as said:
            trainer = subprocess.Popen(command, env=environment(), stdout=said, stderr=subprocess.STDOUT)
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                trainer.kill()
                trainer.wait(timeout=30)


@contextlib.contextmanager
def scraped_operator(seconds=60):
    """A running operator whose API server refuses each connection; yields a function that scrapes it."""
    listen = f"127.0.0.1:{free_port()}"
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
              "users": [{"name": "c", "user": {}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "config")
        path.write_text(json.dumps(config))
        command = ["trainingjob-operator", "--kubeconfig", path, "--listen", listen]
        operator = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)

        def scrape(until):
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and operator.poll() is None:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{listen}/metrics", timeout=10) as page:
                    text = page.read().decode()
                    if until(text):
                        return text
                time.sleep(0.1)
            raise AssertionError(f"the operator did not show what was waited for in {seconds} s")

        try:
            yield scrape
        finally:
            operator.terminate()
            try:
                operator.wait(timeout=30)
            finally:
                operator.kill()  # of one that has ended, nothing
