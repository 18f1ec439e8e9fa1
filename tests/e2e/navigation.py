"""Qwen2.5-VL with a frozen VGGT on two nodes: two pods learn the way to a door from conversations with pictures, one of them is killed in the
middle, and the answers to rooms that nobody trained on are right."""
import json
import re
import shutil
import subprocess
import sys
import time

import machine
import stories
import world
import yaml
from disk import DISK
from side import again, pods, until_phase
from support.places import BUILD, ROOT
from world import equal, expect, get, kubectl, until

NAME = "qwen-vggt-nano"
INSIDE = "/navigation"  # the disk's folder, in a pod
CONVERSATIONS, STEPS, KILLED_AT = 600, 400, 120
RUN_SECONDS_MAX = 900  # a busy machine
RIGHT_MIN = 0.95
ASKED = 12


def manifest(folder):
    """The example, a worker on each node, with rooms of ours and checkpoints that outlive the pods."""
    job = yaml.safe_load((stories.EXAMPLES / "qwen-vggt-nano.yaml").read_text())
    pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    pod["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
    pod["volumes"][0] = {"name": "checkpoints", "hostPath": {"path": str(folder), "type": "Directory"}}
    container = pod["containers"][0]
    container["volumeMounts"][0]["mountPath"] = INSIDE
    container["args"] = [f"--model={NAME}", f"--tokenizer={INSIDE}/tokenizer.json", f"--out={INSIDE}/out", "--held-out=0.1", "--zero=3",
                         f"--steps={STEPS}", "--eval-every=100", "--save-every=50", "--resume", "--log-every=1"]
    next(each for each in container["env"] if each["name"] == "DATA_ROOT")["value"] = f"{INSIDE}/set"
    return job


def draw(folder, count):
    subprocess.run([sys.executable, ROOT / "tests/trainer/qwen/rooms.py", folder, str(count)], check=True)


def right_answers(out):
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [line["eval_right_answers"] for line in lines if line.get("event") == "eval"]


def generated(folder):
    """Of rooms that are in no set: how many answers of `trainer generate` are right."""
    draw(folder / "others", ASKED)
    conversations = json.loads((folder / "others/set/rooms.json").read_text())
    asked = folder / "others/set/asked.jsonl"
    asked.write_text("".join(json.dumps(each | {"conversations": each["conversations"][:1]}) + "\n" for each in conversations))
    said = world.run(BUILD / "trainer/trainer", "generate", "--from", folder / "out", "--conversation", asked).splitlines()
    answers = [json.loads(line)["answer"].strip() for line in said]
    return sum(answer == each["conversations"][1]["value"] for answer, each in zip(answers, conversations))


def qwen_vggt_nano_finds_the_way_on_two_nodes_though_a_worker_is_killed():
    folder = DISK.folder / "navigation"
    folder.mkdir()
    folder.chmod(0o777)  # the workers run as nobody in particular
    draw(folder, CONVERSATIONS)
    world.apply(manifest(folder))

    def said():  # nothing while there is no container
        return kubectl("logs", f"{NAME}-worker-0", check=False).stdout

    until(240, f"step {KILLED_AT} of {NAME}", lambda: re.search(rf"^step {KILLED_AT}/", said(), re.MULTILINE))
    equal(sorted(pod["spec"]["nodeName"] for pod in get("pods", selector=f"job-name={NAME}")), ["n1", "n2"], "the nodes of the pods")
    fault = time.monotonic()
    machine.kill_container(pods(NAME)[1])
    note = again(NAME, 1, fault)
    until_phase(NAME, "Succeeded", seconds=RUN_SECONDS_MAX)
    text = world.logs(f"{NAME}-worker-0")
    expect(re.search(r"^resumed from .*: (?:50|100) steps done", text, re.MULTILINE), f"the second gang did not go on from a checkpoint:\n{text[:3000]}")
    expect("environment DATA_ROOT" in text and "environment LEARNING_RATE" in text, f"the table does not name the variables:\n{text[:3000]}")
    seen = right_answers(folder / "out")
    expect(seen[-1] >= RIGHT_MIN, f"right answers of held-out rooms: {seen}; in the end it must be {RIGHT_MIN:.0%}")
    right = generated(folder)
    expect(right >= ASKED * RIGHT_MIN, f"trainer generate answers {right} of {ASKED} rooms rightly")
    world.delete_job(NAME)
    shutil.rmtree(folder)
    return f"{note}; {seen[0]:.0%} right answers at first, {seen[-1]:.0%} at the end; trainer generate answers {right} of {ASKED}"
