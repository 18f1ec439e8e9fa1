"""Stories of `tj submit`, `tj convert`, `tj launch` and `tj check` as far as they need no cluster.

usage: tj_submit_test.py TJ [unittest arguments]
The objects that an API server is given are looked at in tests/crd/submitted.py.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

import tj_test

HERE = tj_test.HERE
SCRIPT = "#!/bin/bash\nset -e\necho worker $RANK\n"
SUBMIT_JOB = ["--name", "taehv-16gpu", "--workers", "2", "--gpus-per-worker", "8"]


class Submit(tj_test.Story):
    def submit(self, *args, **env):
        return self.tj("submit", "--dry-run", *args, **env)

    def assert_wrong(self, result, *wanted):
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        for text in wanted:
            self.assertIn(text, result.stderr)

    def test_the_command_line_of_a_platform_makes_a_valid_manifest(self):
        (self.folder / "start.sh").write_text(SCRIPT)
        result = self.submit(*SUBMIT_JOB, "--script", "start.sh", TJ_IMAGE="registry/taehv:1")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        job, config_map = result.stdout.split("---\n")
        self.assertIn("command: [/bin/bash, /etc/trainingjob/script/start.sh]", job)
        self.assertIn("kind: ConfigMap", config_map)
        (self.folder / "made.yaml").write_text(job)
        self.assertEqual(self.tj("validate", "-f", "made.yaml").returncode, 0)

    def test_a_command_made_so_runs_here(self):
        words = ["sh", "-c", 'echo "$RANK of $WORLD_SIZE: $0 $1"', "[1,2]", "--name"]
        result = self.submit("--name", "here", "--workers", "2", "--image", "none", "--", *words)
        (self.folder / "here.yaml").write_text(result.stdout)
        ran = self.tj("run", "-f", "here.yaml")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        for rank in (0, 1):
            self.assertIn(f"[worker-{rank}] {rank} of 2: [1,2] --name", ran.stdout.splitlines())

    def test_forms_of_output(self):
        (self.folder / "start.sh").write_text(SCRIPT)
        both = ["--name", "a", "--image", "i", "--script", "start.sh"]
        names = self.submit(*both, "-o", "name").stdout.splitlines()
        self.assertEqual(names[0], "trainingjob.kubebrain.io/a")
        self.assertRegex(names[1], r"^configmap/a-script-[0-9a-f]{10}$")
        items = json.loads(self.submit(*both, "-o", "json").stdout)["items"]
        self.assertEqual(items[1]["data"], {"start.sh": SCRIPT})
        self.assertEqual(items[1]["metadata"]["name"],
                         items[0]["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["volumes"][0]["configMap"]["name"])
        one = json.loads(self.submit("--name", "a", "--image", "i", "-o", "json", "-n", "team").stdout)
        self.assertEqual(one["metadata"], {"name": "a", "namespace": "team"})
        self.assert_wrong(self.submit(*both, "-o", "wide"), '-o: is "wide"; it must be yaml, json or name')

    def test_what_is_wrong_is_told_by_flag(self):
        self.assert_wrong(self.submit("--image", "i", "--workers", "0"), "--name: is missing", "--workers: ")
        self.assert_wrong(self.submit("--name", "a", "--image", "i", "--script", "none.sh"),
                          "--script: \"none.sh\" cannot be read: No such file or directory")
        self.assert_wrong(self.submit("env-dump.yaml"), "tj submit: a manifest is given by -f env-dump.yaml")
        self.assert_wrong(self.submit("-f", "env-dump.yaml", "--workers", "3"),
                          "--workers: is given beside -f; the manifest must say it")
        self.assert_wrong(self.submit("-f", "env-dump.yaml", "--", "env"), "one of them must go")
        self.assertEqual(self.submit("-f", "env-dump.yaml", TJ_IMAGE="i").returncode, 0)
        self.assert_wrong(self.submit("--nope"), "--nope")
        bytes_of_latin = subprocess.run([tj_test.TJ, "submit", "--dry-run", "--name", "a", "--image", "i", "--", b"\xe9"],
                                        capture_output=True, timeout=tj_test.DEADLINE_S)
        self.assertEqual(bytes_of_latin.returncode, 2)
        self.assertIn(b"which is not UTF-8", bytes_of_latin.stderr)

    def test_the_help_names_the_words_behind_the_dashes(self):
        for command, words in (("submit", "COMMAND"), ("launch", "COMMAND"), ("check", "ARGUMENTS")):
            text = self.tj(command, "--help").stdout
            self.assertIn(f"[-- {words}...]", text)
            self.assertNotIn("100000", text)

    def test_a_manifest_is_checked_before_any_server_is_asked(self):
        shutil.copy(HERE / "bad" / "many-errors.yaml", self.folder)
        result = self.tj("submit", "-f", "many-errors.yaml", KUBECONFIG="none.conf")
        self.assert_wrong(result, "many-errors.yaml: ")
        self.assertEqual(result.stderr, self.tj("validate", "-f", "many-errors.yaml").stderr)
        (self.folder / "ns.yaml").write_text((self.folder / "env-dump.yaml").read_text().replace(
            "metadata: {", "metadata: {namespace: ours, "))
        self.assert_wrong(self.tj("submit", "-f", "ns.yaml", "-n", "theirs"), '-n: is "theirs"; the manifest says "ours"')

    def test_without_a_cluster_it_is_said(self):
        result = self.tj("submit", "-f", "env-dump.yaml", "--kubeconfig", "none.conf")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stdout, "")
        self.assertIn("none.conf", result.stderr)
        nowhere = self.tj("submit", "-f", "env-dump.yaml", KUBECONFIG="", HOME=str(self.folder))
        self.assert_wrong(nowhere, "tj run -f FILE runs a manifest on this machine; --dry-run prints one")


class Convert(tj_test.Story):
    """Of each of other_kinds, *.out is what is printed here, too."""

    def test_each_kind_is_converted_and_what_is_left_out_is_said(self):
        converted = 0
        for manifest in sorted((HERE / "other_kinds").glob("*.yaml")):
            with self.subTest(manifest.name):
                shutil.copy(manifest, self.folder)
                answer = self.tj("convert", "-f", manifest.name)
                printed = manifest.with_suffix(".out").read_text()
                self.assertEqual(answer.stdout, printed)
                is_good = bool(printed) and "can't be made" not in manifest.with_suffix(".txt").read_text()
                self.assertEqual(answer.returncode, 0 if is_good else 2, answer.stderr)
                for line in printed.splitlines():
                    if line.startswith("# "):
                        self.assertIn(line[2:], answer.stderr)
                converted += is_good
        self.assertGreaterEqual(converted, 7)

    def test_json_and_names(self):
        shutil.copy(HERE / "other_kinds" / "pytorchjob.yaml", self.folder)
        made = json.loads(self.tj("convert", "-f", "pytorchjob.yaml", "-o", "json").stdout)
        self.assertEqual((made["kind"], made["metadata"]["name"]), ("TrainingJob", "mnist"))
        self.assertEqual(self.tj("convert", "-f", "pytorchjob.yaml", "-o", "name").stdout,
                         "trainingjob.kubebrain.io/mnist\n")

    def test_what_is_no_job_of_another_kind_is_left_out(self):
        service = "apiVersion: v1\nkind: Service\nmetadata: {name: \"a\\e[31m\"}\n"
        (self.folder / "mixed.yaml").write_text(
            service + "---\n" + (self.folder / "env-dump.yaml").read_text())
        result = self.tj("convert", "-f", "mixed.yaml")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr.splitlines(), [
            "mixed.yaml: Service a\ufffd[31m is no job of another kind, and left out",
            "mixed.yaml: TrainingJob env-dump is one already, and left out",
            "mixed.yaml: there is no job to convert; see tj convert --help"])

    def test_what_was_converted_is_submitted(self):
        shutil.copy(HERE / "other_kinds" / "pytorchjob.yaml", self.folder)
        command = f"{tj_test.TJ} convert -f pytorchjob.yaml 2>/dev/null | {tj_test.TJ} submit --dry-run -o name -f -"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True,
                              timeout=tj_test.DEADLINE_S)
        self.assertEqual((done.returncode, done.stdout), (0, "trainingjob.kubebrain.io/mnist\n"), done.stderr)


class Launch(tj_test.Story):
    def setUp(self):
        super().setUp()
        program = self.folder / "programs" / "trainer"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 5\n")
        program.chmod(0o755)

    def env(self, **extra):
        env = super().env(**extra)
        for name in ("TRAININGJOB_UID", "SLURM_PROCID", "NODE_RANK"):
            env.pop(name, None)
        return {**env, "TJ_TRAINER_PATH": str(self.folder / "programs"), **extra}

    def test_trainer_launch_gets_the_flags_and_gives_the_exit_code(self):
        result = self.tj("launch", "--master", "node-a", "--nodes", "2", "--node-rank", "1", "--gpus-per-node", "8",
                         "--", "bash", "-c", "[ a ]")
        self.assertEqual(result.returncode, 5)
        self.assertEqual(result.stdout, "<launch><--world-size><16><--gpus-per-node><8><--node-rank><1><--master-addr>"
                         "<node-a><--><bash><-c><[ a ]>")

    def test_of_two_nodes_the_one_that_has_the_masters_address_is_the_first(self):
        for master, rank in (("127.0.0.1", "0"), ("192.0.2.1", "1")):
            result = self.tj("launch", "--master", master, "--nodes", "2", "--gpus-per-node", "8", "--", "env")
            self.assertIn(f"<--node-rank><{rank}>", result.stdout)

    def test_what_is_wrong_is_told(self):
        result = self.tj("launch", "--nodes", "2", "--gpus-per-node", "8", "--", "env")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertTrue(result.stderr.startswith("--master: is missing"), result.stderr)
        result = self.tj("launch", "--master", "192.0.2.1", "--nodes", "3", "--gpus-per-node", "8", "--", "env")
        self.assertTrue(result.stderr.startswith("--node-rank: is missing"), result.stderr)
        result = self.tj("launch", "--gpus-per-node", "8", "--", "env", TRAININGJOB_UID="u")
        self.assertIn("use `trainer launch -- COMMAND`", result.stderr)


class Check(tj_test.Story):
    def test_the_checks_manifest_is_valid(self):
        shutil.copy(HERE.parents[1] / "manifests/examples/taehv-16gpu.yaml", self.folder)
        result = self.tj("check", "-f", "taehv-16gpu.yaml", "--dry-run")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("name: taehv-16gpu-check", result.stdout)
        self.assertIn("command: [trainer, check, --model=taehv, --data=/mnt/project/videos, --out=/mnt/project/out/taehv]",
                      result.stdout)
        (self.folder / "check.yaml").write_text(result.stdout)
        self.assertEqual(self.tj("validate", "-f", "check.yaml").returncode, 0)
        result = self.tj("check", "-f", "taehv-16gpu.yaml", "--dry-run", "--image", "i", "--", "--data", "/d")
        self.assertIn("command: [trainer, check, --data, /d]", result.stdout)

    def test_what_is_wrong_is_told(self):
        self.assertIn("tj check: names no job", self.tj("check").stderr)
        self.assertEqual(self.tj("check").returncode, 2)
        self.assertEqual(self.tj("check", "a", "--kubeconfig", "none.conf").returncode, 2)


if __name__ == "__main__":
    tj_test.TJ = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
