"""A small client of the API server for benchmarks and soaks: JSON over one kept connection per thread."""
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


class ApiError(Exception):
    def __init__(self, status, message):
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


class Api:
    """Speaks as the administrator of the API server whose files lie in `folder` (tools/cluster/apiserver)."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.port = int(re.search(r"https://127\.0\.0\.1:(\d+)", (folder / "admin.conf").read_text()).group(1))
        self.tls = ssl.create_default_context(cafile=folder / "ca.crt")
        self.tls.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        self.local = threading.local()

    def connect(self, seconds=CALL_SECONDS_MAX):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=seconds)

    def exchange(self, method, path, body, content_type):
        """(response, its bytes)."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connect()
        elif time.monotonic() > self.local.used + IDLE_SECONDS_MAX:
            connection.close()  # the request opens it again
        self.local.used = time.monotonic()
        try:
            connection.request(method, path, body, {"Content-Type": content_type} if body else {})
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
            raise ApiError(response.status, f"{method} {path}: {message}")
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
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body, content_type=MERGE_PATCH):
        return self.call("PATCH", path, body, content_type)

    def delete(self, path, options=None):
        """True where there was something to delete."""
        try:
            self.call("DELETE", path, options)
            return True
        except ApiError as error:
            if error.status == 404:
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
