"""`tj serve` over a real API server: people with tokens of ServiceAccounts, each of whom may read one namespace. Then in a
browser: signing in, the list, another namespace, signing out."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import page_test
from browser import Browser
from cluster_test import APISERVER, JOB, ROOT, answer_once
from support.definition import wait_until_established

RULES = [{"apiGroups": ["kubebrain.io"], "resources": ["trainingjobs"], "verbs": ["get", "list", "watch"]},
         {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]}]


def account_of(team):
    """A namespace, a ServiceAccount that may look at its jobs, and a job."""
    place = {"name": team, "namespace": team}
    kinds = "rbac.authorization.k8s.io"
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
            {"apiVersion": f"{kinds}/v1", "kind": "Role", "metadata": place, "rules": RULES},
            {"apiVersion": f"{kinds}/v1", "kind": "RoleBinding", "metadata": place,
             "roleRef": {"apiGroup": kinds, "kind": "Role", "name": team},
             "subjects": [{"kind": "ServiceAccount", **place}]},
            {**JOB, "metadata": {"name": f"job-of-{team}", "namespace": team}}]


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        page_test.SHOTS.mkdir(parents=True, exist_ok=True)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-page-served-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.addClassCleanup(subprocess.run, [APISERVER, "down", cls.folder], check=False, capture_output=True)
        subprocess.run([APISERVER, "up", cls.folder], check=True, stdout=subprocess.DEVNULL)
        cls.kubectl("apply", "-f", str(ROOT / "manifests/crd"))
        wait_until_established(cls.kubectl)
        teams = ("red", "blue", "gone")
        objects = [item for team in teams for item in account_of(team)]
        cls.kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": objects})
        cls.tokens = {team: cls.kubectl("create", "token", team, "-n", team).strip() for team in teams}
        server = cls.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
        cls.page = page_test.Served("--server", server, "--ca", str(cls.folder / "ca.crt"), "--check-every", "1")
        cls.addClassCleanup(cls.page.close)

    @classmethod
    def kubectl(cls, *arguments, given=None):
        cache = pathlib.Path(os.environ.get("TRAININGJOB_CACHE", pathlib.Path.home() / ".cache/trainingjob"))
        done = subprocess.run([cache / "bin/kubectl", f"--kubeconfig={cls.folder}/admin.conf", *arguments],
                              input=None if given is None else json.dumps(given), text=True, check=False, capture_output=True,
                              timeout=page_test.DEADLINE_S)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {arguments}: {done.stderr}")
        return done.stdout

    def until(self, who, path, condition):
        return answer_once(condition, lambda: self.page.ask(path, **who)[::2])

    def comes_to_see(self, who, *jobs):
        self.until(who, "/api/jobs", lambda status, content: sorted(job["name"] for job in content.get("jobs", [])) == sorted(jobs))

    def test_1_a_token_that_is_gone_ends_its_session(self):
        who = self.page.sign_in(self.tokens["gone"], "gone")
        self.comes_to_see(who, "job-of-gone")
        self.kubectl("delete", "serviceaccount", "gone", "-n", "gone")
        type(self).gone = who

    def test_2_each_sees_what_their_token_may_read(self):
        red, blue = self.page.sign_in(self.tokens["red"], "red"), self.page.sign_in(self.tokens["blue"], "blue")
        self.comes_to_see(red, "job-of-red")
        self.comes_to_see(blue, "job-of-blue")
        self.assertEqual(self.page.ask("/api/session", **red)[2]["user"], "system:serviceaccount:red:red")
        for namespace in ("blue", ""):
            self.assertEqual(self.page.ask("/api/namespace", content={"namespace": namespace}, **red)[0], 200)
            said = self.until(red, "/api/jobs", lambda _, content: content["problem"] != "")
            self.assertEqual(said["jobs"], [])
            self.assertIn('User "system:serviceaccount:red:red" cannot list resource "trainingjobs"', said["problem"])
        self.assertEqual(self.page.ask("/api/jobs/blue/job-of-blue", **red)[0], 404)

    def test_3_a_proxy_may_show_a_token_with_each_request(self):
        red = {"Authorization": f"Bearer {self.tokens['red']}"}
        self.assertEqual(self.page.ask("/api/namespace", content={"namespace": "red"}, **red)[0], 200)
        self.comes_to_see(red, "job-of-red")

    def test_4_nobody_else_is_let_in(self):
        self.assertEqual(self.page.ask("/api/jobs")[0], 401)
        for token in ("x", self.tokens["red"][:-4] + "AAAA", ""):
            status, headers, content = self.page.ask("/api/sign-in", content={"token": token})
            self.assertEqual((status, content["sign_in"], headers.get("Set-Cookie")), (401, True, None))
            self.assertEqual(self.page.ask("/api/jobs", Authorization=f"Bearer {token}")[0], 401)
        self.assertEqual(self.page.ask("/api/sign-in", content={"token": self.tokens["red"]}, Origin="http://evil.example")[0], 403)
        self.assertEqual(self.page.ask("/api/jobs", Host="evil.example")[0], 403)

    def test_5_in_a_browser(self):
        browser = Browser()
        self.addCleanup(browser.close)
        axe = pathlib.Path(page_test.AXE).read_text()
        for width in page_test.WIDTHS.values():
            browser.size(width, page_test.HEIGHT)
            browser.open(self.page.base + "/")
            browser.wait_for("document.querySelector('.sign-in #token')")
            self.look(browser, axe, f"sign-in-{width}.png", width)
        self.fill(browser, "wrong", "red")
        browser.wait_for("document.querySelector('.sign-in .message').textContent.includes('does not take this token')")
        self.fill(browser, self.tokens["red"], "red")
        browser.wait_for("document.querySelector('.jobs a')?.textContent === 'job-of-red'")
        self.assertEqual(browser.evaluate("document.querySelector('.caller .user').textContent"), "system:serviceaccount:red:red")
        self.assertEqual(browser.evaluate("document.cookie"), "", "no script can read the session")
        for name, width in page_test.WIDTHS.items():
            browser.size(width, page_test.HEIGHT)
            self.look(browser, axe, f"served-{name}.png", width)
        browser.evaluate("document.querySelector('.jobs a').click()")
        browser.wait_for("document.querySelector('h1')?.textContent.includes('job-of-red')")
        browser.open(self.page.base + "/")
        browser.wait_for("document.querySelector('.jobs a')")
        browser.evaluate("(() => { document.querySelector('#namespace').value = 'blue'; document.querySelector('.caller').requestSubmit(); })()")
        browser.wait_for("document.querySelector('#problem').textContent.includes('cannot list resource')")
        browser.wait_for("document.querySelectorAll('.jobs a').length === 0")
        browser.evaluate("document.querySelector('#sign-out').click()")
        browser.wait_for("document.querySelector('.sign-in .message')?.textContent === 'You have signed out.'")
        self.assertEqual(browser.evaluate("fetch('/api/jobs').then((answer) => answer.status)"), 401)
        asked = [url for url in browser.requests if not url.startswith(("data:", "blob:", "about:", self.page.base + "/"))]
        self.assertEqual(asked, [])
        self.assertEqual([url for url in browser.requests if self.tokens["red"] in url], [], "a token in an address")
        self.assertEqual([text for text in browser.complaints if "401" not in text], [])

    def fill(self, browser, token, namespace):
        browser.evaluate(f"""(() => {{ document.querySelector('#token').value = {json.dumps(token)};
          document.querySelector('#first-namespace').value = {json.dumps(namespace)};
          document.querySelector('.sign-in').requestSubmit(); }})()""")

    def look(self, browser, axe, shot, width):
        browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        browser.screenshot(page_test.SHOTS / shot)
        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), width)
        browser.evaluate(axe + "; null")
        self.assertEqual(browser.evaluate("axe.run(document).then((result) => result.violations.map((one) => [one.id, one.help]))"), [])

    def test_6_the_session_of_the_token_that_is_gone_has_ended(self):
        """The server itself remembers for some seconds that a token is good."""
        said = self.until(self.gone, "/api/jobs", lambda status, _: status == 401)
        self.assertIn("the cluster does not take your token any more", said["error"])

    def test_7_what_it_says_holds_no_token(self):
        said = self.page.close()
        self.assertIn("signed in: system:serviceaccount:red:red\n", said)
        self.assertEqual([team for team, token in self.tokens.items() if token in said], [])
