"""The documents of the operator against its code: contract, resource, rights, metrics, messages."""
import json
import re
import signal
import unittest

import markdown
import yaml
from documents import ROOT, joined_literals, long_flags, read
from programs import metrics_checked, program_output, scraped_operator


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


class Installing(unittest.TestCase):
    def setUp(self):
        self.document = read("docs/installing.md")
        self.installed = [entry for entry in yaml.safe_load_all(read("manifests/install/trainingjob-operator.yaml")) if entry]

    def rights(self, roles):
        return {(resource, tuple(sorted(rule["verbs"]))) for role in roles for rule in role["rules"] for resource in rule["resources"]}

    def roles(self, is_bound):
        bound = {entry["roleRef"]["name"] for entry in self.installed if entry["kind"].endswith("Binding")}
        return [entry for entry in self.installed
                if entry["kind"] in ("ClusterRole", "Role") and (entry["metadata"]["name"] in bound) == is_bound]

    def test_the_rights_of_the_operator_are_those_of_the_chart(self):
        table = markdown.rows(markdown.section(self.document, "Rights of the operator"))
        self.assertEqual({(row[0].strip("`"), tuple(sorted(row[1].split(", ")))) for row in table}, self.rights(self.roles(is_bound=True)))
        own = {row[0].strip("`") for row in table if "own namespace" in row[2]}
        namespaced = {resource for resource, _ in self.rights(role for role in self.roles(is_bound=True) if role["kind"] == "Role")}
        self.assertEqual(own, namespaced)

    def test_the_rights_of_people_are_those_of_the_chart(self):
        table = {(row[0].strip("`"), word, tuple(sorted(row[2].split(", "))))
                 for row in markdown.rows(markdown.section(self.document, "Rights of people")) for word in markdown.code_words(row[1:2])}
        rendered = {(role["metadata"]["name"].rpartition("-")[2], resource, verbs)
                    for role in self.roles(is_bound=False) for resource, verbs in self.rights([role])}
        self.assertEqual(table, rendered)

    def test_the_values_are_those_of_the_chart(self):
        """Each by its first word, or by as many as the table names; with its default where that is a simple one."""
        values = yaml.safe_load(read("charts/trainingjob-operator/values.yaml"))
        table = markdown.rows(markdown.section(self.document, "Values"))
        words = [word for row in table for word in markdown.code_words(row[:1])]
        self.assertEqual({word.split(".")[0] for word in words}, set(values))
        for word in words:
            place = values
            for key in word.split("."):
                self.assertIn(key, place, word)
                place = place[key]
        for row in table:
            word, value = markdown.code_words(row[:1])[0], values
            for key in word.split("."):
                value = value[key]
            if isinstance(value, (bool, int)) and row[1] != "off":
                self.assertEqual(row[1].split(",")[0], str(value).lower(), word)

    def test_the_alerts_are_those_of_the_chart(self):
        template = read("charts/trainingjob-operator/templates/prometheusrule.yaml")
        table = markdown.first_column(markdown.section(self.document, "Monitoring"))
        self.assertEqual(table, re.findall(r"- alert: (\w+)", template))
        values = yaml.safe_load(read("charts/trainingjob-operator/values.yaml"))
        self.assertIn(f"({values['monitoring']['prometheusRule']['stormRestarts']})", markdown.section(self.document, "Monitoring"))

    def test_the_chart_takes_the_log_levels_of_the_operator(self):
        levels = json.loads(read("charts/trainingjob-operator/values.schema.json"))["properties"]["logLevel"]["enum"]
        offered = re.search(r"--log-level.*?IsMember\(\{(.*?)\}\)", read("operator/loop/options.cc"), re.DOTALL).group(1)
        self.assertEqual(levels, re.findall(r'"(\w+)"', offered))
