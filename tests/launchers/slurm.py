"""A SLURM of two nodes on one machine: its own munge, controller and two slurmd, in namespaces of their own. The folder that
`tools/deps slurm` prints lies over /usr there, so that everything is where Debian puts it; nobody outside sees any of it, and
a SLURM that the machine has is neither seen nor disturbed. What still runs at the end goes with the namespace.
"""
import contextlib
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys

from support.waiting import equal, expect, until

HOST, ADDRESS = "slurmhost", "10.9.0.1"
NODES = ("n1", "n2")
CONTROLLER_PORT = 17000
MEMORY_MB = 8000
KILL_WAIT_SECONDS = 30  # SLURM's own default: from SIGTERM to SIGKILL
UP_SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 60


def become_alone():
    """Runs this program again: with processes, network, mounts and host name of its own, and as their first process, whose
    end is that of all others."""
    if os.environ.pop("TJ_ALONE", None) is None:
        command = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc",
                   sys.executable, *sys.argv]
        os.execvpe("unshare", command, {**os.environ, "TJ_ALONE": "1"})


def run(*words, seconds_max=ANSWER_SECONDS_MAX, **more):
    """What a command prints; a Failure when it fails."""
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds_max, **more)
    expect(done.returncode == 0, f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def standing_still(pids):
    """Processes stand still for as long as it lasts, or until SLURM itself lets them go on."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(ANSWER_SECONDS_MAX, lambda: f"{pids} to stand still", lambda: not any(map(is_running, pids)))
    try:
        yield pids
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def status_of(pid):
    """{name: value} of proc_pid_status(5); nothing of a process that has gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(re.findall(r"(?m)^(\w+):\s*(\w+)", text))


def is_running(pid):
    return status_of(pid).get("State", "X") not in "TXZ"


def is_asked_to_stop(pid):
    """Whether SIGTERM waits for a process that stands still; true also when it goes on, or has gone."""
    status = status_of(pid)
    return status.get("State") != "T" or bool(int(status["ShdPnd"], 16) >> (signal.SIGTERM - 1) & 1)


class Slurm:
    """In a process that became_alone(); `folder` is empty and stays until the end."""

    def __init__(self, usr, folder):
        self.folder = pathlib.Path(folder)
        self.mount(usr)
        self.connect()
        self.start()
        self.daemons = set(self.processes())

    def mount(self, usr):
        run("mount", "--make-rprivate", "/")
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={usr}:/usr", "/usr")
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        hosts = self.folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n{ADDRESS} {HOST} {' '.join(NODES)}\n")
        run("mount", "--bind", hosts, "/etc/hosts")

    @staticmethod
    def connect():
        """Not by loopback alone: for that, names have no addresses (AI_ADDRCONFIG)."""
        run("hostname", HOST)
        run("sh", "-c", "ip link set lo up && ip link add eth0 type veth peer name eth1 && "
            f"ip address add {ADDRESS}/24 dev eth0 && ip link set eth0 up && ip link set eth1 up")

    def configuration(self):
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={HOST} NodeAddr={ADDRESS} Port={CONTROLLER_PORT + 1 + number} CPUs=2 RealMemory={MEMORY_MB}"
            for number, name in enumerate(NODES))
        return f"""ClusterName=test
SlurmctldHost={HOST}
SlurmctldPort={CONTROLLER_PORT}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait={KILL_WAIT_SECONDS}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool-%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd-%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd-%n.log
{nodes}
PartitionName=main Nodes={",".join(NODES)} Default=YES MaxTime=INFINITE State=UP
"""

    def start(self):
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        configuration = self.folder / "slurm.conf"
        configuration.write_text(self.configuration())
        os.environ["SLURM_CONF"] = str(configuration)
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        os.mkdir("/run/munge", 0o755)
        files = ("key-file=munge.key", "pid-file=munged.pid", "log-file=munged.log", "seed-file=munged.seed")
        run("munged", "--force", *(f"--{file.replace('=', f'={self.folder}/')}" for file in files))
        run("slurmctld-wlm")
        for node in NODES:
            run("slurmd-wlm", "-N", node, "-d", "/usr/sbin/slurmstepd-wlm")
        until(UP_SECONDS_MAX, lambda: "both nodes to be idle: " + self.logs(),
              lambda: self.ask("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * len(NODES))

    @staticmethod
    def ask(*words):
        """What it prints; nothing while the controller is not there."""
        done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_SECONDS_MAX)
        return done.stdout

    def logs(self):
        return "".join(f"\n-- {log.name}\n{log.read_text()[-2000:]}" for log in sorted(self.folder.glob("*.log")))

    @staticmethod
    def processes():
        """{pid: command line} of all but zombies, in this namespace, without this process."""
        found = {}
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                found[int(folder.name)] = words
        return found

    def left_behind(self):
        """What runs beside the daemons: of a job, and slurmstepd, which looks after one."""
        return {pid: words for pid, words in self.processes().items() if pid not in self.daemons}

    def trainings(self):
        """The processes that train."""
        return [pid for pid, words in self.left_behind().items() if re.match(r"(\S*/)?trainer(-engine)? train ", words)]

    def submit(self, script, folder):
        return run("sbatch", "--parsable", script, cwd=folder).strip()

    def state(self, job):
        """PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, ...; with COMPLETING while its tasks are asked to end."""
        return re.search(r"JobState=(\S+)", run("scontrol", "show", "job", job))[1]

    def run_count(self, job):
        """How often it went back into the queue."""
        return int(re.search(r"Restarts=(\d+)", run("scontrol", "show", "job", job))[1])

    def start_again(self, job, restarts, seconds_max):
        """A job that went back into the queue waits two minutes; here only until its last run has gone: otherwise SLURM takes
        the end of that one for the end of the next. It starts in the second after that, as a node refuses a job whose
        credential is not younger, in whole seconds, than the end of its last run ("already killed, do not launch")."""
        until(seconds_max, lambda: f"job {job} to be in the queue again, it is {self.state(job)}: {self.left_behind()}",
              lambda: self.state(job) == "PENDING" and self.run_count(job) == restarts and not self.left_behind())
        run("scontrol", "update", f"JobId={job}", "StartTime=now+1")

    def until_ended(self, job, seconds_max, wanted):
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        until(seconds_max, lambda: f"the end of job {job}: {self.state(job)}", lambda: self.state(job) in ends)
        equal(self.state(job), wanted, f"the state of job {job}")
