"""Stories of the real tj: commands about jobs on runs of `tj run`, and its help for shells and for man.

usage: local_jobs_test.py TJ [unittest arguments]
"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

import tj_test
from tj_test import DEADLINE_S, Story

TIMESTAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "


class LocalRuns(Story):
    def setUp(self):
        super().setUp()
        # Nobody's cluster: without one the local runs are meant.
        self.nobody = {"HOME": str(self.folder), "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}

    def waiting(self):
        process, lines, arrived = self.start("run", "-f", "waits.yaml")
        self.wait_for_lines(lines, arrived, "[worker-0] ready", "[worker-1] ready")
        done = self.tj("wait", "waits", "--local", "--for", "phase=Running", "--timeout", "60s")
        self.assertEqual(done.returncode, 0, done.stderr)
        return process

    def test_a_run_is_listed_while_it_lives_and_its_deletion_ends_it(self):
        process = self.waiting()
        listed = self.tj("list", **self.nobody)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("no cluster is configured", listed.stderr)
        self.assertRegex(listed.stdout, r"^NAME   PHASE    READY .*\nwaits  Running  2/2 .*\n$")
        job = json.loads(self.tj("list", "--local", "-o", "json").stdout)["items"][0]
        self.assertEqual((job["kind"], job["metadata"]["name"]), ("TrainingJob", "waits"))
        status = self.tj("status", "trainingjob/waits", "--local").stdout
        self.assertRegex(status, r"phase +Running \(WorkersRunning\): 2 of 2 workers have started\n")
        self.assertRegex(status, r"\n1     Running  yes    0 ")
        self.assertIn("trainingjob/waits", self.tj("events", "waits", "--local").stdout)
        self.assertIn("waits-worker-1", self.tj("top", "waits", "--local").stdout)
        refused = self.tj("suspend", "waits", "--local")
        self.assertEqual(refused.returncode, 2)
        late = self.tj("wait", "waits", "--local", "--timeout", "1s")
        self.assertEqual(late.returncode, 124, late.stderr)
        deleted = self.tj("delete", "waits", "--local")
        self.assertEqual((deleted.returncode, deleted.stderr), (0, ""))
        self.assertEqual(process.wait(DEADLINE_S), 143)
        self.assert_workers_ended()
        self.assertEqual(self.tj("list", "--local").stdout, "no local runs\n")
        self.assertEqual(self.tj("delete", "waits", "--local").returncode, 3)
        self.assertTrue((self.folder / "out/waits/objects.json").exists())

    def test_a_run_that_is_killed_is_interrupted(self):
        process = self.waiting()
        process.kill()
        process.wait(DEADLINE_S)
        self.assertRegex(self.tj("list", "--local").stdout, r"waits  Interrupted  2/2 ")
        self.assertEqual(self.tj("status", "waits", "--watch", "--local").returncode, 1)
        self.assertEqual(self.tj("wait", "waits", "--local").returncode, 1)

    def test_a_watch_follows_a_run_to_its_end(self):
        process = self.waiting()
        watch, lines, arrived = self.start("status", "waits", "--watch", "--local")
        with arrived:
            self.assertTrue(arrived.wait_for(lambda: lines, DEADLINE_S))
        self.assertRegex(lines[0], TIMESTAMP + r"job waits: Running \(2/2 ready\), attempt 0$")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 130)
        self.assertEqual(watch.wait(DEADLINE_S), 1)
        with arrived:
            self.assertTrue(arrived.wait_for(lambda: "Interrupted" in lines[-1], DEADLINE_S), lines)

    def test_what_has_ended_can_be_asked_for(self):
        self.assertEqual(self.tj("run", "-f", "one-fails.yaml").returncode, 1)
        self.assertEqual(self.tj("run", "-f", "env-dump.yaml", "--out", "there").returncode, 0)
        self.assertEqual(self.tj("wait", "env-dump", "--local").returncode, 0)
        self.assertEqual(self.tj("wait", "one-fails", "--local").returncode, 1)
        self.assertEqual(self.tj("wait", "one-fails", "--local", "--for", "condition=failed").returncode, 0)
        status = self.tj("status", "one-fails", "--local").stdout
        self.assertRegex(status, r"failure +rank 1 of attempt 0: ExitCode, exit code 3, on node .*the disk is full\n")
        self.assertIn("WorkerFailed", self.tj("events", "one-fails", "--local").stdout)
        names = self.tj("list", "--local", "-o", "name").stdout
        self.assertEqual(names, "trainingjob.kubebrain.io/env-dump\ntrainingjob.kubebrain.io/one-fails\n")
        missing = self.tj("status", "env-dmp", "--local")
        self.assertEqual(missing.returncode, 3)
        self.assertIn("did you mean env-dump?", missing.stderr)
        objects = json.loads((self.folder / "there/objects.json").read_text())
        self.assertEqual(sorted(objects), ["events", "jobs", "pods"])
        self.assertEqual([pod["metadata"]["name"] for pod in objects["pods"]], ["env-dump-worker-0", "env-dump-worker-1"])

    def test_on_a_terminal_the_status_is_drawn_in_place(self):
        self.assertEqual(self.tj("run", "-f", "env-dump.yaml").returncode, 0)
        drawn = tj_test.Run.on_terminal(self, "status", "env-dump", "--watch", "--local")
        self.assertTrue(drawn.startswith("\x1b[?2026h"), drawn)
        self.assertIn("Succeeded (WorkersSucceeded)", drawn)
        self.assertTrue(drawn.endswith("\x1b[J\x1b[?2026l"), drawn)
        self.assertNotIn("\x1b", self.tj("status", "env-dump", "--watch", "--local").stdout)

    def test_two_runs_do_not_share_a_folder(self):
        self.waiting()
        process, lines, arrived = self.start("run", "-f", "waits.yaml")
        with arrived:
            self.assertTrue(arrived.wait_for(lambda: any("another tj run has this folder" in line for line in lines), DEADLINE_S))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), 143)
        self.assertRegex(self.tj("list", "--local").stdout, r"waits  Running ")

    def test_names_that_can_be_no_jobs_are_refused(self):
        for name in ("../etc", "pod/x", "A", ""):
            self.assertEqual(self.tj("status", name, "--local").returncode, 2, name)


class Help(Story):
    def commands(self):
        listed = self.tj("--help").stdout.partition("Subcommands:\n")[2].partition("\n\n")[0]
        names = re.findall(r"^  (\S+)", listed, re.MULTILINE)
        self.assertIn("status", names)
        return names

    def completed(self, *words):
        answer = self.tj("__complete", "--", *words)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return [line.partition("\t")[0] for line in answer.stdout.splitlines()[1:]]

    def test_every_command_has_examples_and_is_completed(self):
        names = self.commands()
        self.assertEqual(sorted(self.completed("")), sorted(names))
        page = self.tj("man").stdout
        for name in names:
            text = self.tj(name, "--help").stdout
            self.assertIn("Examples:", text, name)
            flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text.partition("Options:")[2].partition("Examples:")[0]))
            self.assertLessEqual(set(self.completed(name, "--")), flags | {"--no-wait"}, name)
            self.assertIn(f'.SS "tj {name}'.replace("-", "\\-"), page)

    def test_a_command_that_is_none_is_told_with_those_that_are_near(self):
        done = self.tj("statsu", "a")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "tj: there is no command statsu; did you mean status? tj --help lists all of them\n")

    def test_names_of_jobs_are_completed(self):
        self.assertEqual(self.tj("run", "-f", "env-dump.yaml").returncode, 0)
        self.assertEqual(self.completed("status", "--local", "e"), ["env-dump"])
        self.assertEqual(self.completed("list", "-o", "y"), ["yaml"])
        self.assertEqual(self.tj("__complete", "--", "run", "-f", "").stdout.splitlines()[0], "files")

    def test_bash_completes_with_the_script(self):
        script = self.folder / "tj.bash"
        script.write_text(self.tj("completion", "bash").stdout)

        def reply(*words):
            quoted = " ".join(f"'{word}'" for word in words)
            asked = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _tj_complete; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            done = subprocess.run(["bash", "-c", asked], cwd=self.folder, env=self.env(), capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(reply(tj_test.TJ, "stat"), ["status"])
        self.assertEqual(reply(tj_test.TJ, "list", "--out"), ["--output"])
        self.assertEqual(reply(tj_test.TJ, "list", "--output", "=", "na"), ["name"])
        self.assertEqual(reply(tj_test.TJ, "run", "-f", "one-f"), ["one-fails.yaml"])

    def test_zsh_and_fish_take_their_scripts(self):
        for shell in ("zsh", "fish"):
            with self.subTest(shell):
                program = shutil.which(shell)
                if program is None:
                    self.skipTest(f"{shell} is not here (tools/deps apt)")
                script = self.folder / f"tj.{shell}"
                script.write_text(self.tj("completion", shell).stdout)
                checked = subprocess.run([program, "-n", script], capture_output=True, text=True, timeout=DEADLINE_S)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_fish_completes_with_the_script(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not here (tools/deps apt)")
        script = self.folder / "tj.fish"
        script.write_text(self.tj("completion", "fish").stdout)
        asked = f"source {script}; complete -C 'tj stat'"
        path = f"{pathlib.Path(tj_test.TJ).parent}:/usr/bin:/bin"
        done = subprocess.run(["fish", "-c", asked], cwd=self.folder, env={**self.env(), "PATH": path, "HOME": str(self.folder)},
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual([line.partition("\t")[0] for line in done.stdout.splitlines()], ["status"], done.stderr)

    def test_the_manual_page_has_no_warnings(self):
        if shutil.which("lexgrog") is None:
            self.skipTest("man-db is not here (tools/deps apt)")
        page = self.folder / "tj.1"
        page.write_text(self.tj("man").stdout)
        env = {**self.env(), "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
        shown = subprocess.run(["man", "--warnings", "-l", page], env=env, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("tj status JOB [OPTION]...", shown.stdout)
        named = subprocess.run(["lexgrog", page], env=env, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(named.returncode, 0, named.stderr)
        self.assertIn('"tj - TrainingJobs from the command line"', named.stdout)

    def test_as_a_plugin_of_kubectl_it_calls_itself_so(self):
        (self.folder / "kubectl-tj").symlink_to(tj_test.TJ)
        done = subprocess.run([self.folder / "kubectl-tj", "list", "--help"], env=self.env(), capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertIn("Usage: kubectl tj list", done.stdout)
        self.assertIn("Usage: tj list", self.tj("list", "--help").stdout)


if __name__ == "__main__":
    tj_test.TJ = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
