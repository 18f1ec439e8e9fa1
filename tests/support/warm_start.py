"""Programs that take long to load, started as forks of one that is loaded (tests/trainer/warm_start.cc): for whoever starts them, as
subprocess.Popen does."""
import array
import atexit
import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import threading
import time

PRELOADED = os.environ.get("TJ_WARM_START", "")  # the library; without it each program is loaded anew
BUILD = pathlib.Path(PRELOADED).parents[2] if PRELOADED else None  # whose programs load; a test's own may not
PROGRAM = "trainer-engine"
# What a library or the loader reads before main(): a program with others than the server has is loaded anew.
READ_AT_LOAD = re.compile(r"(LD|OMP|GOMP|KMP|MKL|ONEDNN|DNNL|ATEN|GLIBC|MALLOC|TORCH|C10|PYTORCH)_")
KNOWN = {"stdin", "stdout", "stderr", "cwd"}  # of Popen's arguments
LOOK_SECONDS = 0.05
ANSWER_SECONDS_MAX = 120  # to load, on a busy machine

_servers = {}
_servers_lock = threading.Lock()


def start(command, environment, text=True, **popen):
    """As subprocess.Popen; None where the program must be loaded for itself."""
    command = [os.fspath(word) for word in command]
    program = pathlib.Path(os.fsdecode(command[0]))
    if not BUILD or program.name != PROGRAM or BUILD not in program.parents or set(popen) - KNOWN:
        return None
    if any(isinstance(word, bytes) for word in (*command, *environment.values())):
        return None
    read_at_load = tuple(sorted((name, value) for name, value in environment.items() if READ_AT_LOAD.match(name)))
    if any(name == "LD_PRELOAD" for name, _ in read_at_load):
        return None
    with _servers_lock:
        key = command[0], read_at_load
        if key not in _servers:
            _servers[key] = _Server(*key)
    return ForkedProcess(_servers[key], command, environment, text, **popen)


class _Server:
    def __init__(self, program, read_at_load):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = dict(read_at_load) | {"LD_PRELOAD": PRELOADED, "TJ_WARM_START": str(theirs.fileno())}
        self.process = subprocess.Popen([program], env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        self.lock = threading.Lock()
        self.ended = {}  # status by process
        self.started = []
        atexit.register(self.close)

    def close(self):
        self.socket.close()  # which ends it
        self.process.wait(ANSWER_SECONDS_MAX)

    def _take(self):
        """Whatever it has said so far."""
        while select.select([self.socket], [], [], 0)[0]:
            said = self.socket.recv(1 << 12).decode().split()
            if not said:
                raise RuntimeError(f"{self.process.args[0]}: the loaded one has ended, {self.process.wait()}")
            if said[0] == "started":
                self.started.append(int(said[1]))
                self.ended.pop(int(said[1]), None)  # of an earlier process with this number
            else:
                self.ended[int(said[1])] = os.waitstatus_to_exitcode(int(said[2]))

    def start(self, command, environment, folder, files):
        texts = [str(len(command)), *command, folder, *(f"{name}={value}" for name, value in environment.items())]
        request = b"".join(os.fsencode(text) + b"\0" for text in texts)
        with self.lock:
            self.socket.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
            end = time.monotonic() + ANSWER_SECONDS_MAX
            while not self.started:
                if time.monotonic() > end:
                    raise RuntimeError(f"{command[0]} was not loaded in {ANSWER_SECONDS_MAX} s")
                select.select([self.socket], [], [], LOOK_SECONDS)
                self._take()
            return self.started.pop()

    def status_of(self, pid):
        """None while it runs."""
        with self.lock:
            self._take()
            return self.ended.get(pid)

    def wait_for_news(self, seconds):
        select.select([self.socket], [], [], min(seconds, LOOK_SECONDS))


class ForkedProcess:
    """What tests use of subprocess.Popen."""

    def __init__(self, server, command, environment, text, stdin=None, stdout=None, stderr=None, cwd=None):
        self.server, self.args, self.returncode = server, command, None
        ours, theirs, opened = [], [], []
        for number, asked in enumerate((stdin, stdout, stderr)):
            mine = None
            if asked == subprocess.PIPE:
                read, write = os.pipe()
                inside, outside = (read, write) if number == 0 else (write, read)
                opened.append(inside)
                mine = open(outside, ("w" if number == 0 else "r") + ("" if text else "b"))
            elif asked is None and number == 0 or asked == subprocess.DEVNULL:
                inside = os.open(os.devnull, os.O_RDWR)
                opened.append(inside)
            elif asked == subprocess.STDOUT:
                inside = theirs[1]
            elif asked is None:
                inside = number
            else:
                inside = asked if isinstance(asked, int) else asked.fileno()
            ours.append(mine)
            theirs.append(inside)
        self.stdin, self.stdout, self.stderr = ours
        try:
            self.pid = server.start(command, environment, cwd or os.getcwd(), theirs)
        finally:
            for file in opened:
                os.close(file)
        self.readers = None

    def poll(self):
        if self.returncode is None:
            self.returncode = self.server.status_of(self.pid)
        return self.returncode

    def wait(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            left = LOOK_SECONDS if end is None else end - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.server.wait_for_news(left)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, input=None, timeout=None):  # noqa: A002 - the name is Popen's
        end = None if timeout is None else time.monotonic() + timeout
        if self.readers is None:
            self.readers = [_Reader(file) for file in (self.stdout, self.stderr)]
        if self.stdin and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                if input:
                    self.stdin.write(input)
        for reader in self.readers:
            reader.thread.join(None if end is None else max(0, end - time.monotonic()))
            if reader.thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout)
        self.wait(None if end is None else max(LOOK_SECONDS, end - time.monotonic()))
        return tuple(reader.text for reader in self.readers)


class _Reader:
    """Of one pipe, to its end."""

    def __init__(self, file):
        self.file, self.text = file, None
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        if self.file and not self.file.closed:
            with self.file:
                self.text = self.file.read()
