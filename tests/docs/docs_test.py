"""The documents against the code: commands, manifests, tables. What is of the operator and what shows a line of a table lie beside
this file."""
import contextlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import console
import evidence
import markdown
import navigation_documents
import operator_documents
import site_documents
import submit_documents
import yaml
from documents import DOCUMENTS, ROOT, long_flags, read
from programs import environment, metrics_checked, program_output, scraped_trainer

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools" / "test")]
import stages  # noqa: E402
from support import modules, unittests  # noqa: E402
sys.path.insert(0, str(ROOT / "tests" / "bench" / "operator"))
import report  # noqa: E402

trainer_report = modules.load(ROOT / "tests/bench/trainer/report.py", "trainer_report")
slow_network_report = modules.load(ROOT / "tests/bench/slow_network/tables.py", "slow_network_report")


class Commands(unittest.TestCase):
    def test_each_command_prints_what_the_document_shows(self):
        ran = 0
        for path in DOCUMENTS:
            for fence in markdown.fences(path.read_text()):
                if not fence.info.startswith("console run"):
                    continue
                ran += 1
                with self.subTest(document=path.name, line=fence.line), tempfile.TemporaryDirectory() as folder:
                    for name in ("manifests", "tests"):
                        pathlib.Path(folder, name).symlink_to(ROOT / name)
                    for command, expected in console.steps(fence.text):
                        output = console.run(command, folder, dict(environment(), XDG_STATE_HOME=f"{folder}/state"))
                        if fence.info.endswith("unordered"):
                            self.assertEqual(console.missing(expected, output), [], output)
                        elif not console.matches(expected, output):
                            self.fail(f"$ {command}\nprinted:\n{output}\nthe document says:\n" + "\n".join(expected))
        self.assertGreater(ran, 0)


class Manifests(unittest.TestCase):
    def test_each_manifest_in_a_document_is_valid(self):
        found = 0
        for path in DOCUMENTS:
            for fence in markdown.fences(path.read_text()):
                if fence.info == "yaml" and "kind: TrainingJob" in fence.text:
                    found += 1
                    status, output = program_output("tj", "validate", "-f", "-", stdin=fence.text)
                    self.assertEqual(status, 0, f"{path.name}:{fence.line}: {output}")
        self.assertGreater(found, 0)

    def test_each_example_is_valid(self):
        examples = sorted((ROOT / "manifests" / "examples").rglob("*.yaml"))
        self.assertTrue(examples)
        for path in examples:
            status, output = program_output("tj", "validate", "-f", str(path))
            self.assertEqual(status, 0, output)

    def test_the_text_of_the_examples_is_enough_to_learn_from(self):
        texts = [path.read_bytes() for path in (ROOT / "manifests" / "examples" / "text").iterdir()]
        self.assertGreater(sum(map(len, texts)), 100_000)
        for text in texts:
            text.decode("ascii")

    def test_the_videos_of_the_examples_are_small_and_of_three_codecs(self):
        videos = ROOT / "manifests" / "examples" / "videos"
        for part, count in (("train", 10), ("held-out", 3)):
            found = list((videos / part).iterdir())
            self.assertGreaterEqual(len(found), count, part)
            self.assertEqual({path.suffix for path in found}, {".mp4", ".avi", ".webm"}, part)
        self.assertLess(sum(path.stat().st_size for path in videos.rglob("*.*")), 300_000)

    def test_the_data_set_of_the_examples_is_small_and_whole(self):
        robot = ROOT / "manifests" / "examples" / "robot"
        self.assertEqual({path.name for path in robot.iterdir()}, {"reach", "tokenizer.model"})
        self.assertTrue((robot / "reach/meta/trainer_stats.json").is_file())
        self.assertLess(sum(path.stat().st_size for path in robot.rglob("*") if path.is_file()), 300_000)

    def test_the_rooms_of_the_examples_are_those_that_their_script_draws(self):
        shown = ROOT / "manifests/examples/navigation"
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "tests/trainer/qwen/rooms.py", folder, "600", "96"], check=True)
            for name in ("set/rooms.json", "tokenizer.json"):
                self.assertEqual((shown / name).read_text(), pathlib.Path(folder, name).read_text(), name)
            self.assertEqual(*(sorted(path.name for path in (parent / "set/rooms").iterdir()) for parent in (shown, pathlib.Path(folder))))
        self.assertLess(sum(path.stat().st_size for path in shown.rglob("*") if path.is_file()), 300_000)

    def test_the_flags_of_the_large_robot_job_train_a_small_policy(self):
        (container,) = yaml.safe_load(read("manifests/examples/pi0-bridge-2node.yaml"))["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"]
        flags = dict((*word.split("=", 1), None)[:2] for word in container["args"])
        robot = ROOT / "manifests" / "examples" / "robot"
        with tempfile.TemporaryDirectory() as folder:
            data = shutil.copytree(robot / "reach", f"{folder}/reach")
            pathlib.Path(data, "meta/trainer_stats.json").unlink()  # of actions as differences
            del flags["--init-from"]
            flags |= {"--model": "pi0-nano", "--data": data, "--tokenizer": robot / "tokenizer.model", "--out": f"{folder}/out", "--steps": 2,
                      "--warmup-steps": 1, "--batch-size": 4, "--zero-group": 2, "--held-out": 0.125,
                      "--camera-map": "base_0_rgb=observation.images.top,wrist_0_rgb=none"}
            words = [name if value is None else f"{name}={value}" for name, value in flags.items()]
            status, output = program_output("trainer", "launch", "--nproc", "2", "--", "trainer", "train", *words)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"(?m)^\[rank 0\] eval after step 2 \|")


