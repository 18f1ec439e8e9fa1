"""`tj submit` and `tj check` as a person uses them: a script of one's own machine on two workers, and whether a job could train."""
import pathlib
import tempfile

import stand_in
import world
from side import until_no_pods, until_phase
from support.places import BUILD
from world import equal, expect, get, until

TRAINER = "trainingjob/trainer:0.1.0"
SCRIPT = """#!/bin/bash
echo "worker $RANK of $WORLD_SIZE says $1 from $0"
"""


def tj(*words, check=True):
    return world.run(BUILD / "cli/tj", *words, env=world.kubeconfig(), check=check)


def a_script_from_a_config_map_runs_on_two_workers():
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "start.sh")
        script.write_text(SCRIPT)
        tj("submit", "--name", "from-script", "--workers", "2", "--image", stand_in.IMAGE, "--script", script, "--shm", "64Mi", "--watch",
           "--", "hello")
    for rank in (0, 1):
        wanted = f"worker {rank} of 2 says hello from /etc/trainingjob/script/start.sh"
        expect(wanted in world.logs(f"from-script-worker-{rank}"), f"the log of worker {rank} has no line {wanted!r}")
    world.delete_job("from-script")
    until(60, "the script's ConfigMap to be collected", lambda: not get("configmaps", selector="job-name=from-script"))


def tj_check_looks_in_the_jobs_place_and_leaves_nothing():
    """Of a job that runs, on its nodes; then of one whose image has no trainer."""
    world.apply(stand_in.job("in-place", stand_in.waits_for("check-is-over")))
    until_phase("in-place", "Running")
    nodes = {pod["spec"]["nodeName"] for pod in get("pods", selector="job-name=in-place")}
    said = tj("check", "in-place", "--image", TRAINER)
    for rank in (0, 1):
        expect(f"worker {rank} on node n" in said, f"nothing of worker {rank} in:\n{said}")
    equal({line.split()[4].rstrip(":") for line in said.splitlines() if line.startswith("worker ")}, nodes, "the nodes that were looked at")
    expect("training can begin: 2 of 2 workers pass" in said, said)
    without = tj("check", "in-place", check=False)
    equal(without.returncode, 1, f"the exit code of a check without a trainer; it said {without.stdout}{without.stderr}\n")
    expect("seems to have no program `trainer`" in without.stdout, without.stdout)
    equal(get("tj", "in-place-check"), None, "the job of the check")
    until_no_pods("in-place-check")
    stand_in.release("check-is-over")
    until_phase("in-place", "Succeeded")
    world.delete_job("in-place")
