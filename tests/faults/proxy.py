"""Stands between the operator and the API server, counts the operator's calls, and lets a story break them."""
import collections
import dataclasses
import http.client
import socket
import ssl
import threading

HEAD_BYTES_MAX = 64 * 1024
CHUNK_BYTES = 16 * 1024
WATCH_SECONDS_MAX = 600
NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length", "keep-alive")


@dataclasses.dataclass(frozen=True)
class Call:
    number: int  # from 1, of all calls through this proxy
    method: str
    path: str
    token: str
    body: bytes

    @property
    def is_watch(self):
        return "watch=1" in self.path or "watch=true" in self.path

    @property
    def what(self):
        """As an RBAC rule says it: "create pods", "patch trainingjobs/status"."""
        parts = self.path.partition("?")[0].strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if parts[:1] == ["namespaces"]:
            parts = parts[2:]
        reading = "watch" if self.is_watch else "get" if len(parts) > 1 else "list"
        verb = {"GET": reading, "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[self.method]
        return f"{verb} {parts[0]}" + (f"/{parts[2]}" if len(parts) > 2 else "")

    @property
    def is_write(self):
        return self.method != "GET"


class Faults:
    """What a story may do to a call. This one does nothing."""

    def before(self, call):
        """False: the connection is cut, and the server never hears of the call."""
        return True

    def after(self, call, status):
        """False: the connection is cut, and the caller never hears the answer."""
        return True

    def chunk(self, call, data):
        """What is passed on of a watch's bytes, and whether the stream goes on."""
        return data, True


class Proxy:
    def __init__(self, folder, port):
        self.upstream_port = port
        self.tls_up = ssl.create_default_context(cafile=folder / "ca.crt")
        self.tls_down = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls_down.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.faults = Faults()
        self.lock = threading.Lock()
        self.calls = []
        self.tokens = collections.Counter()
        self.open = {}  # socket -> is a watch's
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()
        self.cut()

    def cut(self, only_watches=False):
        """Ends the connections that are open."""
        with self.lock:
            ends = [end for end, is_watch in self.open.items() if is_watch or not only_watches]
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself

    def count(self, since=0, writes_only=False):
        with self.lock:
            return sum(1 for call in self.calls[since:] if call.is_write or not writes_only)

    def accept(self):
        while True:
            try:
                end, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(end,), daemon=True).start()

    def note_open(self, end, is_watch=False):
        with self.lock:
            self.open[end] = is_watch

    def serve(self, end):
        upstream = http.client.HTTPSConnection("127.0.0.1", self.upstream_port, timeout=WATCH_SECONDS_MAX,
                                               context=self.tls_up)
        self.note_open(end)
        try:
            down = self.tls_down.wrap_socket(end, server_side=True)
            self.note_open(down)
            end = down
            with down, down.makefile("rb") as reader:
                while self.pass_on(down, reader, upstream):
                    pass
        except (OSError, http.client.HTTPException, ValueError):
            pass  # one of the two is gone: so is the other's connection
        finally:
            with self.lock:
                self.open = {each: watch for each, watch in self.open.items() if each.fileno() >= 0 and each is not end}
            end.close()
            upstream.close()

    def read_call(self, reader):
        line = reader.readline(HEAD_BYTES_MAX).decode()
        if not line:
            return None
        method, path, _ = line.split(" ", 2)
        headers = http.client.parse_headers(reader)
        body = reader.read(int(headers.get("Content-Length") or 0))
        with self.lock:
            call = Call(number=len(self.calls) + 1, method=method, path=path,
                        token=(headers.get("Authorization") or "").removeprefix("Bearer "), body=body)
            self.calls.append(call)
            self.tokens[call.token] += 1
        return call, headers

    def pass_on(self, down, reader, upstream):
        """One call and its answer; False when the connection must end."""
        read = self.read_call(reader)
        if read is None:
            return False
        call, headers = read
        if not self.faults.before(call):
            return False
        kept = {name: value for name, value in headers.items() if name.lower() not in NOT_PASSED_ON}
        upstream.request(call.method, call.path, call.body or None, kept)
        answer = upstream.getresponse()
        if call.is_watch and answer.status == 200:
            return self.stream(call, down, upstream, answer)
        body = answer.read()
        if not self.faults.after(call, answer.status):
            return False
        down.sendall(self.head(answer, f"Content-Length: {len(body)}") + body)
        return True

    def stream(self, call, down, upstream, answer):
        self.note_open(down, is_watch=True)
        if upstream.sock:
            self.note_open(upstream.sock, is_watch=True)
        if not self.faults.after(call, answer.status):
            return False
        down.sendall(self.head(answer, "Transfer-Encoding: chunked"))
        while data := answer.read1(CHUNK_BYTES):
            data, goes_on = self.faults.chunk(call, data)
            if data:
                down.sendall(b"%x\r\n%s\r\n" % (len(data), data))
            if not goes_on:
                return False
        down.sendall(b"0\r\n\r\n")
        self.note_open(down)
        return True

    @staticmethod
    def head(answer, length):
        kept = [f"{name}: {value}" for name, value in answer.getheaders() if name.lower() not in NOT_PASSED_ON]
        return "\r\n".join([f"HTTP/1.1 {answer.status} {answer.reason}", *kept, length, "", ""]).encode()