class Trainer(unittest.TestCase):
    def test_the_launch_flags_are_those_of_the_launcher(self):
        _, text = program_output("trainer", "launch", "--help")
        table = markdown.first_column(markdown.section(read("docs/trainer.md"), "trainer launch"))
        offered = set(re.findall(r"^ +(--[a-z-]+)", text, re.MULTILINE))
        self.assertEqual({flag.split()[0] for flag in table}, offered)

    def test_the_defaults_in_the_tables_are_those_of_the_help(self):
        trainer = read("docs/trainer.md")
        for command, table in (("launch", markdown.section(trainer, "trainer launch")),
                               ("train", markdown.section(trainer, "trainer train")),
                               ("prepare", markdown.section(read("docs/data.md"), "trainer prepare")),
                               ("check", read("docs/check.md"))):
            with self.subTest(command):
                _, text = program_output("trainer", command, "--help")
                each = re.findall(r"^ +(--[a-z0-9-]+)\b(.*(?:\n(?! +--).*)*)", text, re.MULTILINE)  # a long one has two lines
                found = {flag: re.search(r"\(([\d.]+)\)$", words, re.MULTILINE) for flag, words in each}
                by_help = {flag: default[1] for flag, default in found.items() if default}
                flags = [row for row in markdown.rows(table) if row[0].startswith("`--")]
                by_table = {row[0].strip("`").split()[0]: row[1] for row in flags if re.fullmatch(r"[\d.]+", row[1])}
                self.assertEqual(by_table, by_help)
                self.assertTrue(by_help)

    def test_the_train_flags_are_those_of_the_engine(self):
        table = markdown.first_column(markdown.section(read("docs/trainer.md"), "trainer train"))
        _, text = program_output("trainer", "train", "--help")
        self.assertEqual(table, re.findall(r"^ +(--[a-z0-9-]+)", text, re.MULTILINE))

    def test_the_metrics_are_those_of_a_run_and_follow_the_conventions_of_prometheus(self):
        text, deadline = "", time.monotonic() + 60
        with scraped_trainer() as address:
            late = ("trainer_last_checkpoint_step", "trainer_eval_loss")
            while not all(name in text for name in late) and time.monotonic() < deadline:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/metrics", timeout=10) as page:
                    text = page.read().decode()
                time.sleep(0.1)
        self.assertEqual(metrics_checked(text), (0, ""))
        shown = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
        rows = markdown.rows(markdown.section(read("docs/trainer.md"), "Progress and metrics"))
        described = [(name, row[1]) for row in rows for name in markdown.code_words(row[:1])]
        self.assertEqual(sorted(described), sorted(shown))

    def test_the_check_flags_are_those_of_the_program(self):
        _, text = program_output("trainer", "check", "--help")
        table = markdown.first_column(read("docs/check.md"))
        own = text[: text.index("--nproc")]
        self.assertEqual({flag.split()[0] for flag in table if flag.startswith("--")}, long_flags(own))

    def test_the_plan_flags_are_those_of_the_program(self):
        _, text = program_output("trainer", "plan", "--help")
        table = markdown.first_column(markdown.section(read("docs/plan.md"), "Flags"))
        own = text[: text.index("As of trainer train")]
        self.assertEqual({flag.split()[0] for flag in table}, long_flags(own))

    def test_the_prepare_flags_are_those_of_the_program(self):
        _, text = program_output("trainer", "prepare", "--help")
        table = markdown.first_column(markdown.section(read("docs/data.md"), "trainer prepare"))
        self.assertEqual({flag.split()[0] for flag in table if flag.startswith("--")}, long_flags(text))

    def test_the_flags_of_prepare_tokenizer_are_those_of_the_program(self):
        _, text = program_output("trainer", "prepare", "tokenizer", "--help")
        table = markdown.first_column(markdown.section(read("docs/data.md"), "trainer prepare tokenizer"))
        self.assertEqual({flag.split()[0] for flag in table if flag.startswith("--")}, long_flags(text))

    def test_the_flags_of_encode_decode_and_reconstruct_are_those_of_the_program(self):
        helps = [program_output("trainer", command, "--help")[1] for command in ("encode", "decode", "reconstruct")]
        offered = set().union(*(re.findall(r"^ +(--[a-z0-9-]+)", text, re.MULTILINE) for text in helps))
        table = markdown.first_column(markdown.section(read("docs/systems/taehv.md"), "Encode and decode"))
        self.assertEqual(set(table), offered)

    def test_the_act_flags_and_their_defaults_are_those_of_the_program(self):
        _, text = program_output("trainer", "act", "--help")
        own = text[text.index("--from"):]
        rows = markdown.rows(markdown.section(read("docs/systems/pi0.md"), "Acting"))
        defaults = dict(re.findall(r"^ +(--[a-z-]+)\b.*\((\d+)\)$", own, re.MULTILINE))
        self.assertEqual({row[0].strip("`"): row[1] for row in rows if row[1]}, defaults)
        self.assertLessEqual({row[0].strip("`") for row in rows}, long_flags(own))

    def test_the_sample_flags_and_their_defaults_are_those_of_the_program(self):
        _, text = program_output("trainer", "sample", "--help")
        rows = markdown.rows(markdown.section(read("docs/systems/gpt2.md"), "Sample"))
        each = re.findall(r"^ +(--[a-z0-9-]+)\b(.*(?:\n(?! +--).*)*)", text, re.MULTILINE)
        self.assertEqual([row[0].strip("`") for row in rows], [flag for flag, _ in each])
        defaults = {flag: found[1] for flag, words in each if (found := re.search(r"\(([\d.]+)\)\s*$", words))}
        self.assertEqual({row[0].strip("`"): row[1] for row in rows if re.fullmatch(r"[\d.]+", row[1])}, defaults)
        self.assertEqual(len(defaults), 6)

    def test_the_models_of_a_gpt2_are_those_of_the_program(self):
        models = [model["model"] for model in json.loads(program_output("trainer", "train", "--list-models")[1]) if model["workload"] == "gpt2"]
        self.assertEqual(markdown.first_column(markdown.section(read("docs/systems/gpt2.md"), "Models")), models)
        self.assertEqual(markdown.first_column(markdown.section(read("docs/trainer.md"), "Presets")), models)

    def test_the_export_flags_are_those_of_the_program(self):
        _, text = program_output("trainer", "export", "--help")
        table = markdown.first_column(markdown.section(read("docs/trainer.md"), "trainer export"))
        self.assertEqual({flag.split()[0] for flag in table}, long_flags(text))

    def test_the_flags_for_videos_and_robots_are_those_of_the_programs(self):
        _, text = program_output("trainer", "prepare", "video", "--help")
        table = markdown.first_column(markdown.section(read("docs/data.md"), "trainer prepare video"))
        self.assertEqual({flag.split()[0] for flag in table if flag.startswith("--")}, long_flags(text))
        _, text = program_output("trainer", "prepare", "lerobot", "--help")
        table = markdown.first_column(markdown.section(read("docs/data.md"), "trainer prepare lerobot"))
        self.assertEqual({flag.split()[0] for flag in table if flag.startswith("--")}, long_flags(text))
        _, text = program_output("trainer", "prepare", "conversations", "--help")
        table = markdown.first_column(markdown.section(read("docs/data.md"), "trainer prepare conversations"))
        self.assertEqual({flag.split()[0] for flag in table if flag.startswith("--")}, long_flags(text))
        _, text = program_output("trainer", "train", "--model", "taehv", "--help")
        own = set(re.findall(r"^ +(--[a-z0-9-]+)", text[text.index("Options of taehv"):], re.MULTILINE))
        table = markdown.first_column(markdown.section(read("docs/systems/taehv.md"), "Data"))
        self.assertLessEqual({"--frame-cache", "--video-decoder", "--video-index"}, own & set(table))


