"""Two nodes on one machine: network namespaces with a cable (eth0) between them, which can be cut or made bad."""

import os
import subprocess
import sys

ADDRESSES = ("10.0.0.1", "10.0.0.2")


def become_root():
    """Mounts that we make end with us. Whoever is not root plays root in a user namespace, where networks can be made, too."""
    if os.environ.pop("TJ_NODES", None) is None:
        user = ("--user", "--map-root-user") if os.geteuid() != 0 else ()
        command = ["unshare", *user, "--mount", sys.executable, *sys.argv]
        os.execvpe("unshare", command, {**os.environ, "TJ_NODES": "1"})


class Nodes:
    """The namespaces live as long as their holders, which end with us: they read from our pipe."""

    def __init__(self):
        self.holders = [self.hold() for _ in ADDRESSES]
        first, second = (str(holder.pid) for holder in self.holders)
        subprocess.run(
            ["nsenter", "--target", first, "--net", "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0",
             "netns", second],
            check=True,
        )
        for node, address in enumerate(ADDRESSES):
            self.run(node, f"ip link set lo up && ip address add {address}/24 dev eth0 && ip link set eth0 up")

    @staticmethod
    def hold():
        holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout.readline() == "ready\n"
        return holder

    def within(self, node):
        """A command that runs another one on that node."""
        return ["nsenter", "--target", str(self.holders[node].pid), "--net"]

    def run(self, node, script):
        """What it prints."""
        return subprocess.run([*self.within(node), "sh", "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout

    def cut(self):
        """Packets are lost without a word, as in a cable that is pulled out behind a switch."""
        for node in range(len(ADDRESSES)):
            self.run(node, "iptables -A INPUT -i eth0 -j DROP")

    def lose(self, share):
        for node in range(len(ADDRESSES)):
            self.run(node, f"iptables -A INPUT -i eth0 -m statistic --mode random --probability {share} -j DROP")

    def mend(self):
        for node in range(len(ADDRESSES)):
            self.run(node, "iptables -F INPUT")

    def close(self):
        for holder in self.holders:
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()
