"""All changes of a list, over as many watches as it takes: a server ends each of them after some minutes, or sooner."""
import contextlib
import http.client
import json
import socket
import time

WATCH_SECONDS_MAX = 3000
AWAY_SECONDS_MAX = 30  # a server that does not answer for so long has gone
RETRY_SECONDS = 0.02


class Gone(Exception):
    """The server has forgotten what came after the version, or does not answer any more: changes may be missing."""


class Watch:
    """`path` may have a query. Iterate over it: (type, object) of each change after `version`, until stop()."""

    def __init__(self, client, path, version):
        self.client, self.version, self.stopped = client, version, False
        self.path = f"{path}{'&' if '?' in path else '?'}watch=1&allowWatchBookmarks=true&resourceVersion="
        self.connection = None
        self.ended = 0  # watches that the server has ended

    def __iter__(self):
        away_since = None
        while not self.stopped:
            try:
                for line in self.lines():
                    away_since = None
                    yield from self.read(json.loads(line))
                self.ended += 1
            except (OSError, http.client.HTTPException) as error:
                away_since = away_since or time.monotonic()
                if time.monotonic() > away_since + AWAY_SECONDS_MAX and not self.stopped:
                    raise Gone(f"no answer for {AWAY_SECONDS_MAX} s: {error}") from error
                time.sleep(RETRY_SECONDS)
            finally:
                self.connection.close()

    def lines(self):
        self.connection = self.client.connect(WATCH_SECONDS_MAX)
        self.connection.request("GET", self.path + self.version, headers=self.client.headers())
        answer = self.connection.getresponse()
        if answer.status == 410:
            raise Gone(answer.read().decode(errors="replace"))
        if answer.status != 200:
            raise OSError(f"HTTP {answer.status}")
        return (line for line in answer if line.endswith(b"\n"))  # the last one may have been cut

    def read(self, event):
        if event["type"] == "ERROR":
            raise Gone(event["object"].get("message"))
        self.version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            yield event["type"], event["object"]

    def stop(self):
        self.stopped = True
        sock = self.connection and self.connection.sock
        if sock:
            with contextlib.suppress(OSError):  # the server, or who reads, may have closed it just now
                sock.shutdown(socket.SHUT_RDWR)  # wakes who reads


def list_and_watch(client, path):
    """(the objects that are there, the watch of what comes after them)."""
    listed = client.get(path)
    return listed["items"], Watch(client, path, listed["metadata"]["resourceVersion"])
