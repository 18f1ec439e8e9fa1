"""tj's commands on jobs of the cluster, with its schedulers, kubelets and processes that are asked to end."""
import json

import stand_in
import world
from side import status, until_all_run, until_no_pods, until_phase
from support.places import BUILD
from world import equal, expect


def tj(*arguments, code=0):
    done = world.run(BUILD / "cli/tj", *arguments, check=False, env=world.kubeconfig())
    expect(done.returncode == code, f"tj {' '.join(arguments)} ended with {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stdout + done.stderr


def tj_shows_and_changes_a_job():
    world.apply(stand_in.job("driven", stand_in.waits_for("driven")))
    tj("wait", "driven", "--for", "phase=Running", "--timeout", "60s")
    until_all_run("driven", 0)
    expect("driven-worker-1" in tj("top", "driven"), "tj top does not show worker 1")
    for words in ("2/2 ready", "nodes       2: n1, n2"):
        expect(words in tj("status", "driven"), f"tj status does not say {words!r}")
    equal(json.loads(tj("status", "driven", "-o", "json"))["status"]["phase"], "Running", "the phase in JSON")
    tj("suspend", "driven")
    tj("wait", "driven", "--for", "phase=Suspended", "--timeout", "60s")
    until_no_pods("driven")
    tj("resume", "driven")
    until_all_run("driven", 1)
    tj("restart", "driven")
    until_all_run("driven", 2)
    equal(status("driven").get("restarts", 0), 0, "the restarts")
    stand_in.release("driven")
    expect("job driven: Succeeded" in tj("status", "driven", "--watch"), "the watch does not end with the job")
    until_phase("driven", "Succeeded")
    expect("trainingjob/driven" in tj("events", "driven"), "tj events shows none of the job")
    expect("did you mean driven?" in tj("status", "drivn", code=3), "no name is proposed")
    tj("delete", "driven", "--timeout", "60s")
    equal(world.get("pods", selector="job-name=driven"), [], "the pods after tj delete")
