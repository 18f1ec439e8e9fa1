"""A small client of an API server that tools/cluster has started: JSON over one kept connection per thread."""
import http.client
import json
import pathlib
import re
import ssl
import threading
import time

CALL_SECONDS_MAX = 60
IDLE_SECONDS_MAX = 20  # the server closes a connection that is idle, and a POST must not be sent twice
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Refused(Exception):
    """An answer that is not 2xx."""

    def __init__(self, code, message):
        super().__init__(f"HTTP {code}: {message}")
        self.code, self.message = code, message


class Client:
    """The administrator, whose files lie in `folder`, or whose token it is given."""

    def __init__(self, folder, token=None):
        self.folder = folder = pathlib.Path(folder)
        address = re.search(r"https://([\d.]+):(\d+)", (folder / "admin.conf").read_text())
        self.host, self.port, self.token = address[1], int(address[2]), token
        self.tls = ssl.create_default_context(cafile=folder / "ca.crt")
        if token is None:
            self.tls.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        self.local = threading.local()

    def connect(self, seconds=CALL_SECONDS_MAX):
        return http.client.HTTPSConnection(self.host, self.port, timeout=seconds, context=self.tls)

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def exchange(self, method, path, body, content_type):
        """(response, its bytes)."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connect()
        elif time.monotonic() > self.local.used + IDLE_SECONDS_MAX:
            connection.close()  # the request opens it again
        self.local.used = time.monotonic()
        try:
            connection.request(method, path, body, {**self.headers(), **({"Content-Type": content_type} if body else {})})
            response = connection.getresponse()
            return response, response.read()
        except (http.client.HTTPException, OSError):
            connection.close()  # the next call opens it again
            raise

    def bytes(self, method, path, body=None, content_type="application/json"):
        try:
            response, text = self.exchange(method, path, body, content_type)
        except (http.client.RemoteDisconnected, ConnectionError):
            if method == "POST":
                raise
            # A server may close a connection that was idle for minutes.
            response, text = self.exchange(method, path, body, content_type)
        if response.status >= 300:
            try:
                message = json.loads(text).get("message", "")
            except ValueError:
                message = text[:200].decode(errors="replace")
            raise Refused(response.status, f"{method} {path}: {message}")
        return text

    def call(self, method, path, body=None, content_type="application/json"):
        text = self.bytes(method, path, None if body is None else json.dumps(body), content_type)
        return json.loads(text) if text.startswith(b"{") else text.decode()

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """None where it is missing."""
        try:
            return self.get(path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def create(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body, content_type=MERGE_PATCH):
        return self.call("PATCH", path, body, content_type)

    def delete(self, path, **options):
        """True where there was something to delete."""
        try:
            self.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
            return True
        except Refused as refused:
            if refused.code == 404:
                return False
            raise

    def count(self, path):
        """How many objects a list holds, without fetching them. Only for lists without a selector."""
        page = self.get(f"{path}?limit=1")
        return len(page["items"]) + page["metadata"].get("remainingItemCount", 0)

    def metric(self, name):
        """The sum over all series of one of the server's own metrics."""
        text = self.bytes("GET", "/metrics").decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(name + r"[{ ]", line))


def pods(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def jobs(namespace, name=""):
    return f"/apis/kubebrain.io/v1/namespaces/{namespace}/trainingjobs" + (f"/{name}" if name else "")