class Testing(unittest.TestCase):
    def test_the_stages_are_those_of_the_runner(self):
        table = markdown.first_column(markdown.section(read("docs/testing.md"), "Testing"))
        self.assertEqual(table, [stage.name for stage in stages.STAGES if stage.counts])

    def test_each_command_for_one_test_has_its_program_and_its_story(self):
        rows = markdown.rows(markdown.section(read("docs/testing.md"), "Run one test"))
        for command in markdown.code_words([row[1] for row in rows]):
            words = [word for word in shlex.split(command) if "=" not in word or word.startswith("-")]
            with self.subTest(command):
                self.assertTrue(shutil.which(words[0]) or (ROOT / words[0]).exists())
                if words[0].startswith("tests/") and len(words) > 1:
                    story = next(word for word in words[1:] if not word.startswith("-")).rpartition(".")[2]
                    texts = [path.read_text() for path in (ROOT / words[0]).parent.iterdir() if path.is_file()]
                    self.assertTrue(any(re.search(rf"def \w*{story}", text) for text in texts))

    def test_the_rules_are_those_of_the_lint(self):
        source = read("tools/check/lint")
        table = markdown.section(read("docs/testing.md"), "Static checks")
        described = {word for row in markdown.rows(table) for word in markdown.code_words(row[:1])}
        rules = set(re.findall(r'yield (?:[^,\n]+, )+?"([a-z-]+)", ', source))
        rules |= set(re.findall(r'^    "([a-z]+)": \(', source, re.MULTILINE))
        self.assertEqual(described, rules)


