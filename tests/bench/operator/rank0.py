"""What rank 0 of each job serves at /progress, by one small server for all of them: their pods have the address
127.0.0.1 (measures.at_loopback)."""
import contextlib
import http.server
import json
import threading
import time

STEPS = 1_000_000
DOCUMENT = {"attempt": 0, "phase": "step", "steps": STEPS, "loss": 3.12, "tokensPerSecond": 1234.5, "mfu": 0.41,
            "etaSeconds": 86400, "heartbeatAgeSeconds": 0.4,
            "lastCheckpoint": {"step": 0, "path": "/checkpoints/example/step-000000000"}}


class Rank0(http.server.BaseHTTPRequestHandler):
    began = time.monotonic()

    def do_GET(self):
        """A run that moves: a step each second."""
        text = json.dumps(DOCUMENT | {"step": int(time.monotonic() - self.began)}).encode()
        self.send_response(200 if self.path == "/progress" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # the operator asks 64 at a time


@contextlib.contextmanager
def answering():
    """The port where it answers, until the end of the block."""
    with Server(("127.0.0.1", 0), Rank0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
