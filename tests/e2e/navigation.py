"""Qwen2.5-VL with a frozen VGGT on two nodes, told as start scripts tell it: by their variables, and by a DeepSpeed file in a ConfigMap. Two pods learn the
way to a door from conversations with pictures, and one of them is killed in the middle: each loss has the bits of a training that nobody disturbed, and the
answers to rooms that nobody trained on are right."""
import json
import operator
import os
import re
import shutil
import sys
import time

import machine
import stories
import world
import yaml
from disk import DISK
from side import again, pods, until_phase
from support.places import BUILD, ROOT
from support.processes import Process
from world import equal, expect, get, kubectl, until

sys.path.append(str(ROOT / "tests/trainer/qwen"))
import rooms  # noqa: E402

NAME = "qwen-vggt-nano"
INSIDE = "/navigation"  # the disk's folder, in a pod
TRAINER = BUILD / "trainer/trainer"
BASE = "base/step-000001"  # what MODEL_PATH names, in the disk's folder
CONVERSATIONS, STEPS, SAVE_EVERY, KILLED_AT = 2000, 400, 25, 60
PASSES = 4  # of a rank in a step
COMPARED = 120  # steps of the undisturbed training: well behind the kill
RUN_SECONDS_MAX = 900  # a busy machine
RIGHT_MIN, RIGHT_AT_FIRST_MAX = 0.95, 0.5  # shares of answers in rooms that are held out; one in four by chance
SHARED_OUT_FROM = 1000  # elements: the file's own threshold, 1e6, leaves each tensor of a nano whole
STATE_BYTES_MAX = 10.5  # of a parameter: with --deterministic 4 + 12 / 2 by ZeRO-3's law, and 4 + 4 + 8 / 2 where weights are whole
ASKED = 12


class LargeJob:
    """What the job of two nodes of eight GPUs brings along: the DeepSpeed file with its ConfigMap, its volume and its flag, and variables. What the file says
    of a tensor that is too small to be shared out, and of passes, is scaled to a nano."""

    def __init__(self):
        self.config, job = yaml.safe_load_all((stories.EXAMPLES / "qwen-vggt-16gpu.yaml").read_text())
        pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
        container = pod["containers"][0]
        self.volume = next(each for each in pod["volumes"] if "configMap" in each)
        self.mount = next(each for each in container["volumeMounts"] if each["name"] == self.volume["name"])
        (self.file, text), = self.config["data"].items()
        deepspeed = json.loads(text)
        deepspeed["zero_optimization"]["stage3_param_persistence_threshold"] = SHARED_OUT_FROM
        deepspeed["gradient_accumulation_steps"] = PASSES
        self.text = json.dumps(deepspeed)
        self.config["data"] = {self.file: self.text}
        self.variables = {each["name"]: each["value"] for each in container["env"]
                          if each["name"] in ("PER_DEVICE_BATCH", "GRAD_ACCUM_STEPS", "MAX_HISTORY_IMAGES")}
        self.variables["GRAD_ACCUM_STEPS"] = str(PASSES)


def flags(place, out, deepspeed):
    return [f"--model={NAME}", f"--out={place}/{out}", f"--deepspeed={deepspeed}", "--deterministic", "--held-out=0.1", f"--steps={STEPS}",
            "--eval-every=50", f"--save-every={SAVE_EVERY}", "--resume"]


def variables(container, large, place):
    told = {each["name"]: each["value"] for each in container["env"]}
    return told | large.variables | {"MODEL_PATH": f"{place}/{BASE}", "DATA_ROOT": f"{place}/set"}


