"""Training that something happens to: the real trainer in real pods."""
import re
import time

import machine
import stories
import world
import yaml
from side import again, pods, status, until_phase
from world import expect, until


def nano(name, *arguments):
    """The example, both workers on one node, with checkpoints that outlive the pods."""
    manifest = yaml.safe_load((stories.EXAMPLES / "gpt2-nano.yaml").read_text())
    manifest["metadata"]["name"] = name
    pod = manifest["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    del pod["topologySpreadConstraints"]
    pod["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    pod["volumes"][0] = {"name": "checkpoints", "hostPath": {"path": f"/mnt/{name}", "type": "Directory"}}
    pod["containers"][0]["args"] = ["--model=gpt2-nano", "--data=text", "--out=/checkpoints", "--resume", *arguments]
    folder = world.node_folder(1) / "mnt" / name
    folder.mkdir()
    folder.chmod(0o777)  # the workers run as nobody in particular
    return manifest


def a_frozen_worker_is_named_and_training_goes_on_from_its_checkpoint():
    world.apply(nano("frozen", "--steps=120", "--batch-size=16", "--save-every=20", "--log-every=1"))
    until(120, "step 50 of frozen", lambda: re.search(r"^step 50/", world.log_so_far("frozen-worker-0"), re.MULTILINE))
    fault = time.monotonic()
    machine.freeze(pods("frozen")[1], "trainer-engine")
    note = again("frozen", 1, fault)
    failure = status("frozen")["firstFailure"]
    expect("rank 1" in failure["message"], f"the first failure does not name rank 1: {failure}")
    expect("frozen or unreachable" in failure["message"] or "a signal (SIGSTOP) had stopped it" in failure["message"],
           f"the first failure does not say what happened: {failure}")
    until_phase("frozen", "Succeeded", seconds=240)
    text = world.logs("frozen-worker-0")
    resumed = re.search(r"^resumed from .*: (\d+) steps done", text, re.MULTILINE)
    expect(resumed and int(resumed.group(1)) >= 20, f"the second gang did not go on from a checkpoint:\n{text[:3000]}")
    world.delete_job("frozen")
    return f"{note}; {failure['message']}"
