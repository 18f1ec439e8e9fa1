"""kubectl and tj with the same kubeconfigs: which server they ask, and what they make of log-in plug-ins that print a token, a
wrong one, an expired one or garbage, that fail, or that are not there.

usage: kubectl_test.py TJ [unittest arguments]
The programs of a cluster are those that tools/deps cluster builds; without them everything is skipped, unless
TJ_REQUIRE_APISERVER=1.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TRAININGJOB_CACHE", pathlib.Path.home() / ".cache/trainingjob")) / "bin"
TJ = ""
DEADLINE_S = 60
API = "client.authentication.k8s.io/v1"


def setUpModule():
    if not (BIN / "kubectl").exists():
        if os.environ.get("TJ_REQUIRE_APISERVER") == "1":
            raise AssertionError(f"{BIN}/kubectl is missing")
        raise unittest.SkipTest("no API server: no programs of a cluster: skipped")


class Pair(unittest.TestCase):
    """Both programs in one folder, with one environment."""
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-kubectl-"))
        self.addCleanup(shutil.rmtree, self.folder)
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and name != "KUBECONFIG"}
        self.env = {**clean, "HOME": str(self.folder), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def run_program(self, *command, **env):
        return subprocess.run([str(part) for part in command], cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True,
                              timeout=DEADLINE_S, stdin=subprocess.DEVNULL)

    def kubectl(self, *arguments, **env):
        return self.run_program(BIN / "kubectl", *arguments, **env)

    def tj(self, *arguments, **env):
        return self.run_program(TJ, "exec", "no-such-job", *arguments, "--", "true", **env)

    def write(self, name, **parts):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **parts}))
        return path


class Files(Pair):
    """Nobody listens at these servers: whom they ask is in what they say."""
    def both_ask(self, server, namespace, *flags, **env):
        minified = self.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server} {.contexts[0].context.namespace}",
                                *[flag for flag in flags if not flag.startswith("-n")], **env)
        self.assertEqual(minified.stdout.split()[0], server, minified.stderr)
        asked = self.tj(*flags, **env)
        self.assertIn(f"GET {server}/api/v1/namespaces/{namespace}/pods/", asked.stderr)
        self.assertEqual(asked.returncode, 5, asked.stderr)

    def test_the_same_server_is_asked(self):
        def cluster(name, port):
            return {"name": name, "cluster": {"server": f"https://127.0.0.1:{port}"}}

        def context(name, cluster, **more):
            return {"name": name, "context": {"cluster": cluster, "user": "u", **more}}

        users = [{"name": "u", "user": {"token": "t"}}]
        one = self.write("one", clusters=[cluster("a", 1)], users=users, contexts=[context("x", "a", namespace="team"), context("y", "b")],
                         **{"current-context": "x"})
        two = self.write("two", clusters=[cluster("a", 2), cluster("b", 3)], users=users, contexts=[context("x", "b")],
                         **{"current-context": "y"})
        self.write(".kube/config", clusters=[cluster("a", 4)], users=users, contexts=[context("x", "a")], **{"current-context": "x"})
        self.both_ask("https://127.0.0.1:4", "default")
        self.both_ask("https://127.0.0.1:1", "team", KUBECONFIG=f"{one}:{two}")
        self.both_ask("https://127.0.0.1:3", "default", KUBECONFIG=f"/nonexistent:{two}:{one}")
        self.both_ask("https://127.0.0.1:3", "default", "--context=y", KUBECONFIG=f"{one}:{two}")
        self.both_ask("https://127.0.0.1:1", "team", f"--kubeconfig={one}", KUBECONFIG=str(two))
        self.both_ask("https://127.0.0.1:1", "other", f"--kubeconfig={one}", "-nother")

    def test_what_leads_nowhere_is_refused_by_both(self):
        one = self.write("one", clusters=[], users=[], contexts=[], **{"current-context": "x"})
        for env in ({"KUBECONFIG": str(one)}, {"KUBECONFIG": str(self.folder)}):
            self.assertEqual(self.kubectl("get", "pods", **env).returncode, 1)
            self.assertEqual(self.tj(**env).returncode, 2)


class PlugIns(Pair):
    @classmethod
    def setUpClass(cls):
        cls.server_folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-kubectl-server-"))
        cls.addClassCleanup(shutil.rmtree, cls.server_folder, ignore_errors=True)
        tool = ROOT / "tools/cluster/apiserver"
        cls.addClassCleanup(subprocess.run, [tool, "down", cls.server_folder], check=False)
        up = subprocess.run([tool, "up", cls.server_folder], capture_output=True, text=True, check=True, timeout=120)
        cls.admin = up.stdout.strip()
        admin = [BIN / "kubectl", "--kubeconfig", cls.admin]
        subprocess.run([*admin, "create", "serviceaccount", "person"], check=True, capture_output=True, timeout=DEADLINE_S)
        cls.token = subprocess.run([*admin, "create", "token", "person"], check=True, capture_output=True, text=True,
                                   timeout=DEADLINE_S).stdout.strip()
        cls.url = subprocess.run([*admin, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"], check=True,
                                 capture_output=True, text=True, timeout=DEADLINE_S).stdout.strip()

    def both(self, script, **exec_fields):
        """What kubectl and tj print on standard error and how often the plug-in ran for each."""
        program = self.folder / "login"
        program.write_text(f"#!/bin/sh\necho run >>{self.folder}/runs\n{script}\n")
        program.chmod(0o755)
        plug_in = {"apiVersion": API, "command": "./login", "interactiveMode": "Never", **exec_fields}
        config = self.write("config", clusters=[{"name": "c", "cluster": {"server": self.url,
                                                                          "certificate-authority": str(self.server_folder / "ca.crt")}}],
                            users=[{"name": "u", "user": {"exec": plug_in}}],
                            contexts=[{"name": "x", "context": {"cluster": "c", "user": "u"}}], **{"current-context": "x"})
        results = []
        for call in (lambda: self.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/p", KUBECONFIG=str(config)),
                     lambda: self.tj(KUBECONFIG=str(config))):
            runs = self.folder / "runs"
            runs.unlink(missing_ok=True)
            done = call()
            self.assertIn(done.returncode, (1, 4), done.stderr)  # kubectl's, and ours for who is refused
            results.append((done.stderr, len(runs.read_text().split()) if runs.exists() else 0))
        return results

    def prints(self, token, **status):
        answer = {"apiVersion": API, "kind": "ExecCredential", "status": {"token": token, **status}}
        return f"printf %s '{json.dumps(answer)}'"

    def test_a_token_is_used(self):
        (kubectl, kubectl_runs), (tj, tj_runs) = self.both(self.prints(self.token))
        for said in (kubectl, tj):
            self.assertIn('User "system:serviceaccount:default:person" cannot get resource "pods"', said)
        self.assertEqual((kubectl_runs, tj_runs), (1, 1))

    def test_a_token_that_the_server_refuses_is_asked_for_again(self):
        (kubectl, kubectl_runs), (tj, tj_runs) = self.both(self.prints("nonsense"))
        self.assertIn("Unauthorized", kubectl)
        self.assertIn("HTTP 401: Unauthorized", tj)
        self.assertEqual((kubectl_runs, tj_runs), (2, 2))

    def test_one_that_has_expired_already_is_used_and_asked_for_again(self):
        (kubectl, _), (tj, tj_runs) = self.both(self.prints(self.token, expirationTimestamp="2020-01-01T00:00:00Z"))
        for said in (kubectl, tj):
            self.assertIn("system:serviceaccount:default:person", said)
        self.assertGreaterEqual(tj_runs, 1)

    def test_one_that_fails_is_named(self):
        (kubectl, _), (tj, _) = self.both("echo 'please log in first' >&2; exit 3")
        self.assertIn("login failed with exit code 3", kubectl)
        self.assertRegex(tj, r"config: users\[u\]\.user\.exec: \S*/login: failed with exit code 3")
        for said in (kubectl, tj):
            self.assertIn("please log in first", said)

    def test_garbage_is_said(self):
        (kubectl, _), (tj, _) = self.both("echo hello")
        self.assertIn("decoding stdout", kubectl)
        self.assertRegex(tj, r"users\[u\]\.user\.exec: \S*/login printed no ExecCredential")

    def test_another_version_is_said(self):
        (kubectl, _), (tj, _) = self.both(self.prints("t"), apiVersion=API + "beta1")
        for said in (kubectl, tj):
            self.assertIn(f"is configured to use API version {API}beta1", said)
            self.assertIn(f"returned version {API}", said)

    def test_one_that_is_not_there_says_how_to_get_it(self):
        (kubectl, _), (tj, _) = self.both("", command="no-such-login", installHint="Get it from example.com")
        for said in (kubectl, tj):
            self.assertIn("no-such-login", said)
            self.assertIn("not found", said)
            self.assertIn("Get it from example.com", said)


if __name__ == "__main__":
    TJ = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