def manifest(folder, large):
    """The example, a worker on each node, with what the large job brings along, rooms of ours and checkpoints that outlive the pods."""
    job = yaml.safe_load((stories.EXAMPLES / "qwen-vggt-nano.yaml").read_text())
    pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    pod["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
    pod["volumes"] = [{"name": "checkpoints", "hostPath": {"path": str(folder), "type": "Directory"}}, large.volume]
    container = pod["containers"][0]
    container["volumeMounts"] = [{"name": "checkpoints", "mountPath": INSIDE}, large.mount]
    container["args"] = flags(INSIDE, "out", f"{large.mount['mountPath']}/{large.file}")
    container["env"] = [{"name": name, "value": value} for name, value in variables(container, large, INSIDE).items()]
    return job


def make_base(folder):
    """Weights that lie in files, with the tokenizer beside them: those of a step that moves next to nothing."""
    world.run(TRAINER, "train", f"--model={NAME}", f"--data={folder}/set", f"--tokenizer={folder}/tokenizer.json", f"--out={folder}/base",
              "--batch-size=1", "--steps=1", "--lr=1e-9", "--log-dir=off", "--tensorboard=off", env={"TRAININGJOB_TERMINATION_LOG": os.devnull})
    expect((folder / BASE / "tokenizer.json").is_file(), f"{BASE} has no tokenizer")


def start_undisturbed(folder, large, container):
    """The same training by two processes of this machine."""
    deepspeed = folder / large.file
    deepspeed.write_text(large.text)
    words = [TRAINER, "launch", "--nproc=2", "--", TRAINER, "train", *flags(folder, "undisturbed", deepspeed)]
    told = variables(container, large, folder) | {"TRAININGJOB_TERMINATION_LOG": os.devnull}
    return Process(words, folder / "undisturbed.log", told)


def lines_of(out):
    """Of metrics.jsonl, as far as it is written."""
    path = out / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def losses(out):
    """(step, loss) of each step, also of those that were done twice."""
    return [(line["step"], line["loss"]) for line in lines_of(out) if "loss" in line]


def right_answers(out):
    return [line["eval_right_answers"] for line in lines_of(out) if line.get("event") == "eval"]


def generated(folder):
    """Of rooms that are in no set: how many answers of `trainer generate` are right."""
    path, wanted = rooms.write_set(folder / "others", ASKED, seed=2)
    conversations = json.loads(path.read_text())
    asked = path.with_name("asked.jsonl")
    asked.write_text("".join(json.dumps(each | {"conversations": each["conversations"][:1]}) + "\n" for each in conversations))
    said = world.run(TRAINER, "generate", "--from", folder / "out", "--conversation", asked).splitlines()
    answers = [json.loads(line)["answer"].strip() for line in said]
    return sum(map(operator.eq, answers, wanted))


def check_log():
    """Of the second gang; how many steps it found done."""
    text = world.logs(f"{NAME}-worker-0")
    resumed = re.search(r"^resumed from .*: (\d+) steps done", text, re.MULTILINE)
    expect(resumed and 0 < int(resumed[1]) < COMPARED, f"the second gang did not go on from a checkpoint before step {COMPARED}:\n{text[:3000]}")
    for variable in ("DATA_ROOT", "LEARNING_RATE", "GRAD_ACCUM_STEPS", "MAX_HISTORY_IMAGES"):
        expect(f"environment {variable}" in text, f"the table does not name {variable}:\n{text[:3000]}")
    for line in ("zero_optimization.stage 3 | --zero 3", "bf16.enabled true | --precision bf16"):
        expect(f"deepspeed: {line}" in text, f"rank 0 does not say what becomes of {line}:\n{text[:3000]}")
    state = re.search(r"^zero 3 on 2 ranks \| state ([\d.]+) bytes per parameter", text, re.MULTILINE)
    expect(state and float(state[1]) <= STATE_BYTES_MAX, f"weights are not shared out; with them a rank has {STATE_BYTES_MAX} bytes at most:\n{text[-2000:]}")
    return int(resumed[1])


def until_compared(folder, undisturbed):
    """It has all the losses that are wanted of it, and stops."""
    out = folder / "undisturbed"
    until(RUN_SECONDS_MAX, lambda: f"step {COMPARED} of the undisturbed training:\n{undisturbed.last_words()}",
          lambda: not undisturbed.is_running() or any(step >= COMPARED for step, _ in losses(out)))
    undisturbed.stop()


def check_bits(folder, undisturbed):
    """Each loss that the two trainings have both; how many were compared."""
    wanted, seen = dict(losses(folder / "undisturbed")), losses(folder / "out")
    expect(COMPARED in wanted, f"the undisturbed training ended before step {COMPARED}:\n{undisturbed.last_words()}")
    equal(sorted({step for step, _ in seen}), list(range(1, STEPS + 1)), "the steps in metrics.jsonl")
    both = [(step, loss, wanted[step]) for step, loss in seen if step in wanted]
    equal([each for each in both if each[1] != each[2]], [], "losses beside those of an undisturbed training")
    return len(both)


def qwen_vggt_nano_finds_the_way_on_two_nodes_though_a_worker_is_killed():
    folder, large = DISK.folder / "navigation", LargeJob()
    folder.mkdir()
    folder.chmod(0o777)  # the workers run as nobody in particular
    rooms.write_set(folder / "set", CONVERSATIONS)
    rooms.write_tokenizer(folder / "tokenizer.json")
    make_base(folder)
    job = manifest(folder, large)
    world.apply(large.config, job)

    until(240, f"step {KILLED_AT} of {NAME}", lambda: re.search(rf"^step {KILLED_AT}/", world.log_so_far(f"{NAME}-worker-0"), re.MULTILINE))
    equal(sorted(pod["spec"]["nodeName"] for pod in get("pods", selector=f"job-name={NAME}")), ["n1", "n2"], "the nodes of the pods")
    fault = time.monotonic()
    machine.kill_container(pods(NAME)[1])
    undisturbed = start_undisturbed(folder, large, job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0])
    try:
        note = again(NAME, 1, fault)
        until_compared(folder, undisturbed)
        until_phase(NAME, "Succeeded", seconds=RUN_SECONDS_MAX)
        done = check_log()
        compared = check_bits(folder, undisturbed)
    finally:
        undisturbed.stop()
    seen = right_answers(folder / "out")
    expect(seen[0] <= RIGHT_AT_FIRST_MAX and seen[-1] >= RIGHT_MIN,
           f"right answers of held-out rooms: {seen}; at first {RIGHT_AT_FIRST_MAX:.0%} at most, in the end {RIGHT_MIN:.0%}")
    right = generated(folder)
    expect(right >= ASKED * RIGHT_MIN, f"trainer generate answers {right} of {ASKED} rooms rightly")
    world.delete_job(NAME)
    kubectl("delete", "configmap", large.config["metadata"]["name"])
    shutil.rmtree(folder)
    return (f"{note}, from {done} steps; {compared} losses have the bits of an undisturbed training; {seen[0]:.0%} right answers at first, {seen[-1]:.0%} at the "
            f"end; trainer generate answers {right} of {ASKED}")
