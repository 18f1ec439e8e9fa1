"""tests/support: a watch that outlives the server's end of it, waiting, and claims on ports."""
import contextlib
import http.client
import http.server
import io
import json
import pathlib
import sys
import threading
import time
import unittest
import urllib.parse

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("e2e", ".")]
from side import Side  # noqa: E402
from support import ports, unittests, waiting  # noqa: E402
from support.watch import Gone, Watch  # noqa: E402

SECONDS_MAX = 60


def event(kind, version, name="pod"):
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}


class Server(http.server.BaseHTTPRequestHandler):
    """Gives each list its items, and each watch the next of `streams`, and ends it."""
    protocol_version = "HTTP/1.0"  # the connection's end is the answer's

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        server = self.server
        if "watch" not in query:
            return self.answer(200, json.dumps({"items": [], "metadata": {"resourceVersion": "1"}}))
        server.asked.append(query["resourceVersion"][0])
        if not server.streams:
            server.is_over.wait(SECONDS_MAX)  # the last watch stays open
            return self.answer(200, "")
        stream = server.streams.pop(0)
        return self.answer(200, stream) if isinstance(stream, str) else self.answer(stream, "too old")

    def answer(self, code, text):
        with contextlib.suppress(OSError):  # who asked may have gone
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Client:
    def __init__(self, port):
        self.port = port

    def connect(self, seconds=SECONDS_MAX):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    @staticmethod
    def headers():
        return {}

    def get(self, path):
        connection = self.connect()
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())


def lines(*events):
    return "".join(json.dumps(each) + "\n" for each in events)


class Watches(unittest.TestCase):
    def serve(self, *streams):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        server.streams, server.asked, server.is_over = list(streams), [], threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.is_over.set)
        return server, Client(server.server_port)

    def test_it_goes_on_where_the_server_ended_it(self):
        server, client = self.serve(lines(event("ADDED", 5, "a")), lines(event("BOOKMARK", 9)), lines(event("DELETED", 12, "a")))
        watch = Watch(client, "/pods?labelSelector=x", "3")
        seen = []
        for kind, item in watch:
            seen.append((kind, item["metadata"]["name"]))
            if kind == "DELETED":
                break
        self.assertEqual(seen, [("ADDED", "a"), ("DELETED", "a")])
        self.assertEqual(server.asked, ["3", "5", "9"])
        self.assertEqual(watch.ended, 2)

    def test_half_a_line_is_asked_for_again(self):
        whole = lines(event("ADDED", 5, "a"))
        server, client = self.serve(whole[:20], whole)
        self.assertEqual(next(iter(Watch(client, "/pods", "3")))[0], "ADDED")
        self.assertEqual(server.asked, ["3", "3"])

    def test_what_the_server_has_forgotten_is_said(self):
        error = lines({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}})
        for stream in (error, 410):
            _, client = self.serve(stream)
            with self.assertRaisesRegex(Gone, "too old"):
                next(iter(Watch(client, "/pods", "3")))

    def test_an_end_is_no_trouble_for_the_side_of_the_stories(self):
        server, client = self.serve("", "", "", "")
        side = Side()
        side.start(client)
        waiting.until(SECONDS_MAX, "both watches to be open again", lambda: len(server.asked) == 6)
        self.assertTrue(side.still_watches())
        self.assertEqual(side.problems, [])
        server.is_over.set()
        side.stop()


class Waiting(unittest.TestCase):
    def test_it_gives_what_was_found(self):
        found = iter([None, 0, "", 7])
        self.assertEqual(waiting.until(SECONDS_MAX, "seven", lambda: next(found), 0), 7)

    def test_what_never_comes_is_a_failure_with_what_is_there(self):
        began = time.monotonic()
        with self.assertRaisesRegex(waiting.Failure, "waited 0.1 s for 3 pods; there are 2"):
            waiting.until(0.1, lambda: "3 pods; there are 2", lambda: False, 0.01)
        self.assertGreaterEqual(time.monotonic() - began, 0.1)

    def test_a_port_is_claimed_once(self):
        self.assertEqual(len({ports.free_port() for _ in range(20)}), 20)


class Unittests(unittest.TestCase):
    def test_each_test_that_failed_is_told_once_with_its_first_reason(self):
        class Story(unittest.TestCase):
            def test_a_wait(self):
                for part in range(2):
                    with self.subTest(part):
                        waiting.until(0, lambda: f"step {part}: 3\nthe log of the job", lambda: False)

            def test_b_passes(self):
                pass

            @unittest.skip("no GPU")
            def test_c(self):
                pass

        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = unittests.tell(unittest.defaultTestLoader.loadTestsFromTestCase(Story), verbosity=0)
        failed, skipped, closing = said.getvalue().splitlines()[-3:]
        self.assertEqual(code, 1)
        self.assertRegex(failed, r"^FAIL \S+\.test_a_wait: support\.waiting\.Failure: waited 0 s for step 0: 3 the log of the job$")
        self.assertRegex(skipped, r"^SKIP \S+\.test_c: no GPU$")
        self.assertEqual(closing, "1 passed, 1 failed, 1 skipped")


if __name__ == "__main__":
    unittest.main()
