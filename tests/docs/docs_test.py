"""The documents against the code: commands, manifests, tables, messages."""
import collections
import contextlib
import importlib.util
import json
import pathlib
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import unittest
import urllib.request

import console
import markdown
import yaml
from programs import environment, metrics_checked, program_output, scraped_operator, scraped_trainer

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.places import ROOT  # noqa: E402

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

sys.path.insert(0, str(ROOT / "tools" / "test"))
import stages  # noqa: E402
sys.path.insert(0, str(ROOT / "tests" / "bench" / "operator"))
import report  # noqa: E402


def module_of(path, name):
    """For a file whose own name another one has too."""
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trainer_report = module_of("tests/bench/trainer/report.py", "trainer_report")


def read(path):
    return (ROOT / path).read_text()


def joined_literals(text):
    """C++ source with adjacent string literals joined, as the compiler does."""
    return re.sub(r'"\s*\n\s*"', "", text)


class Commands(unittest.TestCase):
    def test_each_command_prints_what_the_document_shows(self):
        ran = 0
        for path in DOCUMENTS:
            for fence in markdown.fences(path.read_text()):
                if not fence.info.startswith("console run"):
                    continue
                ran += 1
                with self.subTest(document=path.name, line=fence.line), tempfile.TemporaryDirectory() as folder:
                    pathlib.Path(folder, "manifests").symlink_to(ROOT / "manifests")
                    for command, expected in console.steps(fence.text):
                        output = console.run(command, folder, environment())
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
        examples = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))
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


class Contract(unittest.TestCase):
    def setUp(self):
        self.document = read("docs/trainingjob.md")
        self.names = dict(re.findall(r'(k\w+)\s*=\s*"([^"]*)"', read("contract/names.h")))

    def test_the_launch_variables_are_those_of_the_contract_in_its_order(self):
        source = read("contract/launch_env.cc")
        body = re.search(r"kReservedNames = \{(.*?)\};", source, re.DOTALL).group(1)
        reserved = [quoted or self.names[constant]
                    for quoted, constant in re.findall(r'"([A-Z_]+)"|names::(k\w+)', body)]
        self.assertEqual(markdown.first_column(markdown.section(self.document, "Launch contract")), reserved)

    def test_the_exit_codes_are_those_of_the_contract(self):
        codes = re.findall(r"int k(?!SignalBase)\w+ =\s*(\d+);", read("contract/outcome.h"))
        table = [row[0] for row in markdown.rows(markdown.section(self.document, "Exit codes"))]
        self.assertEqual(table, codes)

    def test_the_labels_are_those_of_the_contract(self):
        labels = [text for name, text in self.names.items() if name.startswith("kLabel")]
        self.assertEqual(markdown.first_column(markdown.section(self.document, "Objects")), labels)


class Resource(unittest.TestCase):
    def setUp(self):
        crd = yaml.safe_load(read("manifests/crd/trainingjobs.yaml"))
        self.version = crd["spec"]["versions"][0]
        self.schema = self.version["schema"]["openAPIV3Schema"]["properties"]
        self.document = read("docs/trainingjob.md")

    def test_every_field_of_the_spec_is_described_as_in_the_schema(self):
        """Its type, its default, its bounds and its choices."""
        described = {}
        for heading in ("Spec", "Policies"):
            described |= {code.strip("`"): cells for code, *cells in markdown.rows(markdown.section(self.document, heading))}
        fields = {"metadata.name": None, **leaves(self.schema["spec"], "spec")}
        self.assertEqual(list(described), list(fields))
        for path, field in fields.items():
            if field is None:
                continue
            with self.subTest(path):
                kind, default, meaning = described[path]
                self.assertEqual(kind, type_name(field))
                fallback = "required" if field["is_required"] else "none"
                self.assertEqual(default, json.dumps(field.get("default", fallback)).strip('"'))
                for bounds in bounds_of(field):
                    self.assertIn(bounds, meaning)
                for choice in field.get("enum") or field.get("items", {}).get("enum", []):
                    self.assertIn(f"`{choice}`", meaning)

    def test_every_field_of_the_status_is_described(self):
        table = markdown.rows(markdown.section(self.document, "Status"))
        described = {word.split(".")[0] for row in table for word in markdown.code_words(row[:1])}
        self.assertEqual(described, set(self.schema["status"]["properties"]))
        cells = " ".join(cell for row in table for cell in row)
        status = self.schema["status"]["properties"]
        nested = [*status["replicaStatuses"]["properties"]["Worker"]["properties"], *status["firstFailure"]["properties"]]
        for name in ("nodeFailures", "troubledRanks"):
            nested += status[name]["items"]["properties"]
        self.assertEqual([field for field in nested if f"`{field}`" not in cells], [])
        phases = next(row[1] for row in table if row[0] == "`phase`")
        self.assertEqual([phase for phase in status["phase"]["enum"] if phase not in phases], [])

    def test_the_actions_and_the_causes_are_those_of_the_schema(self):
        rule = self.schema["spec"]["properties"]["failurePolicy"]["properties"]["rules"]["items"]["properties"]
        table = markdown.rows(markdown.section(self.document, "When a worker fails"))
        actions = [row[0].strip("`") for row in table if len(row) == 2]
        self.assertEqual(actions, rule["action"]["enum"])
        classes = [row for row in table if len(row) == 3]
        self.assertLessEqual(set(markdown.code_words(row[1] for row in classes)), set(actions))
        words = markdown.code_words(row[0] for row in classes)
        self.assertEqual([cause for cause in rule["causes"]["items"]["enum"] if cause not in words], [])

    def test_the_built_in_classes_are_those_of_the_plan(self):
        """The codes that fail, the signals that count, and the bound on what does not."""
        text = markdown.section(self.document, "When a worker fails")
        source = read("operator/plan/failure.cc")
        codes = dict(re.findall(r"int (k\w+) =\s*(\d+);", read("contract/outcome.h")))
        final = re.search(r"bool is_permanent.*?return (.*?);", read("contract/outcome.cc"), re.DOTALL).group(1)
        self.assertIn("exit code " + listed([codes[name] for name in re.findall(r"k\w+", final)]), text)
        self.assertIn(f"exit code {codes['kInterrupted']} |", text)
        self.assertIn(f"Exit code {codes['kPeerLost']} ", text)
        crashes = re.search(r"kCrashes = \{(.*?)\}", source).group(1).split(", ")
        self.assertIn("signal " + listed([f"{int(getattr(signal, name))} ({name[3:]})" for name in crashes]), text)
        cap = re.search(r"kUncountedRestartsMax = ([\d']+)", read("operator/plan/failure.h")).group(1).replace("'", "")
        self.assertIn(f"a job may have {cap} |", text)


