"""What `tj submit` and `tj check` make on a real API server. There is no operator and no garbage collection here: what an earlier
job left stays, as it does on a busy cluster for a while."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.places import BUILD  # noqa: E402
from support.waiting import equal, expect, until  # noqa: E402

TJ = BUILD / "cli/tj"
SECONDS_MAX = 60
SCRIPT = "#!/bin/bash\necho worker $RANK\n"


def command(kubectl, *words, kubeconfig=None):
    return [str(TJ), *map(str, words), "--kubeconfig", str(kubeconfig or kubectl.kubeconfig)]


def tj(kubectl, *words, code=0, **options):
    done = subprocess.run(command(kubectl, *words, **options), capture_output=True, text=True, timeout=SECONDS_MAX)
    equal(done.returncode, code, f"what tj {words[0]} ended with; it said {done.stdout + done.stderr}\n")
    return done


def submit_script(kubectl, name, text, *words):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "start.sh")
        script.write_text(text)
        return tj(kubectl, "submit", "--name", name, "--workers", "2", "--image", "i", "--script", script, *words)


def config_maps_of(kubectl, name):
    return kubectl.get("configmaps", "-l", f"job-name={name}")["items"]


def a_script_travels_in_a_config_map_of_its_job(kubectl):
    done = submit_script(kubectl, "script", SCRIPT)
    expect("job default/script created" in done.stderr, done.stderr)
    job = kubectl.get("tj", "script")
    [config_map] = config_maps_of(kubectl, "script")
    equal(config_map["data"], {"start.sh": SCRIPT}, "the script")
    equal(config_map["metadata"]["ownerReferences"], [{"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "name": "script",
                                                      "uid": job["metadata"]["uid"]}], "its owner")
    pod = job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]
    equal(pod["volumes"][0]["configMap"]["name"], config_map["metadata"]["name"], "the pods' volume")
    equal(pod["containers"][0]["command"], ["/bin/bash", "/etc/trainingjob/script/start.sh"], "the command")


def a_job_is_replaced_only_when_asked(kubectl):
    submit_script(kubectl, "again", SCRIPT)
    first = kubectl.get("tj", "again")["metadata"]["uid"]
    refused = tj(kubectl, "submit", "--name", "again", "--image", "i", code=1)
    expect("there is one of that name already" in refused.stderr, refused.stderr)
    submit_script(kubectl, "again", SCRIPT, "--replace")
    second = kubectl.get("tj", "again")["metadata"]["uid"]
    expect(first != second, "it is the same job")
    [config_map] = config_maps_of(kubectl, "again")
    equal(config_map["metadata"]["ownerReferences"][0]["uid"], second, "the owner of the same script")


def what_is_printed_is_what_kubectl_takes(kubectl):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "start.sh")
        script.write_text(SCRIPT)
        made = tj(kubectl, "submit", "--dry-run", "--name", "printed", "--image", "i", "--script", script, "--gpus-per-worker", "8", "--ib",
                  "--mount", "/a:/a", "--mount", "pvc:p:/b:ro", "--mount", "configmap:c:/c", "--shm", "1Gi", "--env", "A=b",
                  "--label", "kueue.x-k8s.io/queue-name=q", "--port", "23456", "--workdir", "/a")
    kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=made.stdout)


def a_servers_refusal_names_the_fields(kubectl):
    job = {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": "refused", "labels": {"a": "b c", "d": "e f"}},
           "spec": {"replicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}}}}
    with tempfile.TemporaryDirectory() as folder:
        manifest = pathlib.Path(folder, "job.yaml")
        manifest.write_text(json.dumps(job))
        said = tj(kubectl, "submit", "-f", manifest, code=2).stderr
    equal(len([line for line in said.splitlines() if line.startswith("  metadata.labels: Invalid value")]), 2, f"lines of fields in {said}\n")


def who_may_not_create_is_told(kubectl):
    nobody = kubectl.kubeconfig.with_name("nobody.conf")
    said = tj(kubectl, "submit", "--name", "denied", "--image", "i", code=4, kubeconfig=nobody).stderr
    expect("job default/denied: is not created" in said and "forbidden" in said, said)


def a_watched_job_gives_its_end(kubectl):
    for phase, code in (("Succeeded", 0), ("Failed", 1)):
        name = f"watched-{phase.lower()}"
        process = subprocess.Popen(command(kubectl, "submit", "--watch", "--name", name, "--image", "i"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        until(SECONDS_MAX, f"{name} to be there", lambda: kubectl.run("get", "tj", name)[0] == 0)
        kubectl("patch", "tj", name, "--subresource=status", "--type=merge", "-p",
                json.dumps({"status": {"phase": phase, "reason": "Tested"}}))
        said = process.communicate(timeout=SECONDS_MAX)[1]
        equal(process.returncode, code, f"the exit code; it said {said}\n")
        expect(f"job {name}: {phase} (Tested)" in said, said)


def a_check_that_is_interrupted_is_deleted(kubectl):
    tj(kubectl, "submit", "--name", "checked", "--image", "i", "--workers", "2")
    process = subprocess.Popen(command(kubectl, "check", "checked"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(SECONDS_MAX, "the check's job to be there", lambda: kubectl.run("get", "tj", "checked-check")[0] == 0)
    owner = kubectl.get("tj", "checked-check")["metadata"]["ownerReferences"][0]["name"]
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=SECONDS_MAX)[0]
    equal(process.returncode, 130, f"the exit code; it said {said}\n")
    equal(owner, "checked", "its owner")
    expect("NotFound" in kubectl.refused("get", "tj", "checked-check"), "the check's job is still there")


TESTS = [a_script_travels_in_a_config_map_of_its_job, a_job_is_replaced_only_when_asked, what_is_printed_is_what_kubectl_takes,
         a_servers_refusal_names_the_fields, who_may_not_create_is_told, a_watched_job_gives_its_end,
         a_check_that_is_interrupted_is_deleted]
