"""Stories of the real tj program: what a person sees, what it exits with, what it leaves behind.

usage: tj_test.py TJ [unittest arguments]
Expected messages of bad manifests lie beside them in bad/*.txt; TJ_UPDATE_GOLDEN=1 writes them anew.
"""
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TJ = ""
DEADLINE_S = 60


def has_ended(pid):
    """Gone, or a zombie that only waits to be reaped."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Story(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for file in (HERE / "jobs").iterdir():
            shutil.copy(file, self.folder)

    def env(self, **extra):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TJ_", "PET_"))}
        # A plain PATH: version managers put shell scripts before python3 that reorder the environment.
        return {**env, "PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_STATE_HOME": str(self.folder / "state"), **extra}

    def tj(self, *args, **extra_env):
        return subprocess.run([TJ, *args], cwd=self.folder, env=self.env(**extra_env), timeout=DEADLINE_S,
                              capture_output=True, text=True)

    def start(self, *args):
        """Starts tj and returns it with the list that its lines arrive in, and a condition on that list."""
        process = subprocess.Popen([TJ, *args], cwd=self.folder, env=self.env(), stdout=subprocess.PIPE, text=True)
        lines, arrived = [], threading.Condition()

        def read():
            for line in process.stdout:
                with arrived:
                    lines.append(line.rstrip("\n"))
                    arrived.notify_all()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        for end in (process.stdout.close, reader.join, process.wait, process.kill):  # the last one first
            self.addCleanup(end)
        process.reader = reader
        return process, lines, arrived

    def end_of(self, process):
        """Its exit code, once all that it printed has arrived."""
        code = process.wait(DEADLINE_S)
        process.reader.join(DEADLINE_S)
        self.assertFalse(process.reader.is_alive(), "its output does not end")
        return code

    def wait_for_lines(self, lines, arrived, *wanted):
        with arrived:
            there = arrived.wait_for(lambda: all(line in lines for line in wanted), DEADLINE_S)
        self.assertTrue(there, f"{wanted} not among {lines}")

    def assert_workers_ended(self, count=2):
        for rank in range(count):
            pid = int((self.folder / f"pid.{rank}").read_text())
            self.assertTrue(has_ended(pid), f"worker {rank} (process {pid}) still runs")


class Run(Story):
    def test_a_python_script_gets_its_variables_in_order(self):
        result = self.tj("run", "-f", "env-dump.yaml")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for rank in (0, 1):
            prefix = f"[worker-{rank}] "
            shown = [line[len(prefix):] for line in result.stdout.splitlines() if line.startswith(prefix)]
            told = dict(line.split("=", 1) for line in shown if "=" in line)
            port = told["MASTER_PORT"]
            contract = [
                "WORLD_SIZE=2", f"RANK={rank}", "MASTER_ADDR=127.0.0.1", f"MASTER_PORT={port}",
                "NNODES=2", f"NODE_RANK={rank}", "NPROC_PER_NODE=8",
                "PET_NNODES=2", f"PET_NODE_RANK={rank}", "PET_NPROC_PER_NODE=8",
                "PET_MASTER_ADDR=127.0.0.1", f"PET_MASTER_PORT={port}",
                "TRAININGJOB_NAME=env-dump", "TRAININGJOB_NAMESPACE=default",
                f"TRAININGJOB_UID={told['TRAININGJOB_UID']}", "TRAININGJOB_ATTEMPT=0",
                "POD_IP=127.0.0.1", f"NODE_NAME={os.uname().nodename}", f"MINE=rank {rank} of 2"]
            self.assertEqual(shown[shown.index("WORLD_SIZE=2"):], contract)
            log = (self.folder / f"out/env-dump/env-dump-worker-{rank}.log").read_text()
            self.assertEqual(log.splitlines(), shown)
        last = result.stdout.splitlines()[-4:]
        self.assertRegex(last[0], r"^worker-0  Succeeded  0     \d+\.\d      out/env-dump/env-dump-worker-0.log$")
        self.assertRegex(last[1], r"^worker-1  Succeeded  0     \d+\.\d      out/env-dump/env-dump-worker-1.log$")
        self.assertEqual(last[3], "job env-dump: Succeeded (WorkersSucceeded): 2 of 2 workers ended with exit code 0")

    def test_status_changes_are_told(self):
        process, lines, arrived = self.start("run", "-f", "waits.yaml")
        self.wait_for_lines(lines, arrived, "job waits: Running (2/2 workers ready)")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(process), 130)

    def test_last_words_may_be_any_bytes(self):
        (self.folder / "latin.yaml").write_text("""
