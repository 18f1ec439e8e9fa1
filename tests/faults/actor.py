"""The operator under test: the real program, outside the cluster, with the rights that the chart gives it."""
import json
import pathlib
import signal
import subprocess

from support.places import OPERATOR
from support.waiting import expect, until

STOP_SECONDS_MAX = 15


class Operator:
    def __init__(self, server, name, port, token, namespace="", arguments=()):
        """`port` is the server's or a proxy's; `namespace` "" means all."""
        self.folder = pathlib.Path(server.folder)
        self.log = self.folder / f"operator-{name}.log"
        self.token_file = self.folder / f"operator-{name}.token"
        self.kubeconfig = self.folder / f"operator-{name}.conf"
        self.token_file.write_text(token)
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}",
                                                   "certificate-authority": str(self.folder / "ca.crt")}}],
            "users": [{"name": "c", "user": {"tokenFile": str(self.token_file)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}))
        self.command = [OPERATOR, "--kubeconfig", self.kubeconfig, "--listen", "127.0.0.1:0"]
        self.command += arguments
        if namespace:
            self.command += ["--namespace", namespace]
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends it in order; a program that has ended by itself is a failure."""
        code = self.process.poll()
        expect(code is None, f"the operator ended by itself with {code}; its log ends: {self.last_words()}")
        until(STOP_SECONDS_MAX, "the operator to listen to SIGTERM", self.listens_to_sigterm)
        self.process.terminate()
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        expect(code == 0, f"the operator ended with {code} after SIGTERM; its log ends: {self.last_words()}")

    def listens_to_sigterm(self):
        """A process that has only just been started would end by the signal itself."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return int(caught, 16) >> (signal.SIGTERM - 1) & 1

    def last_words(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])
