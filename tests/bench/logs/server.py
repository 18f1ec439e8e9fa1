"""An API server of one job whose workers write their logs at a given rate, over TLS: as much of one as log readers ask for.

Each line has its rank and its number, so that what is lost, doubled or out of order can be counted. Times are those at which a line
was written; sinceTime is taken in whole seconds, as a kubelet takes it. On demand every connection is broken every now and then.
"""
import asyncio
import calendar
import contextlib
import json
import random
import ssl
import time
import urllib.parse

JOB, NAMESPACE, UID = "bench", "default", "00000000-0000-4000-8000-000000000001"
TICK_SECONDS = 0.05
FILLER = "loss 3.1415 tokens/s 12345.6 lr 0.0003 grad-norm 0.98"
KINDS = {"pods": ("Pod", "v1"), "events": ("Event", "v1"), "nodes": ("Node", "v1")}


def stamp(seconds):
    whole = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((seconds - whole) * 1e9):09d}Z"


class Logs:
    """What has been written so far: the times of the lines, the same for all ranks but for a few microseconds."""

    def __init__(self, ranks, rate, seconds, same=False):
        self.ranks, self.rate, self.seconds, self.same = ranks, rate, seconds, same
        self.count = rate * seconds
        self.began = None

    def begin(self):
        self.began = self.began or time.time()

    def written(self):
        return min(self.count, int((time.time() - self.began) * self.rate)) if self.began else 0

    def has_ended(self):
        return self.written() >= self.count

    def time_of(self, number, rank):
        return self.began + number / self.rate + rank * 1e-6

    def text(self, rank, first, last, stamps):
        """Lines from first to before last."""
        out = []
        for number in range(first, last):
            words = f"line {number} {FILLER}" if self.same else f"rank {rank} line {number} {FILLER}"
            out.append(f"{stamp(self.time_of(number, rank))} {words}\n" if stamps else words + "\n")
        return "".join(out).encode()

    def first_since(self, text, rank):
        if not text or not self.began:
            return 0
        since = calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
        first = max(0, int((since - self.began) * self.rate) - 2)
        while first < self.count and self.time_of(first, rank) < since:
            first += 1
        return first


class Server:
    def __init__(self, logs, break_every=0.0, seed=1):
        self.logs, self.break_every, self.random = logs, break_every, random.Random(seed)
        self.writers = set()
        self.broken = 0
        self.log_requests = 0

    # Objects.

    def pod(self, rank):
        name = f"{JOB}-worker-{rank}"
        ended = self.logs.has_ended()
        began = stamp(self.logs.began or time.time())[:19] + "Z"
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": began}} if ended else {
            "running": {"startedAt": began}}
        labels = {"job-name": JOB, "kubebrain.io/trainingjob": JOB, "kubebrain.io/worker-index": str(rank), "kubebrain.io/attempt": "0"}
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"{UID[:-3]}{rank + 100:03d}", "labels": labels,
                             "resourceVersion": "2" if ended else "1", "creationTimestamp": began},
                "spec": {"nodeName": "n1", "containers": [{"name": "training", "image": "x"}]},
                "status": {"phase": "Succeeded" if ended else "Running",
                           "conditions": [{"type": "Ready", "status": "False" if ended else "True"}],
                           "containerStatuses": [{"name": "training", "ready": not ended, "restartCount": 0, "started": not ended,
                                                  "containerID": f"containerd://{rank}", "image": "x", "imageID": "", "state": state}]}}

    def job(self):
        ended = self.logs.has_ended()
        return {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob",
                "metadata": {"name": JOB, "namespace": NAMESPACE, "uid": UID, "generation": 1},
                "spec": {"replicaSpecs": {"Worker": {"replicas": self.logs.ranks, "template": {"spec": {"containers": [
                    {"name": "training", "image": "x"}]}}}}},
                "status": {"phase": "Succeeded" if ended else "Running", "reason": "WorkersSucceeded" if ended else "WorkersRunning",
                           "observedGeneration": 1, "attempt": 0}}

    def discovery(self, path):
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        if path == "/api/v1":
            return {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list", "watch"]},
                {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]}]}
        return None

    # Answers.

    async def serve(self, reader, writer):
        self.writers.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, OSError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                await self.answer(writer, head.split(" ", 2)[1])
        self.writers.discard(writer)
        writer.close()

    async def answer(self, writer, target):
        url = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(url.query))
        parts = url.path.strip("/").split("/")
        if parts[-1] == "log":
            return await self.send_log(writer, int(parts[-2].rsplit("-", 1)[1]), query)
        if query.get("watch") in ("true", "1"):
            return await self.send_watch(writer, parts[-1])
        found = self.discovery(url.path)
        if found is None and parts[-1] == "pods":
            found = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                     "items": [self.pod(rank) for rank in range(self.logs.ranks)]}
        elif found is None and parts[-2] == "pods":
            found = self.pod(int(parts[-1].rsplit("-", 1)[1]))
        elif found is None and parts[-2] == "trainingjobs":
            found = self.job()
        elif found is None and parts[-1] in KINDS:
            found = {"kind": KINDS[parts[-1]][0] + "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        body = json.dumps(found or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                                    "message": f"{url.path} not found"}).encode()
        status = "200 OK" if found else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    async def begin_chunks(self, writer, kind):
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        await writer.drain()

    async def send_chunk(self, writer, data):
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()

    async def send_log(self, writer, rank, query):
        self.log_requests += 1
        self.logs.begin()
        stamps = query.get("timestamps") == "true"
        following = query.get("follow") == "true"
        at = self.logs.first_since(query.get("sinceTime", ""), rank)
        if "tailLines" in query:
            at = max(at, self.logs.written() - int(query["tailLines"]))
        await self.begin_chunks(writer, "text/plain")
        while True:
            written = self.logs.written()
            if written > at:
                await self.send_chunk(writer, self.logs.text(rank, at, written, stamps))
                at = written
            if at >= self.logs.count or not following:
                break
            await asyncio.sleep(TICK_SECONDS)
        await self.send_chunk(writer, b"")

    async def send_watch(self, writer, resource):
        await self.begin_chunks(writer, "application/json")
        if resource != "pods":
            await asyncio.sleep(3600)
        kind = "ADDED"
        while True:
            ended = self.logs.has_ended()
            if kind == "ADDED" or ended:
                lines = [json.dumps({"type": kind, "object": self.pod(rank)}) for rank in range(self.logs.ranks)]
                await self.send_chunk(writer, ("\n".join(lines) + "\n").encode())
                kind = "MODIFIED"
            await asyncio.sleep(3600 if ended else TICK_SECONDS)

    async def break_connections(self):
        while self.break_every:
            await asyncio.sleep(self.break_every)
            for writer in list(self.writers):
                if self.random.random() < 0.25 and not self.logs.has_ended():
                    self.broken += 1
                    writer.transport.abort()


async def run(server, certificate, key, ready):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls, limit=1 << 20)
    ready(listener.sockets[0].getsockname()[1])
    await asyncio.gather(listener.serve_forever(), server.break_connections())