apiVersion: kubebrain.io/v1
kind: TrainingJob
metadata: {name: latin}
spec:
  replicaSpecs: {Worker: {template: {spec: {containers: [{name: main, image: none, command: [sh, -c, "printf '\\\\351\\\\377'; exit 3"]}]}}}}
  runPolicy: {maxRestarts: 0}
""")
        result = subprocess.run([TJ, "run", "-f", "latin.yaml"], cwd=self.folder, env=self.env(), timeout=DEADLINE_S,
                                capture_output=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        last = result.stdout.decode(errors="replace").splitlines()[-1]
        self.assertTrue(last.endswith("failed first: exit code 3: \ufffd\ufffd"), last)

    def test_a_failing_worker_ends_the_others_and_leaves_nothing(self):
        result = self.tj("run", "-f", "one-fails.yaml", "--out", "there")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("[worker-1] the disk is full\n", result.stdout)
        self.assertRegex(result.stdout, r"worker-0  Stopped  143   \d+\.\d      there/one-fails-worker-0.log\n")
        self.assertRegex(result.stdout, r"worker-1  Failed   3     \d+\.\d      there/one-fails-worker-1.log\n")
        self.assertEqual(result.stdout.splitlines()[-1],
                         f"job one-fails: Failed (WorkerFailed): worker 1 on node {os.uname().nodename} failed first: "
                         "exit code 3: the disk is full")
        self.assert_workers_ended()

    def test_a_command_that_does_not_exist_is_named(self):
        result = self.tj("run", "-f", "no-such-command.yaml")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout.splitlines()[-1], r"^job no-such-command: Failed \(WrongCommand\): worker \d on node .* failed "
                         'first: exit code 127: command not found: "no-such-program" is in no folder of PATH; ')
        self.assertNotIn("Restarting", result.stdout)

    def test_a_script_that_does_not_exist_is_tried_once(self):
        result = self.tj("run", "-f", "missing-script.yaml")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stdout.splitlines()[-1].endswith(
            "failed first: exit code 127: bash: /mnt/project/no-such-script.sh: No such file or directory; "
            "its command can't be run, and a retry would end the same way"), result.stdout)
        self.assertNotIn("Restarting", result.stdout)

    def test_a_restart_that_waits_says_until_when(self):
        began = time.monotonic()
        result = self.tj("run", "-f", "fails-at-once.yaml")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"job fails-at-once: Restarting: .*; restart 1 of 1; attempt 1 begins in 1 s, at \d\d:\d\d:\d\dZ\n")
        self.assertEqual(result.stdout.count("the disk is full\n"), 2, result.stdout)
        self.assertGreaterEqual(time.monotonic() - began, 1)

    def test_ctrl_c_stops_the_job_in_order(self):
        process, lines, arrived = self.start("run", "-f", "waits.yaml")
        self.wait_for_lines(lines, arrived, "[worker-0] ready", "[worker-1] ready")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(process), 130)
        self.wait_for_lines(lines, arrived, "[worker-0] saved", "[worker-1] saved",
                            "tj: stopping job waits; once more kills its workers", "job waits: Interrupted (Ctrl-C)")
        self.assertEqual(lines[-1], "job waits: Interrupted (Ctrl-C)")
        self.assertRegex("\n".join(lines), r"worker-0  Stopped  75 ")
        self.assert_workers_ended()

    def test_a_second_ctrl_c_kills(self):
        process, lines, arrived = self.start("run", "-f", "stubborn.yaml")
        self.wait_for_lines(lines, arrived, "[worker-0] ready", "[worker-1] ready")
        process.send_signal(signal.SIGINT)
        self.wait_for_lines(lines, arrived, "tj: stopping job stubborn; once more kills its workers")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(process), 130)
        self.assertRegex("\n".join(lines), r"worker-1  Stopped  137 ")
        self.assert_workers_ended()

    def test_grace_bounds_how_long_a_worker_may_take(self):
        process, lines, arrived = self.start("run", "-f", "stubborn.yaml", "--grace", "0")
        self.wait_for_lines(lines, arrived, "[worker-0] ready", "[worker-1] ready")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end_of(process), 143)
        self.wait_for_lines(lines, arrived, "stubborn-worker-0: did not end within 0 s of SIGTERM: killed")
        self.assert_workers_ended()

    def test_the_death_of_tj_ends_the_workers(self):
        process, lines, arrived = self.start("run", "-f", "stubborn.yaml")
        self.wait_for_lines(lines, arrived, "[worker-0] ready", "[worker-1] ready")
        pids = [int((self.folder / f"pid.{rank}").read_text()) for rank in (0, 1)]
        watches = [os.pidfd_open(pid) for pid in pids]
        process.kill()
        process.wait(DEADLINE_S)
        for watch in watches:
            ended, _, _ = select.select([watch], [], [], DEADLINE_S)
            self.assertTrue(ended, "a worker outlived tj")
            os.close(watch)

    def test_colours_are_for_terminals_only(self):
        self.assertNotIn("\x1b", self.tj("run", "-f", "env-dump.yaml").stdout)
        coloured = self.on_terminal("run", "-f", "env-dump.yaml")
        self.assertIn("\x1b[36m[worker-0]\x1b[0m RANK=0", coloured)
        self.assertIn("\x1b[35m[worker-1]\x1b[0m RANK=1", coloured)
        self.assertNotIn("\x1b", self.on_terminal("run", "-f", "env-dump.yaml", "--no-color"))
        self.assertNotIn("\x1b", self.on_terminal("run", "-f", "env-dump.yaml", NO_COLOR="1"))

    def on_terminal(self, *args, **extra_env):
        ours, theirs = pty.openpty()
        with subprocess.Popen([TJ, *args], cwd=self.folder, env=self.env(TERM="xterm", **extra_env), stdout=theirs) as process:
            os.close(theirs)
            text = b""
            while True:
                try:
                    text += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
            os.close(ours)
            self.assertEqual(process.wait(DEADLINE_S), 0)
        return text.decode()

    def test_an_earlier_log_is_kept_once(self):
        for _ in range(2):
            self.assertEqual(self.tj("run", "-f", "env-dump.yaml").returncode, 0)
        self.assertEqual(sorted(file.name for file in (self.folder / "out/env-dump").glob("*.log")),
                         ["env-dump-worker-0.log", "env-dump-worker-0.previous.log",
                          "env-dump-worker-1.log", "env-dump-worker-1.previous.log"])

    def test_other_objects_of_the_file_are_named_and_left_out(self):
        both = (self.folder / "env-dump.yaml").read_text() + "---\nkind: ConfigMap\nmetadata: {name: settings}\n---\n"
        (self.folder / "both.yaml").write_text(both)
        result = self.tj("run", "-f", "both.yaml")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[0], "ignored: ConfigMap settings")


class BadManifests(Story):
    def test_each_is_refused_with_its_message_and_nothing_starts(self):
        for manifest in sorted((HERE / "bad").glob("*.yaml")):
            with self.subTest(manifest.name):
                shutil.copy(manifest, self.folder)
                result = self.tj("run", "-f", manifest.name)
                golden = manifest.with_suffix(".txt")
                if os.environ.get("TJ_UPDATE_GOLDEN"):
                    golden.write_text(result.stderr)
                self.assertEqual(result.stderr, golden.read_text())
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertFalse((self.folder / "STARTED").exists())
                self.assertFalse((self.folder / "out").exists())

    def test_files_that_cannot_be_read(self):
        missing = self.tj("run", "-f", "missing.yaml")
        self.assertEqual((missing.returncode, missing.stderr), (2, "missing.yaml: cannot be read: No such file or directory\n"))
        folder = self.tj("validate", "-f", ".")
        self.assertEqual((folder.returncode, folder.stderr), (2, ".: is a folder; it must be a file\n"))
        (self.folder / "huge.yaml").write_text("#" * (4 << 20))
        huge = self.tj("validate", "-f", "huge.yaml")
        self.assertEqual(huge.returncode, 2)
        self.assertIn("huge.yaml: has more than 3145728 bytes", huge.stderr)

    def test_aliases_cannot_blow_up_memory(self):
        bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        bomb += "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
        (self.folder / "bomb.yaml").write_text(bomb)
        result = self.tj("validate", "-f", "bomb.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^bomb.yaml:\d+:\d+: the document has more than 200000 nodes\n$")


class OtherKinds(Story):
    """Of each, other_kinds/*.txt is what standard error says, and *.out what is printed."""

    def golden(self, path, seen):
        if os.environ.get("TJ_UPDATE_GOLDEN"):
            path.write_text(seen)
        self.assertEqual(seen, path.read_text())

    def test_each_is_answered_with_what_to_write_instead(self):
        for manifest in sorted((HERE / "other_kinds").glob("*.yaml")):
            with self.subTest(manifest.name):
                shutil.copy(manifest, self.folder)
                answer = self.tj("validate", "-f", manifest.name)
                self.assertEqual(answer.returncode, 2)
                self.golden(manifest.with_suffix(".txt"), answer.stderr)
                self.golden(manifest.with_suffix(".out"), answer.stdout)
                for printed in filter(None, answer.stdout.split("---\n")):
                    (self.folder / "printed.yaml").write_text(printed)
                    checked = self.tj("validate", "-f", "printed.yaml")
                    self.assertEqual((checked.returncode, checked.stderr), (0, ""), printed)

    def test_none_is_run(self):
        shutil.copy(HERE / "other_kinds" / "job.yaml", self.folder)
        result = self.tj("run", "-f", "job.yaml")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, 'job.yaml: Job "taehv-16gpu-training" (apiVersion batch/v1) must be a TrainingJob '
                         "(apiVersion kubebrain.io/v1); `tj validate` prints what to write instead\n")
        self.assertFalse((self.folder / "out").exists())


class CommandLine(Story):
    def test_validate_says_that_a_manifest_is_valid(self):
        result = self.tj("validate", "-f", "env-dump.yaml")
        self.assertEqual((result.returncode, result.stdout), (0, "env-dump.yaml: TrainingJob env-dump is valid\n"))

    def test_scalars_mean_what_they_mean_to_kubectl(self):
        text = (self.folder / "env-dump.yaml").read_text()
        (self.folder / "core.yaml").write_text(text.replace("replicas: 2", "replicas: 0x2"))
        self.assertEqual(self.tj("validate", "-f", "core.yaml").returncode, 0)
        (self.folder / "yes.yaml").write_text(text.replace('"rank $(RANK) of $(WORLD_SIZE)"', "yes"))
        self.assertEqual(self.tj("validate", "-f", "yes.yaml").stderr,
                         "yes.yaml: spec.replicaSpecs.Worker.template.spec.containers[0].env[0].value: is true; "
                         "it must be a text: put it in quotes\n")
        (self.folder / "text.yaml").write_text(text.replace("replicas: 2", 'replicas: "2"'))
        self.assertEqual(self.tj("validate", "-f", "text.yaml").stderr,
                         'text.yaml: spec.replicaSpecs.Worker.replicas: is "2"; it must be a whole number from 1 to 10000\n')

    def test_help_and_version(self):
        self.assertRegex(self.tj("--version").stdout, r"^tj \d+\.\d+\.\d+\n$")
        for wanted in ("tj run -f job.yaml", "tj validate -f job.yaml", "Exit codes"):
            self.assertIn(wanted, self.tj("--help").stdout)
        self.assertEqual(self.tj("--help").returncode, 0)

    def test_a_wrong_command_line_exits_with_2(self):
        for args in ([], ["run"], ["run", "--nope"], ["fly"], ["run", "-f", "env-dump.yaml", "--grace", "-1"]):
            result = self.tj(*args)
            self.assertEqual(result.returncode, 2, args)
            self.assertNotEqual(result.stderr, "", args)


class Hostile(Story):
    """Manifests of the generator that TJ_HOSTILE_MANIFESTS names."""

    def test_no_manifest_ends_tj_by_an_exception(self):
        made = subprocess.run([os.environ["TJ_HOSTILE_MANIFESTS"], "200", "1"], capture_output=True, text=True, check=True)
        valid = []
        for manifest in made.stdout.splitlines():
            (self.folder / "job.yaml").write_text(manifest)
            result = self.tj("validate", "-f", "job.yaml")
            self.assertIn(result.returncode, (0, 2), manifest[:2000] + result.stderr)
            self.assertNotIn("exception", result.stderr, manifest[:2000])
            if result.returncode == 0:
                valid.append(manifest)
        self.assertGreater(len(valid), 20)
        for manifest in [manifest for manifest in valid if '"managedBy"' not in manifest][:30]:
            (self.folder / "job.yaml").write_text(manifest)
            result = self.tj("run", "-f", "job.yaml")
            self.assertIn(result.returncode, (0, 1, 2), manifest[:2000] + result.stderr)
            self.assertNotIn("exception", result.stdout + result.stderr, manifest[:2000])


if __name__ == "__main__":
    TJ = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
