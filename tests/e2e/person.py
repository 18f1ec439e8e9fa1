"""What a person does in a running job: a command in one rank's container, files out of it, a port into it; with the real kubelet and
its container runtime, which are what a fake can't be."""
import filecmp
import os
import pathlib
import pty
import re
import socket
import subprocess
import tempfile

import stand_in
import world
from side import until_all_run
from support.places import BUILD
from world import equal, expect, until

TJ = BUILD / "cli/tj"
SECONDS_MAX = 60
# Each rank says who it is to whoever connects, and holds a checkpoint of two files.
SCRIPT = r"""
mkdir -p /tmp/checkpoint/step-10 && head -c 20000000 /dev/urandom >/tmp/checkpoint/step-10/model.safetensors
echo "rank $RANK" >/tmp/checkpoint/latest
perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die;
  while ($c = $s->accept) { $line = <$c>; print $c "rank $ENV{RANK} heard $line"; close $c }' &
""" + stand_in.waits_for("visited")


def tj(*arguments, **more):
    return subprocess.run([TJ, *map(str, arguments)], capture_output=True, timeout=SECONDS_MAX, check=False,
                          env=world.with_kubeconfig(), **{"stdin": subprocess.DEVNULL, **more} if "input" not in more else more)


def in_rank(rank, *command, **more):
    return tj("exec", "visited", "--rank", rank, *more.pop("flags", []), "--", *command, **more)


def commands_run():
    for rank in (0, 1):
        said = in_rank(rank, "bash", "-c", "echo out $RANK; echo err >&2; exit 7")
        equal((said.returncode, said.stdout, said.stderr), (7, f"out {rank}\n".encode(), b"err\n"), f"a command in rank {rank}")
    data = os.urandom(3_000_000)
    back = in_rank(0, "cat", flags=["-i"], input=data)
    equal((back.returncode, back.stdout == data), (0, True), "bytes through cat and back")
    none = in_rank(0, "no-such-program")
    expect(none.returncode != 0 and b"no-such-program" in none.stderr, f"a missing program: {none}")
    beyond = in_rank(5, "true")
    expect(beyond.returncode == 3 and b"the job has 2, the last rank is 1" in beyond.stderr, f"a rank too many: {beyond}")


def a_terminal_is_given():
    """On a terminal of our own, which must be as it was afterwards."""
    ours, theirs = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, check=True, timeout=SECONDS_MAX).stdout
    subprocess.run(["stty", "cols", "91", "rows", "17"], stdin=theirs, check=True, timeout=SECONDS_MAX)
    process = subprocess.Popen([TJ, "exec", "visited", "-it", "--", "bash", "-c", "tty; sleep 1; stty size; read -r line; echo got $line; exit 3"],
                               stdin=theirs, stdout=theirs, stderr=theirs, env=world.with_kubeconfig())
    said = b""
    while b"17 91" not in said:
        said += os.read(ours, 4096)
    os.write(ours, b"hello\r")
    equal(process.wait(SECONDS_MAX), 3, f"the exit code of a command with a terminal, which said {said}")
    while b"got hello" not in said:
        said += os.read(ours, 4096)
    after = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, check=True, timeout=SECONDS_MAX).stdout
    equal(after, before, "the terminal's settings")
    expect(b"/dev/pts/" in said, f"no terminal: {said}")
    os.close(ours)
    os.close(theirs)


def files_are_copied():
    with tempfile.TemporaryDirectory(prefix="tj-e2e-cp-") as folder:
        target = pathlib.Path(folder, "out")
        done = tj("cp", "visited:/tmp/checkpoint", target, "--rank", 1)
        equal(done.returncode, 0, f"cp, which said {done.stderr}")
        expect(b"copied 2 files, 20.0 MB" in done.stderr, f"cp did not say how much: {done.stderr}")
        equal((target / "latest").read_text(), "rank 1\n", "a copied file")
        model = target / "step-10/model.safetensors"
        wanted = in_rank(1, "sha256sum", "/tmp/checkpoint/step-10/model.safetensors").stdout.split()[0].decode()
        equal(world.run("sha256sum", model).split()[0], wanted, "the copied checkpoint's checksum")
        single = tj("cp", "visited:/tmp/checkpoint/latest", folder, "--rank", 1)
        equal(single.returncode, 0, f"cp of a file, which said {single.stderr}")
        expect(filecmp.cmp(target / "latest", pathlib.Path(folder, "latest")), "a single file differs")
        missing = tj("cp", "visited:/tmp/none", pathlib.Path(folder, "x"))
        expect(missing.returncode == 1 and b"No such file" in missing.stderr, f"a missing file: {missing}")


def ports_are_forwarded():
    process = subprocess.Popen([TJ, "port-forward", "visited", "--rank", "1", ":8080", ":8081"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=world.with_kubeconfig())
    try:
        ports = [int(re.search(r"127\.0\.0\.1:(\d+) -> 808\d", process.stdout.readline()).group(1)) for _ in range(2)]

        def answer(port):
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
                connection.sendall(b"hello\n")
                return connection.makefile().read()

        until(30, "the pod to answer through its port", lambda: answer(ports[0]) == "rank 1 heard hello\n")
        equal([answer(ports[0]) for _ in range(5)], ["rank 1 heard hello\n"] * 5, "five connections")
        equal(answer(ports[1]), "", "a port that nobody serves")
        equal(answer(ports[0]), "rank 1 heard hello\n", "a connection after one that failed")
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS_MAX)
    equal(process.returncode, 143, f"the end of port-forward, which said {errors}")
    expect("8081" in errors, f"nothing was said of the port that nobody serves: {errors}")


def tj_goes_into_a_running_job():
    world.apply(stand_in.job("visited", SCRIPT))
    until_all_run("visited", 0)
    until(30, "the checkpoints", lambda: all(in_rank(rank, "test", "-e", "/tmp/checkpoint/latest").returncode == 0 for rank in (0, 1)))
    commands_run()
    a_terminal_is_given()
    files_are_copied()
    ports_are_forwarded()
    stand_in.release("visited")
    world.delete_job("visited")
