"""What the page is shown: a real small job under `tj run`, whose workers do what a test tells them through pipes, and a
folder that somebody has made up to attack the page.
"""
import json
import os
import pathlib
import subprocess

DEADLINE_S = 60
ATTACK = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>"
LOG_ATTACK = "<b onmouseover=\"window.hacked=1\">bold</b><script>window.hacked=1</script> \x1b[31mred\x1b[0m"

# `step N LOSS` writes a line as the trainer does, `say TEXT` a line to the log, `end CODE` ends the worker.
WORKER = r'''
import json, os, struct, sys, time
rank, attempt = int(os.environ["RANK"]), int(os.environ["TRAININGJOB_ATTEMPT"])
metrics = open(sys.argv[1] + "/metrics.jsonl", "a") if rank == 0 else None
def note(**entry):
    metrics.write(json.dumps(entry) + "\n")
    metrics.flush()
def goodput(step, share):
    """A record of an event file, without the right checksums: nobody looks at them."""
    value = b"\x0a\x0fgoodput/compute\x15" + struct.pack("<f", share)
    event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + bytes([step]) + bytes([42, len(value) + 2, 10, len(value)]) + value
    events.write(struct.pack("<Q", len(event)) + b"crc." + event + b"crc.")
    events.flush()
if metrics:
    events = open(sys.argv[1] + f"/events.out.tfevents.{time.time():.0f}.host.{os.getpid()}", "ab")
    note(event="begin", attempt=attempt, at_step=0, unix_seconds=time.time())
print(f"worker {rank} of attempt {attempt} is there", flush=True)
with open(f"orders.{rank}.{attempt}") as orders:
    for order in orders:
        what, _, rest = order.rstrip("\n").partition(" ")
        if what == "step":
            step, loss = rest.split()
            note(step=int(step), steps=40, loss=float(loss), lr=1e-3, tokens_per_second=23000 + 100 * int(step), seconds=0.2)
            goodput(int(step), 1 - 1 / (1 + int(step)))
        elif what == "save":
            note(event="checkpoint", saved_step=int(rest), path=f"/checkpoints/step-{int(rest):06}")
        elif what == "say":
            print(rest, flush=True)
        elif what == "end":
            sys.exit(int(rest))
'''

MANIFEST = """
apiVersion: kubebrain.io/v1
kind: TrainingJob
metadata: {name: seen}
spec:
  runPolicy: {restartBackoffSeconds: 0, maxRestarts: 2}
  replicaSpecs:
    Worker:
      replicas: 3
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: main
            image: none
            command: [python3, worker.py, /checkpoints]
            volumeMounts: [{name: checkpoints, mountPath: /checkpoints}]
          volumes: [{name: checkpoints, emptyDir: {}}]
"""


class RealJob:
    def __init__(self, tj, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "worker.py").write_text(WORKER)
        (self.folder / "job.yaml").write_text(MANIFEST)
        self.state = self.folder / "state"
        for rank in range(3):
            for attempt in range(2):
                os.mkfifo(self.folder / f"orders.{rank}.{attempt}")
        env = {**os.environ, "XDG_STATE_HOME": str(self.state), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        self.process = subprocess.Popen([tj, "run", "-f", "job.yaml"], cwd=self.folder, env=env, stdout=subprocess.DEVNULL)
        self.out = self.folder / "out" / "seen"
        self.pipes = {}

    def order(self, rank, attempt, text):
        """It waits in the pipe until the worker reads it."""
        if (rank, attempt) not in self.pipes:  # opened for both: so it waits for no reader
            self.pipes[rank, attempt] = os.open(self.folder / f"orders.{rank}.{attempt}", os.O_RDWR)
        os.write(self.pipes[rank, attempt], text.encode() + b"\n")

    def close(self):
        self.process.terminate()
        self.process.wait(DEADLINE_S)
        for pipe in self.pipes.values():
            os.close(pipe)


def made_up_run(folder):
    """Objects that no API server would take, in a folder as `tj run` leaves it."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    meta = {"name": ATTACK, "namespace": "default", "uid": "made-up", "creationTimestamp": "2026-01-01T00:00:00Z"}
    job = {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": meta,
           "spec": {"replicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "m", "image": "i"}]}}}}},
           "status": {"phase": "Failed", "reason": "WorkerFailed", "message": ATTACK, "attempt": 0,
                      "progress": {"step": 3, "totalSteps": 10, "phase": "step", "loss": 2.0}}}
    event = {"metadata": {**meta, "name": "e", "uid": "made-up-event"}, "involvedObject": {"kind": "TrainingJob", "name": ATTACK},
             "reason": ATTACK, "message": ATTACK, "type": "Warning"}
    (folder / "objects.json").write_text(json.dumps({"jobs": [job], "pods": [17, None, {"metadata": {}}], "events": [event]}))
    return folder
