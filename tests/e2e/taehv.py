"""TAEHV on two nodes: a few hundred videos in, an autoencoder out. Its log, its curve and its picture are looked at."""
import json
import re
import shutil
import struct

import yaml

import stories
import world
from disk import DISK
from side import until_phase
from support import clips, events
from world import equal, expect, get

NAME = "taehv-nano"
INSIDE = "/taehv"  # the disk's folder, in a pod
STEPS = 300
EVAL_EVERY = 100
LOG_EVERY = 30
SIDE = 32  # pixels of a clip
ROWS = 4  # clips of rank 0 in a batch
# What PSNR is made of, and no jumps in time: what shows at this size.
SETTINGS = [f"--steps={STEPS}", "--batch-size=8", "--l1-weight=0", "--frame-stride=1", f"--eval-every={EVAL_EVERY}", f"--log-every={LOG_EVERY}",
            "--log-style=platform"]
FIRST_PSNR_MAX = 15
EVAL_PSNR_MIN = 26
RUN_SECONDS_MAX = 1200  # a busy machine; on a quiet one it is a tenth of that
VIDEOS_MIN = 200


def manifest(folder):
    """The example, a worker on each node, with videos of ours and what outlives the pods."""
    job = yaml.safe_load((stories.EXAMPLES / "taehv-nano.yaml").read_text())
    pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    pod["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
    pod["volumes"][0] = {"name": "checkpoints", "hostPath": {"path": str(folder), "type": "Directory"}}
    container = pod["containers"][0]
    container["volumeMounts"][0]["mountPath"] = INSIDE
    container["args"] = [f"--model={NAME}", f"--data={INSIDE}/train", f"--eval-data={INSIDE}/held-out", f"--out={INSIDE}/out", *SETTINGS]
    return job


def check_log(videos):
    text = world.logs(f"{NAME}-worker-0")
    expect(re.search(rf"^videos +{videos * clips.FRAMES:,} frames in {videos} videos", text, re.MULTILINE),
           f"rank 0 does not tell of {videos} videos:\n{text[:3000]}")
    told = dict(re.findall(rf"^Step (\d+)/{STEPS} \| Loss: [0-9.]+ \| PSNR: ([0-9.]+) dB \|", text, re.MULTILINE))
    wanted = {1, *range(LOG_EVERY, STEPS + 1, LOG_EVERY)}
    equal({int(step) for step in told}, wanted, "the steps that rank 0 tells of")
    expect(float(told["1"]) < FIRST_PSNR_MAX, f"the first step has a PSNR of {told['1']} dB; untrained it must be under {FIRST_PSNR_MAX}")
    return float(told["1"])


def check_evaluations(out):
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    evaluated = {line["at_step"]: line["eval_psnr"] for line in lines if line.get("event") == "eval"}
    equal(list(evaluated), list(range(EVAL_EVERY, STEPS + 1, EVAL_EVERY)), "the steps after which it was evaluated")
    expect(evaluated[STEPS] > EVAL_PSNR_MIN, f"PSNR on held-out clips: {evaluated}; at the end it must be over {EVAL_PSNR_MIN} dB")
    return evaluated


def check_pictures(out, steps):
    """Frame, reconstruction and error side by side, a row for each clip."""
    found = sorted((out / "pictures").iterdir())
    equal([path.name for path in found], [f"step-{step:06}.png" for step in steps], "the pictures")
    for path in found:
        png = path.read_bytes()
        equal(png[:8], b"\x89PNG\r\n\x1a\n", f"how {path.name} begins")
        width, height = struct.unpack(">II", png[16:24])
        cell = SIDE + 2
        equal((width, height), (3 * cell, ROWS * cell), f"the size of {path.name}")
    return [path.read_bytes() for path in found]


def check_curves(out, evaluated, pictures):
    folder = out / "tensorboard"
    curve = events.scalars(folder, "train/psnr")
    equal([step for step, _ in curve], list(range(1, STEPS + 1)), "the steps of the curve train/psnr")
    told = [(step, round(psnr, 3)) for step, psnr in events.scalars(folder, "eval/psnr")]
    equal(told, [(step, round(psnr, 3)) for step, psnr in evaluated.items()], "the curve eval/psnr")
    equal(events.pictures(folder, "eval/picture"), list(zip(evaluated, pictures, strict=True)), "the pictures in TensorBoard")


def taehv_nano_learns_from_videos_on_two_nodes():
    folder = DISK.folder / "taehv"
    folder.mkdir()
    folder.chmod(0o777)  # the workers run as nobody in particular
    train, held_out = clips.make(folder)
    expect(train + held_out >= VIDEOS_MIN, f"there are {train} and {held_out} videos")
    world.apply(manifest(folder))
    began = until_phase(NAME, "Running", seconds=60)["startTime"]
    nodes = sorted(pod["spec"]["nodeName"] for pod in get("pods", selector=f"job-name={NAME}"))
    equal(nodes, ["n1", "n2"], "the nodes of the pods")
    ended = until_phase(NAME, "Succeeded", seconds=RUN_SECONDS_MAX)["completionTime"]
    first = check_log(train)
    evaluated = check_evaluations(folder / "out")
    pictures = check_pictures(folder / "out", evaluated)
    check_curves(folder / "out", evaluated, pictures)
    world.delete_job(NAME)
    shutil.rmtree(folder)
    told = ", ".join(f"{psnr:.1f} dB after {step}" for step, psnr in evaluated.items())
    return f"{train + held_out} videos; PSNR {first:.1f} dB at first, on held-out clips {told}; from {began} to {ended}"
