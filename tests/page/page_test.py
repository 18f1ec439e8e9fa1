"""The page of `tj ui` in a headless Chromium, over a real small job; tests/page/run starts it.

Screenshots of both widths and both themes are left in the folder that TJ_PAGE_SHOTS names (build/test/page).
"""
import http.client
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

from browser import Browser, BrowserError
from jobs import ATTACK, DEADLINE_S, LOG_ATTACK, RealJob, made_up_run

TJ, AXE = "", ""  # the program, and axe-core's file
SHOTS = pathlib.Path(os.environ.get("TJ_PAGE_SHOTS", "build/test/page")).resolve()
WIDTHS = {"narrow": 400, "wide": 1600}
HEIGHT = 1000
JOB = "#/job/default/seen"


class Ui:
    """A running `tj ui`."""

    def __init__(self, *arguments, **env):
        self.process = subprocess.Popen([TJ, "ui", *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
        self.address = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.address)
        self.port, self.token = parts.port, urllib.parse.parse_qs(parts.query)["token"][0]
        self.base = f"http://127.0.0.1:{self.port}"

    def close(self):
        self.process.terminate()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()

    def ask(self, path, method="GET", **headers):
        """Status, headers and body; the Host is the right one unless `headers` says another."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{self.port}", **names}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        return found

    def authorized(self, path, **headers):
        return self.ask(path, Authorization=f"Bearer {self.token}", **headers)


class Served:
    """A running `tj serve`, and what a browser's page or a script asks it. Its names are those of loopback."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([TJ, "serve", "--listen", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[-1])
        self.base = f"http://127.0.0.1:{self.port}"

    def close(self):
        """Everything that it said of callers."""
        self.process.terminate()
        said = self.process.communicate(timeout=DEADLINE_S)[0]
        return said

    def ask(self, path, method="GET", content=None, **headers):
        """Status, headers and the JSON of the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if content is not None:
            method, names = "POST", {"Origin": self.base, "Content-Type": "application/json", **names}
        connection.request(method, path, body=None if content is None else json.dumps(content), headers=names)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), json.loads(answer.read())
        connection.close()
        return found

    def sign_in(self, token, namespace=""):
        """The headers of whoever has signed in."""
        status, headers, content = self.ask("/api/sign-in", content={"token": token, "namespace": namespace})
        if status != 200:
            raise AssertionError(f"{status}: {content}")
        return {"Cookie": headers["Set-Cookie"].partition(";")[0]}


class Doors(unittest.TestCase):
    """Who is let in."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tj-page-")
        cls.ui = Ui("--local", XDG_STATE_HOME=cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.ui.close()
        shutil.rmtree(cls.folder)

    def test_nobody_without_the_token(self):
        for path in ("/", "/app.js", "/api/jobs", "/api/jobs/default/seen/log"):
            status, _, body = self.ui.ask(path)
            self.assertEqual(status, 401, path)
            self.assertIn("open the address that tj ui printed", body)
        self.assertEqual(self.ui.ask("/?token=" + "0" * 64)[0], 403)
        self.assertEqual(self.ui.ask("/api/jobs", Authorization="Bearer x")[0], 403)

    def test_the_address_gives_a_cookie_that_lets_in(self):
        status, headers, _ = self.ui.ask(f"/?token={self.ui.token}")
        self.assertEqual((status, headers["Location"]), (303, "/"))
        cookie = headers["Set-Cookie"]
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=Strict", cookie)
        status, headers, body = self.ui.ask("/", Cookie=cookie.partition(";")[0])
        self.assertEqual(status, 200)
        self.assertIn("<title>TrainingJobs</title>", body)
        self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
        self.assertEqual(headers["Cache-Control"], "no-store")

    def test_no_other_host_and_no_other_origin(self):
        for host in ("evil.example", f"evil.example:{self.ui.port}", "127.0.0.1", f"127.0.0.1:{self.ui.port + 1}"):
            self.assertEqual(self.ui.authorized("/api/jobs", Host=host)[0], 403, host)
        for origin in ("http://evil.example", "null", f"http://localhost:{self.ui.port}", f"https://127.0.0.1:{self.ui.port}"):
            self.assertEqual(self.ui.authorized("/api/jobs", Origin=origin)[0], 403, origin)
        for site in ("cross-site", "same-site"):
            self.assertEqual(self.ui.authorized("/api/jobs", Sec_Fetch_Site=site)[0], 403, site)
        self.assertEqual(self.ui.authorized("/api/jobs", Origin=self.ui.base, Sec_Fetch_Site="same-origin")[0], 200)

    def test_it_changes_nothing_and_has_nothing_else(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertEqual(self.ui.ask("/api/jobs", method, Authorization=f"Bearer {self.ui.token}")[0], 405, method)
        for path in ("/api", "/api/pods", "/../cli/main.cc", "/api/jobs/default/none", "/api/jobs/default/none/log", "/etc/passwd"):
            self.assertEqual(self.ui.authorized(path)[0], 404, path)

    def test_it_listens_on_loopback_only(self):
        listening = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        hosts = {row.split()[1].split(":")[0] for row in listening if row.split()[1].endswith(f":{self.ui.port:04X}")}
        self.assertEqual(hosts, {"0100007F"})

    def test_an_occupied_port_is_said(self):
        second = subprocess.run([TJ, "ui", "--local", "--port", str(self.ui.port)], capture_output=True, text=True, timeout=DEADLINE_S,
                                check=False)
        self.assertEqual(second.returncode, 2)
        self.assertRegex(second.stderr, rf"^cannot listen at 127.0.0.1:{self.ui.port}: .*in use")


class OtherPage(http.server.BaseHTTPRequestHandler):
    """A page of another origin on the same machine."""

    def do_GET(self):
        body = b"<!doctype html><title>other</title><p>other page</p>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Page(unittest.TestCase):
    """What a person sees, in one browser. The stories stand alone: each brings the job to where it wants it."""

    @classmethod
    def setUpClass(cls):
        SHOTS.mkdir(parents=True, exist_ok=True)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.job = RealJob(TJ, cls.folder)
        cls.addClassCleanup(cls.job.close)
        cls.ui = Ui("--out", str(cls.job.out), "--out", str(made_up_run(cls.folder / "made-up")),
                    XDG_STATE_HOME=str(cls.job.state))
        cls.addClassCleanup(cls.ui.close)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.size(WIDTHS["wide"], HEIGHT)
        cls.browser.open(cls.ui.address)
        cls.steps = 0

    def show(self, place):
        self.browser.open(self.ui.base + "/" + place)
        self.browser.wait_for("document.querySelector('main h1')")

    def steps_more(self, count, attempt=0):
        for _ in range(count):
            type(self).steps += 1
            self.job.order(0, attempt, f"step {self.steps} {5.5 / (1 + 0.2 * self.steps):.4f}")

    def points(self):
        return f"Number(document.querySelector('.plot').dataset.points) >= {self.steps}"

    def test_1_the_list_shows_jobs_and_names_are_text(self):
        self.show("#/")
        self.browser.wait_for("[...document.querySelectorAll('.jobs a')].some((link) => link.textContent === 'seen')")
        names = self.browser.evaluate("[...document.querySelectorAll('.jobs a')].map((link) => link.textContent)")
        self.assertEqual(names, ["seen", ATTACK])
        self.browser.wait_for("document.querySelector('.phase[data-phase=Running]')")
        self.browser.evaluate("[...document.querySelectorAll('.jobs a')].at(-1).click()")
        self.browser.wait_for(f"document.querySelector('h1')?.textContent.includes({json.dumps(ATTACK)})")
        self.browser.wait_for(f"document.querySelector('.message').textContent.includes({json.dumps(ATTACK)})")
        self.browser.wait_for(f"[...document.querySelectorAll('td')].some((cell) => cell.textContent === {json.dumps(ATTACK)})")
        self.assertEqual(self.browser.evaluate("[window.hacked === undefined, document.querySelectorAll('main img, main script').length]"),
                         [True, 0])

    def test_2_a_curve_grows(self):
        self.show(JOB)
        self.steps_more(4)
        self.browser.wait_for(self.points())
        self.assertTrue(self.browser.evaluate("document.querySelector('.plot canvas').width > 200"))
        self.steps_more(4)
        self.browser.wait_for(self.points())
        said = self.browser.evaluate("document.querySelector('.plot').ariaLabel")
        self.assertRegex(said, rf"^Loss over time, {self.steps} points: from 4.583 to 2.115, ")

    def test_3_a_log_follows_and_its_lines_are_text(self):
        self.show(JOB)
        self.browser.wait_for("document.querySelector('.lines')?.textContent.includes('worker 0 of attempt 0 is there')")
        for number in range(200):
            self.job.order(0, 0, f"say line {number}")
        self.job.order(0, 0, "say " + LOG_ATTACK)
        plain = LOG_ATTACK.replace("\x1b[31m", "").replace("\x1b[0m", "")
        self.browser.wait_for(f"document.querySelector('.lines').lastElementChild?.textContent === {json.dumps(plain)}")
        numbers = self.browser.evaluate("[...document.querySelectorAll('.lines > div')].map((line) => line.textContent)")
        self.assertEqual([line for line in numbers if line.startswith("line ")], [f"line {number}" for number in range(200)])
        self.assertTrue(self.browser.evaluate("""(() => { const box = document.querySelector('.lines');
          return box.scrollTop + box.clientHeight > box.scrollHeight - 50; })()"""), "the end is in sight")
        self.assertEqual(self.browser.evaluate("[window.hacked === undefined, document.querySelectorAll('.lines b, .lines script').length]"),
                         [True, 0])

    def test_4_a_restart_appears_in_the_grid(self):
        self.show(JOB)
        self.browser.wait_for("document.querySelectorAll('.bars .bar.running').length === 3")
        self.job.order(1, 0, "end 42")
        self.browser.wait_for("document.querySelectorAll('.bars .bar[data-attempt=\"1\"].running').length === 3")
        first = self.browser.evaluate("""[...document.querySelectorAll('.grid tbody tr')].map(
          (row) => row.querySelectorAll('.bar.first').length)""")
        self.assertEqual(first, [0, 1, 0])
        self.assertIn("failed first, exit code 42", self.browser.evaluate("document.querySelector('.bar.first').title"))
        self.browser.wait_for("document.body.innerText.includes('rank 1 on node') && document.body.innerText.includes('failed first: ExitCode')")
        self.browser.wait_for("document.querySelector('.lines').textContent.includes('worker 0 of attempt 1 is there')")
        before = self.steps
        self.steps_more(12, attempt=1)
        self.job.order(0, 1, f"save {self.steps}")
        self.browser.wait_for(self.points())
        self.assertGreater(before, 0)
        self.browser.wait_for(f"document.body.innerText.includes('/checkpoints/step-{self.steps:06}')")
        self.browser.wait_for("document.querySelectorAll('.plot canvas').length === 3")
        self.assertEqual(self.browser.evaluate("document.querySelector('.facts progress').value"), round(100 * self.steps / 40))

    def test_5_all_can_be_reached_with_the_keyboard(self):
        self.show(JOB)
        self.browser.wait_for("document.querySelectorAll('.grid tbody button').length === 3")
        for _ in range(40):
            self.browser.press("Tab")
            if self.browser.evaluate("document.activeElement.matches('.grid tbody tr:nth-child(3) button')"):
                break
        self.browser.press("Enter")
        self.browser.wait_for("document.querySelector('#log-rank').value === '2'")
        self.browser.wait_for("document.querySelector('.lines').textContent.includes('worker 2 of attempt')")
        self.assertTrue(self.browser.evaluate("document.activeElement.matches('.lines')"))

    def test_6_both_widths_and_themes_and_axe_finds_nothing(self):
        axe = pathlib.Path(AXE).read_text()
        for theme in ("light", "dark"):
            self.browser.system_theme(theme)
            for width_name, width in WIDTHS.items():
                self.browser.size(width, HEIGHT)
                for place_name, place in (("list", "#/"), ("job", JOB)):
                    with self.subTest(theme=theme, width=width, place=place_name):
                        self.look_at(place, f"{place_name}-{width_name}-{theme}.png", width, axe)
        self.browser.size(WIDTHS["wide"], HEIGHT)

    def look_at(self, place, shot, width, axe):
        self.show(place)
        self.browser.wait_for("document.querySelector('.jobs a, .lines > div')")
        if place == JOB:
            self.browser.wait_for("document.querySelectorAll('.bars .bar').length >= 3 && document.querySelector('.plot canvas')")
        # Two frames: what was measured has been drawn.
        self.browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.browser.screenshot(SHOTS / shot)
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
        self.browser.evaluate(axe + "; null")
        found = self.browser.evaluate("""axe.run(document).then((result) => result.violations.map(
          (one) => [one.id, one.help, one.nodes.map((node) => node.html.slice(0, 160) + ' ' + node.failureSummary)]))""")
        self.assertEqual(found, [])

    def test_7_the_theme_can_be_chosen_against_the_system(self):
        self.browser.system_theme("light")
        self.show("#/")
        back = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.evaluate(back)
        self.browser.evaluate("""(() => { const choice = document.querySelector('#theme'); choice.value = 'dark';
          choice.dispatchEvent(new Event('change')); })()""")
        dark = self.browser.evaluate(back)
        self.assertNotEqual(light, dark)
        self.browser.system_theme("dark")
        self.browser.evaluate("""(() => { const choice = document.querySelector('#theme'); choice.value = '';
          choice.dispatchEvent(new Event('change')); })()""")
        self.assertEqual(self.browser.evaluate(back), dark)

    def test_8_nothing_is_asked_of_anybody_else(self):
        self.show(JOB)
        asked = {url for url in self.browser.requests if not url.startswith(("data:", "blob:", "about:"))}
        self.assertGreater(len(asked), 10)
        self.assertEqual({url for url in asked if not url.startswith(self.ui.base + "/")}, set())
        made_up = urllib.parse.quote(ATTACK, safe="") + "/log"  # it has no log: its name can't be a file's
        self.assertEqual([text for text in self.browser.complaints if made_up not in text], [])

    def test_9_another_page_learns_nothing(self):
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherPage)
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.browser.open(f"http://127.0.0.1:{other.server_address[1]}/")
        with self.assertRaises(BrowserError):
            self.browser.evaluate(f"fetch('{self.ui.base}/api/jobs', {{credentials: 'include'}}).then((answer) => answer.status)")
        status = self.browser.evaluate(
            f"fetch('{self.ui.base}/api/jobs', {{credentials: 'include', mode: 'no-cors'}}).then((answer) => answer.type, () => 'failed')")
        self.assertIn(status, ("opaque", "failed"))
        loaded = self.browser.evaluate(f"""new Promise((done) => {{ const script = document.createElement('script');
          script.onload = () => done('loaded'); script.onerror = () => done('refused'); script.src = '{self.ui.base}/app.js';
          document.head.append(script); }})""")
        self.assertEqual(loaded, "refused")

    def test_9_run_that_was_killed_does_not_run(self):
        self.job.process.kill()
        self.show("#/")
        self.browser.wait_for("document.querySelector('.phase[data-phase=Interrupted]')")