def listed(words):
    return ", ".join(words[:-1]) + " or " + words[-1]


def leaves(schema, path):
    """The fields of the schema that are no mere containers, by path; a pod's own fields are Kubernetes'."""
    found = {}
    for name, field in schema["properties"].items():
        field["is_required"] = name in schema.get("required", [])
        where = f"{path}.{name}"
        is_container = "properties" in field and name not in ("replicaSpecs", "template")
        if not is_container:
            found[where] = field
        if name == "replicaSpecs":
            found |= leaves(field["properties"]["Worker"], where + ".Worker")
        elif name != "template":
            inner = field.get("items", field)
            found |= leaves(inner, where + ("[]" if "items" in field else "")) if "properties" in inner else {}
    return found


def type_name(field):
    return f"list of {field['items']['type']}s" if field["type"] == "array" else field["type"]


def bounds_of(field):
    """As a document says them: "1 to 64", or "at most 32"."""
    for entry in (field, field.get("items", {})):
        for least, most in (("minimum", "maximum"), ("minLength", "maxLength")):
            if most in entry:
                yield f"{entry[least]} to {entry[most]}"
    if "minItems" not in field and "maxItems" in field:
        yield f"at most {field['maxItems']}"


class Operating(unittest.TestCase):
    def setUp(self):
        self.document = read("docs/operating.md")

    def test_the_flags_are_those_of_the_operator(self):
        _, text = program_output("trainingjob-operator", "--help")
        table = markdown.first_column(markdown.section(self.document, "Flags"))
        self.assertEqual({flag.split()[0] for flag in table}, long_flags(text))

    def test_the_metrics_are_those_of_the_operator(self):
        names = re.findall(r'Name\("(\w+)"\)', read("operator/loop/metrics.cc"))
        table = markdown.first_column(markdown.section(self.document, "Metrics"))
        self.assertEqual(sorted(table), sorted(names))

    def test_the_metrics_follow_the_conventions_of_prometheus(self):
        with scraped_operator() as scrape:
            text = scrape(until=lambda text: "trainingjob_watch_restarts_total{" in text)
        self.assertEqual(metrics_checked(text), (0, ""))
        shown = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
        self.assertEqual(shown, set(markdown.first_column(markdown.section(self.document, "Metrics"))))

    def test_the_rights_are_those_of_the_chart(self):
        documents = yaml.safe_load_all(read("manifests/install/trainingjob-operator.yaml"))
        rights = {(resource, tuple(sorted(rule["verbs"]))) for entry in documents
                  if entry and entry["kind"] in ("ClusterRole", "Role")
                  for rule in entry["rules"] for resource in rule["resources"]}
        table = {(row[0].strip("`"), tuple(sorted(row[1].split(", "))))
                 for row in markdown.rows(markdown.section(self.document, "Rights"))}
        self.assertEqual(table, rights)

    def test_the_values_are_those_of_the_chart(self):
        values = yaml.safe_load(read("charts/trainingjob-operator/values.yaml"))
        table = markdown.rows(markdown.section(self.document, "Install"))
        described = {word.split(".")[0] for row in table for word in markdown.code_words(row[:1])}
        self.assertEqual(described, set(values))

    def test_the_chart_takes_the_log_levels_of_the_operator(self):
        levels = json.loads(read("charts/trainingjob-operator/values.schema.json"))["properties"]["logLevel"]["enum"]
        offered = re.search(r"--log-level.*?IsMember\(\{(.*?)\}\)", read("operator/loop/options.cc"), re.DOTALL).group(1)
        self.assertEqual(levels, re.findall(r'"(\w+)"', offered))

    def test_the_reasons_are_those_of_the_plan(self):
        reasons = set(re.findall(r'k\w+ = "(\w+)"', read("operator/plan/reason.h")))
        table = markdown.first_column(markdown.section(self.document, "Why a job is where it is"))
        self.assertEqual(set(table), reasons)

    def check_messages(self, messages):
        folders = ("contract", "operator", "cli", "trainer")
        sources = "\n".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.cc")))
        sources = joined_literals(sources)
        self.assertGreater(len(messages), 5)
        for message in messages:
            for piece in re.split(r"\s*\.\.\.\s*", message):
                self.assertIn(piece.replace('"', '\\"'), sources, message)

    def test_each_message_is_one_that_a_program_prints(self):
        self.check_messages(markdown.first_column(markdown.section(self.document, "By message")))

    def test_each_last_line_of_a_trouble_is_one_that_a_program_prints(self):
        rows = markdown.rows(markdown.section(self.document, "When a training does not begin"))
        self.assertEqual([row[0] for row in rows if len(row) != 4 or not markdown.code_words(row[1:2])], [])
        self.check_messages(markdown.code_words(row[1] for row in rows))


