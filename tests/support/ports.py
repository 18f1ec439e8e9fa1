"""Ports for a test's own servers, and for nobody else: another test's, or an outgoing connection of anybody."""

import fcntl
import pathlib
import random
import socket
import tempfile

PORT_MIN, PORT_MAX = 10_000, 29_999  # below those that the kernel gives away (32768) and Kubernetes' node ports (30000)
CLAIMS = pathlib.Path(tempfile.gettempdir(), "tj-test-ports")
claimed = []  # open files: the claims end with this process


def free_port():
    CLAIMS.mkdir(exist_ok=True)
    while True:
        port = random.randint(PORT_MIN, PORT_MAX)
        if claim(port) and can_be_bound(port):
            return port


def claim(port):
    file = open(CLAIMS / str(port), "w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    claimed.append(file)
    return True


def can_be_bound(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
