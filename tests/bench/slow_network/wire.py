"""Two nodes with a cable between them that carries only so many bytes a second, each way; its interfaces count what it
carries. The nodes are network namespaces, which end with this process.

  wire.py PEER BYTES    run on both nodes: sends so many and takes as many, at the same time, and prints the seconds
"""
import pathlib
import socket
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "trainer"))
import nodes  # noqa: E402

# A full frame of Ethernet carries so much of TCP with timestamps; the shaper counts frames.
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1448
BURST_BYTES = 128 << 10  # more than the largest packet that a virtual cable is given, 64 KiB
QUEUE_MS = 50
PORT = 29400
PROBE_SECONDS_MAX = 120
PIECE_BYTES = 1 << 16


class Wire(nodes.Nodes):
    def shape(self, goodput):
        """`goodput`: bytes a second of what TCP carries, each way."""
        self.free()
        bits = round(8 * frame_rate(goodput))
        for node in range(len(nodes.ADDRESSES)):
            self.run(node, f"tc qdisc add dev eth0 root tbf rate {bits}bit burst {BURST_BYTES} latency {QUEUE_MS}ms")

    def free(self):
        for node in range(len(nodes.ADDRESSES)):
            self.run(node, "tc qdisc del dev eth0 root 2>/dev/null || true")

    def sent_bytes(self):
        """Of each node, frames and all."""
        return [sent_of(pathlib.Path(f"/proc/{holder.pid}/net/dev").read_text()) for holder in self.holders]

    def exchange_seconds(self, payload_bytes):
        """How long so many bytes take both ways at once: an all-reduce between two, without any computation."""
        begun = [subprocess.Popen([*map(str, [*self.within(node), sys.executable, __file__, peer, payload_bytes])],
                                  stdout=subprocess.PIPE, text=True)
                 for node, peer in enumerate(("-", nodes.ADDRESSES[0]))]
        try:
            said = [process.communicate(timeout=PROBE_SECONDS_MAX)[0] for process in begun]
        finally:
            for process in begun:
                process.kill()
                process.wait()
        if [process.returncode for process in begun] != [0, 0]:
            raise RuntimeError(f"the wire carries nothing: {said}")
        return max(map(float, said))


def frame_rate(goodput):
    return goodput * FRAME_BYTES / PAYLOAD_BYTES


def sent_of(text):
    """Of eth0, by what /proc/net/dev says of a network."""
    return next(int(line.split(":")[1].split()[8]) for line in text.splitlines() if line.strip().startswith("eth0:"))


def connection(peer):
    if peer == "-":
        with socket.create_server(("", PORT)) as server:
            server.settimeout(PROBE_SECONDS_MAX)
            return server.accept()[0]
    deadline = time.monotonic() + PROBE_SECONDS_MAX
    while True:
        try:
            return socket.create_connection((peer, PORT), timeout=PROBE_SECONDS_MAX)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise


def exchange(peer, payload_bytes):
    with connection(peer) as link:
        link.settimeout(PROBE_SECONDS_MAX)
        begun = time.monotonic()
        sender = threading.Thread(target=link.sendall, args=(bytes(payload_bytes),))
        sender.start()
        left = payload_bytes
        while left:
            taken = len(link.recv(min(left, PIECE_BYTES)))
            if taken == 0:
                raise ConnectionError("the other end has closed")
            left -= taken
        sender.join()
        return time.monotonic() - begun


if __name__ == "__main__":
    print(exchange(sys.argv[1], int(sys.argv[2])))
