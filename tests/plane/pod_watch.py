"""When pods came, ran and went, seen through one watch of a namespace. It does not parse the events, so that watching
takes next to nothing from what is watched."""
import http.client
import re
import socket
import threading
import time

from support.client import pods

EVENT = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED)"')
UID = re.compile(rb'"uid":"([^"]+)"')
VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
PHASE = b'"phase":"'
CHUNK_BYTES = 256 * 1024
WATCH_SECONDS_MAX = 3000


class PodWatch:
    """Times are of time.monotonic(), keys are uids: a pod that comes again under its name is another one."""

    def __init__(self, client, namespace):
        self.client, self.path = client, pods(namespace)
        self.created, self.running, self.gone = {}, {}, {}
        self.changed = threading.Condition()
        self.trouble = None
        self.closed = False
        self.version = client.get(self.path + "?limit=1")["metadata"]["resourceVersion"]
        self.open()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def open(self):
        self.connection = self.client.connect(WATCH_SECONDS_MAX)
        self.connection.request("GET", f"{self.path}?watch=1&resourceVersion={self.version}")
        self.response = self.connection.getresponse()

    def read(self):
        while not self.closed and not self.trouble:
            rest = b""
            try:
                while chunk := self.response.read1(CHUNK_BYTES):
                    *lines, rest = (rest + chunk).split(b"\n")
                    self.note(lines)
                # The server ends the watch of one that does not keep up, as may happen on a busy machine.
                self.open()
            except (OSError, http.client.HTTPException) as error:
                with self.changed:
                    self.trouble = error
                    self.changed.notify_all()

    def note(self, lines):
        now = time.monotonic()
        with self.changed:
            for line in lines:
                kind, uid = EVENT.match(line), UID.search(line)
                if not kind or not uid:
                    self.trouble = RuntimeError(f"watch of pods: {line[:200]}")
                    break
                self.version = VERSION.search(line).group(1).decode()
                if kind.group(1) == b"DELETED":
                    self.gone.setdefault(uid.group(1), now)
                    continue
                self.created.setdefault(uid.group(1), now)
                at = line.rfind(PHASE) + len(PHASE)
                if line.startswith(b'Running"', at):
                    self.running.setdefault(uid.group(1), now)
            self.changed.notify_all()

    def wait(self, seen, count, seconds, before=frozenset()):
        """The time at which `count` pods that are not of `before` were in `seen` (created, running or gone)."""
        def count_now():
            return sum(uid not in before for uid in seen) if before else len(seen)
        with self.changed:
            self.changed.wait_for(lambda: self.trouble or count_now() >= count, seconds)
            if count_now() >= count:
                return sorted(at for uid, at in seen.items() if uid not in before)[count - 1]
            raise self.trouble or TimeoutError(
                f"after {seconds} s only {count_now()} of {count} pods: created {len(self.created)}, "
                f"running {len(self.running)}, gone {len(self.gone)}")

    def close(self):
        self.closed = True
        self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
