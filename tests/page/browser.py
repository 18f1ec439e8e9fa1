"""A headless Chromium, driven over the DevTools protocol through a pipe: no driver, no socket, no library.
https://chromedevtools.github.io/devtools-protocol/
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

DEADLINE_S = 30
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
         "--remote-debugging-pipe"]


class BrowserError(Exception):
    pass


class Browser:
    """One page. What it asked for and what it complained of is kept: `requests` (URLs) and `complaints`."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-page-browser-"))
        to_browser, self.out = os.pipe()
        self.inward, from_browser = os.pipe()
        program = shutil.which("chromium")
        if program is None:
            raise BrowserError("no chromium: tools/deps page installs it")
        command = [program, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"]
        # Chromium takes the pipe at the descriptors 3 and 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "chromium", *command],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.bytes = b""
        self.last_id = 0
        self.requests, self.complaints = [], []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.inward)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 2 * DEADLINE_S
        while True:
            answer = self.receive(end, method)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self.take_event(answer)

    def receive(self, end, what):
        while b"\0" not in self.bytes:
            ready, _, _ = select.select([self.inward], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"{what}: no answer from chromium")
            news = os.read(self.inward, 1 << 20)
            if not news:
                raise BrowserError(f"{what}: chromium has ended")
            self.bytes += news
        message, _, self.bytes = self.bytes.partition(b"\0")
        return json.loads(message)

    def take_event(self, event):
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"].get("exception", {}).get("description")))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it becomes."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression[:200]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        """Until it is true, looked at each 50 ms in the page itself."""
        value = self.evaluate(f"""new Promise((resolve) => {{
          const end = performance.now() + {DEADLINE_S * 1000};
          const look = () => {{
            let value = false;
            try {{ value = Boolean({expression}); }} catch (error) {{ value = false; }}
            if (value || performance.now() > end) resolve(value); else setTimeout(look, 50);
          }};
          look();
        }})""")
        if not value:
            text = self.evaluate("document.body.innerText")
            raise BrowserError(f"never true: {expression}\nthe page says:\n{text}\ncomplaints: {self.complaints}")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def system_theme(self, theme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def press(self, key):
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Enter": 13, "Tab": 9, " ": 32}[key]
        params = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))