class Evidence:
    """What shows a line of a table: a test that exists."""

    def setUp(self):
        tests = ROOT / "tests"
        self.sources = "\n".join(path.read_text() for path in sorted(tests.rglob("*_test.cc")))
        self.stories = collections.defaultdict(str)  # two folders may have stories of one name
        for path in (tests / "trainer").rglob("test_*.py"):
            self.stories[path.stem] += path.read_text()

    def check_evidence(self, evidence):
        if evidence.startswith("plan/"):
            self.assertTrue((ROOT / f"tests/golden/{evidence}.txt").exists())
        elif evidence.startswith("tests/"):
            self.assertTrue((ROOT / evidence).exists())
        else:
            suite, name = evidence.split(".")
            if suite in self.stories:
                found = f"def {name}(" in self.stories[suite]
            else:
                found = re.search(rf"TEST\w*\({suite}\w*,\s*{name}\)", self.sources)
            self.assertTrue(found, f"there is no test {evidence}")


class Troubles(Evidence, unittest.TestCase):
    def test_each_is_provoked_by_a_test(self):
        for trouble, _, _, shown_by in markdown.rows(markdown.section(read("docs/operating.md"), "When a training does not begin")):
            with self.subTest(trouble):
                self.assertTrue(markdown.code_words([shown_by]))
                for evidence in markdown.code_words([shown_by]):
                    self.check_evidence(evidence)


class Complaints(Evidence, unittest.TestCase):
    """Each line has a test that exists, a page, or a reason."""

    def check_table(self, path, numbers):
        rows = markdown.rows(read(path))
        self.assertEqual([row[0] for row in rows], [str(number) for number in numbers])
        for number, _, _, shown_by in rows:
            for evidence in markdown.code_words([shown_by]):
                with self.subTest(complaint=number, evidence=evidence):
                    self.check_evidence(evidence)
            has_reason = "does not apply" in shown_by or "](" in shown_by
            self.assertTrue(has_reason or markdown.code_words([shown_by]), number)

    def test_of_operators_each_line_names_what_shows_it(self):
        self.check_table("docs/complaints.md", range(1, 49))

    def test_of_trainers_each_line_names_what_shows_it(self):
        self.check_table("docs/trainer-complaints.md", range(1, 40))


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

    def test_the_flags_of_encode_decode_and_reconstruct_are_those_of_the_program(self):
        helps = [program_output("trainer", command, "--help")[1] for command in ("encode", "decode", "reconstruct")]
        offered = set().union(*(re.findall(r"^ +(--[a-z0-9-]+)", text, re.MULTILINE) for text in helps))
        table = markdown.first_column(markdown.section(read("docs/systems/taehv.md"), "Encode and decode"))
        self.assertEqual(set(table), offered)


    def test_the_export_flags_are_those_of_the_program(self):
        _, text = program_output("trainer", "export", "--help")
        table = markdown.first_column(markdown.section(read("docs/trainer.md"), "trainer export"))
        self.assertEqual({flag.split()[0] for flag in table}, long_flags(text))

    def test_the_flags_for_videos_are_those_of_the_programs(self):
        _, text = program_output("trainer", "prepare", "video", "--help")
        table = markdown.first_column(markdown.section(read("docs/data.md"), "trainer prepare video"))
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
                    story = next(word for word in words[1:] if not word.startswith("-"))
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
        for each in (report, trainer_report):
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
        self.assertEqual(console.steps("$ a \\\n  b\nout\n$ c\n"), [("a b", ["out"]), ("c", [])])


def long_flags(help_text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", help_text)) - {"--help", "--version"}


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(suite)
    broken = {getattr(case, "test_case", case).id() for case, _ in result.failures + result.errors}
    for name in sorted(broken):
        print(f"FAIL {name}")
    print(f"{result.testsRun - len(broken)} passed, {len(broken)} failed, 0 skipped")
    return 1 if broken or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