class Measurements(unittest.TestCase):
    def test_tables_and_plot_are_made_from_the_data(self):
        for each in (report, trainer_report, slow_network_report):
            results = json.loads(each.DATA.read_text()) if each.DATA.exists() else {}
            document = each.DOCUMENT.read_text()
            self.assertEqual(document, each.document_with(document, results))
            self.assertEqual(each.PLOT.exists(), bool(results))
            if results:
                self.assertEqual(each.PLOT.read_text(), each.plot(results))


class Versions(unittest.TestCase):
    def test_pinned_versions_are_those_of_the_scripts(self):
        table = "\n".join(" ".join(row) for row in markdown.rows(read("docs/dependencies.md")))
        deps = dict(re.findall(r"^(\w+)_version=v?([\d.]+)$", read("tools/deps") + read("tools/cluster/build"),
                               re.MULTILINE))
        for name in ("torch", "go", "kubernetes"):
            self.assertIn(f" {deps[name]} ", table + " ", name)


class Readme(unittest.TestCase):
    def test_each_make_target_that_a_document_names_is_there(self):
        targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
        for path in DOCUMENTS:
            named = set(re.findall(r"`make ([a-z-]+)", path.read_text()))
            named |= set(re.findall(r"^\$? ?make ([a-z-]+)", path.read_text(), re.MULTILINE))
            self.assertLessEqual(named, targets, path.name)


class Console(unittest.TestCase):
    """The comparison itself."""

    def test_dots_stand_for_lines_and_for_parts_of_lines(self):
        self.assertTrue(console.matches(["a", "...", "loss ... end"], "a\nb\nc\nloss 1 end\n"))
        self.assertTrue(console.matches(["...", "z"], "z"))
        self.assertFalse(console.matches(["a", "loss ... end"], "a\nb\nloss 1 end\n"))
        self.assertFalse(console.matches(["a"], "a\nb\n"))
        self.assertFalse(console.matches([], "unexpected\n"))

    def test_without_order_each_line_must_be_there(self):
        self.assertEqual(console.missing(["b ... c", "...", "", "a"], "a\nb 1 c\n"), [])
        self.assertEqual(console.missing(["b", "d"], "a\nb\n"), ["d"])

    def test_a_command_may_go_on_in_the_next_line(self):
        self.assertEqual(console.steps("$ a \\\n  b\nout\n$ c\n"), [("a \\\n  b", ["out"]), ("c", [])])

    def test_a_command_goes_on_within_quotes_as_it_is_printed(self):
        self.assertEqual(console.steps("$ a 'b\n  c' # it's\nout\n"), [("a 'b\n  c' # it's", ["out"])])


def main():
    modules = (sys.modules["__main__"], navigation_documents, operator_documents, site_documents, submit_documents, evidence)
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromModule, modules))
    return unittests.tell(suite, verbosity=0)


if __name__ == "__main__":
    sys.exit(main())
