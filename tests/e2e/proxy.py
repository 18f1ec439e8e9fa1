"""A reverse proxy that ends TLS, as an Ingress controller does: Debian's nginx in a pod, with the very configuration that docs/page.md
prints, and a client that reaches the page through it."""
import base64
import hashlib
import http.client
import json
import pathlib
import re
import ssl
import tempfile

import world
from world import equal, get, kubectl, until

NAMESPACE = "edge"
HOST = "jobs.example.org"
IMAGE = "trainingjob-test/nginx:1"
PORT = 443
SECONDS_MAX = 60
DOCUMENT = world.ROOT / "docs/page.md"
INSTALL = ("apt-get update -q && apt-get install -q -y --no-install-recommends nginx-light && rm -rf /var/lib/apt/lists/* /var/cache/apt/* "
           "/etc/nginx/sites-enabled/default")
# With a base of our own no registry has answered: then apt of this machine says where Debian's packages are (tools/images).
APT_OF_THIS_MACHINE = ("--volume", "/etc/apt:/etc/apt:ro", "--volume", "/usr/share/keyrings:/usr/share/keyrings:ro")


def archive():
    """The docker archive of the proxy's image: the base of our own images and Debian's nginx-light."""
    base = world.run(world.ROOT / "tools/images", "base").strip()
    key = hashlib.sha256(f"{base} {INSTALL}".encode()).hexdigest()[:12]
    path = world.CACHE / "images" / f"nginx-{key}.tar"
    if not path.exists():
        buildah = world.ROOT / "tools/buildah"
        container = world.run(buildah, "from", base).strip()
        volumes = APT_OF_THIS_MACHINE if base.startswith("localhost/") else ()
        world.run(buildah, "run", "--isolation", "chroot", *volumes, container, "--", "/bin/sh", "-c", INSTALL)
        world.run(buildah, "commit", "-q", "--rm", container, IMAGE)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        world.run(buildah, "push", "-q", IMAGE, f"docker-archive:{part}:docker.io/{IMAGE}")
        part.rename(path)
    return path


def documented():
    """The configuration that the document prints, and the values of the chart that go with it."""
    text = DOCUMENT.read_text()
    (settings,) = re.findall(r"^```nginx\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (values,) = re.findall(r"^```yaml\n(page:\n.*?)^```", text, re.DOTALL | re.MULTILINE)
    return settings, values


def certificate(folder):
    """Key and certificate of the host, which is its own authority."""
    key, cert = pathlib.Path(folder, "tls.key"), pathlib.Path(folder, "tls.crt")
    world.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
              "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", cert)
    return key, cert


def pod():
    def mount(name, path):
        return {"name": name, "mountPath": path, "readOnly": True}
    container = {"name": "nginx", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                 "command": ["nginx", "-g", "daemon off; error_log /dev/stderr;"],
                 "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                 "volumeMounts": [mount("settings", "/etc/nginx/conf.d"), mount("tls", "/etc/nginx/tls")]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nginx", "labels": {"app": "nginx"}},
            "spec": {"terminationGracePeriodSeconds": 2, "containers": [container],
                     "volumes": [{"name": "settings", "configMap": {"name": "nginx"}}, {"name": "tls", "secret": {"secretName": "tls"}}]}}


class Proxy:
    """The pod; and a browser's requests to it, by name and with TLS."""

    def __init__(self):
        settings, _ = documented()
        kubectl("create", "namespace", NAMESPACE)
        with tempfile.TemporaryDirectory(prefix="tj-e2e-proxy-") as folder:
            key, cert = certificate(folder)
            self.tls = ssl.create_default_context(cadata=cert.read_text())
            data = {name.name: base64.b64encode(name.read_bytes()).decode() for name in (key, cert)}
        world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nginx"}, "data": {"page.conf": settings}},
                    {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "tls"}, "data": data},
                    pod(), namespace=NAMESPACE)
        kubectl("wait", "pod/nginx", "-n", NAMESPACE, "--for=condition=Ready", f"--timeout={SECONDS_MAX}s")
        self.address = get("pod", "nginx", NAMESPACE)["status"]["podIP"]

    def open(self, path, content=None, **headers):
        """The connection and its answer, whose body may not have come yet. The server's certificate must be that of the host."""
        connection = TlsConnection(self)
        method, names = "GET", {"Host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if content is not None:
            method, names = "POST", {"Origin": f"https://{HOST}", "Content-Type": "application/json", **names}
        connection.request(method, path, body=None if content is None else json.dumps(content), headers=names)
        return connection, connection.getresponse()

    def ask(self, path, content=None, **headers):
        """Status, headers and body; JSON where it is some."""
        connection, answer = self.open(path, content, **headers)
        body = answer.read().decode()
        connection.close()
        is_json = answer.getheader("Content-Type", "").startswith("application/json")
        return answer.status, answer.headers, json.loads(body) if is_json else body

    def until(self, what, path, condition, **headers):
        def look():
            status, _, content = self.ask(path, **headers)
            return content if status == 200 and condition(content) else None
        return until(SECONDS_MAX, what, look)

    @staticmethod
    def remove():
        kubectl("delete", "namespace", NAMESPACE, "--timeout=90s")


class TlsConnection(http.client.HTTPConnection):
    """To the proxy's address, by the host's name."""

    def __init__(self, proxy):
        super().__init__(proxy.address, PORT, timeout=SECONDS_MAX)
        self.proxy = proxy

    def connect(self):
        super().connect()
        self.sock = self.proxy.tls.wrap_socket(self.sock, server_hostname=HOST)


class EventStream:
    """Server-sent events of an answer, as they come: a read that brings none within the deadline is a failure."""

    def __init__(self, proxy, path, **headers):
        self.connection, self.answer = proxy.open(path, **headers)
        equal((self.answer.status, self.answer.getheader("Content-Type")), (200, "text/event-stream; charset=utf-8"), "the log's head")
        self.lines = []
        self.last_id = ""

    def until_line(self, wanted):
        """Reads on until a log line is that."""
        while wanted not in self.lines:
            text = self.answer.readline().decode()
            world.expect(text, f"the stream ended before the line {wanted!r}: {self.lines}")
            if text.startswith("id: "):
                self.last_id = text[len("id: "):].rstrip("\n")
            if text.startswith("data: "):
                self.lines += json.loads(text[len("data: "):]).get("lines", [])

    def close(self):
        self.connection.close()
