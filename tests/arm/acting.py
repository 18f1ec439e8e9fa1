"""A trained policy in the simulation: `trainer act` is shown pictures as files, and asked in lines."""
import json
import os
import subprocess
import threading

import arm
import numpy as np
from PIL import Image

SECONDS_MAX = 600  # of all that is asked of one


class Acting:
    """`with Acting(trainer, out, folder) as policy`: for simulation.ends()."""
    def __init__(self, trainer, out, folder, *flags):
        self.command = [str(word) for word in (trainer, "act", "--from", out, "--observation", "-", *flags)]
        self.folder = folder
        self.said = folder / "act.stderr"

    def __enter__(self):
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
                                            env=dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull))
        self.end = threading.Timer(SECONDS_MAX, self.process.kill)
        self.end.start()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        code = self.process.wait()
        self.end.cancel()
        self.process.stdout.close()
        if code != 0:
            raise RuntimeError(f"trainer act ended with {code}: {self.said.read_text(errors='replace')[-2000:]}")

    def __call__(self, scenes):
        return [self.chunk(scene) for scene in scenes]

    def chunk(self, scene):
        images = {}
        for name in arm.CAMERAS:
            camera = name.rpartition(".")[2]
            images[camera] = str(self.folder / f"{camera}.png")
            Image.fromarray(arm.picture(scene, name)).save(images[camera])
        self.process.stdin.write(json.dumps({"state": scene.joints.tolist(), "task": scene.task, "images": images}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"trainer act says no more: {self.said.read_text(errors='replace')[-2000:]}")
        return np.array(json.loads(line)["actions"])
