"""The documents as a site: it builds without a warning, its links and anchors lead somewhere, and it asks no other machine for anything.
What stands in the pages that were written for it is held to the code."""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.parse

import markdown
import yaml
from documents import ROOT, read
from evidence import Evidence
from programs import program_output

SITE_SECONDS_MAX = 300  # the first time it makes the Python with mkdocs-material


class Page(html.parser.HTMLParser):
    """The anchors of a page, what it links to, and what a browser would load for it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads, self.classes = set(), set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        self.anchors |= {attrs[name] for name in ("id", "name") if name in attrs}
        self.classes |= set(attrs.get("class", "").split())
        if tag == "a" and "href" in attrs:
            self.links.add(attrs["href"])
        elif tag == "link" and "canonical" not in attrs.get("rel", ""):
            self.loads.add(attrs.get("href", ""))
        self.loads |= {attrs["src"]} if "src" in attrs else set()


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name, "site")
        done = subprocess.run([ROOT / "tools/site/render", cls.folder], capture_output=True, text=True, timeout=SITE_SECONDS_MAX, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tools/site/render: {done.stdout}{done.stderr}")
        cls.pages = {path: Page(path) for path in cls.folder.rglob("*.html") if path.name != "404.html"}

    def test_every_document_is_a_page_that_the_first_page_leads_to(self):
        documents = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
        self.assertGreater(len(documents), 40)
        linked = {link.split("#")[0] for link in self.pages[self.folder / "index.html"].links}
        self.assertEqual(sorted((documents | {"changes.html"}) - linked - {"index.html"}), [])

    def test_every_link_leads_to_a_file_and_every_anchor_to_a_place(self):
        checked = 0
        for path, page in self.pages.items():
            for link in page.links | page.loads:
                target, _, anchor = link.partition("#")
                if re.match(r"[a-z]+:", target):
                    continue
                file = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(target))) if target else path
                place = f"{path.relative_to(self.folder)}: {link}"
                self.assertTrue(file.is_file() or (file / "index.html").is_file(), place)
                if anchor and file in self.pages:
                    self.assertIn(urllib.parse.unquote(anchor), self.pages[file].anchors, place)
                checked += 1
        self.assertGreater(checked, 1000)

    def test_no_page_loads_anything_from_another_machine(self):
        for path, page in self.pages.items():
            foreign = [load for load in page.loads if re.match(r"(?:[a-z]+:)?//", load)]
            self.assertEqual(foreign, [], path)
            self.assertNotIn("mermaid", page.classes, "the theme would fetch its program for such a picture")
        styles = list(self.folder.rglob("*.css"))
        self.assertTrue(styles)
        for style in styles:
            self.assertEqual(re.findall(r"""(?:url\(|@import\s*)['"]?(?:https?:)?//[^)'"]*""", style.read_text()), [], style)

    def test_what_is_written_for_another_renderer_is_rendered_here(self):
        """No list, table or fence is left as text."""
        for path in self.pages:
            article = re.search(r"<article.*</article>", path.read_text(), re.DOTALL).group()
            text = html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<(pre|code)\b.*?</\1>", "", article, flags=re.DOTALL)))
            left = [line for line in text.splitlines() if re.match(r"\s*(- |\||```)", line) or "](" in line]
            self.assertEqual(left, [], path)
            self.assertNotIn("\\|", article, path)


class Resource(unittest.TestCase):
    def test_the_page_of_the_fields_is_what_the_schema_renders(self):
        done = subprocess.run([ROOT / "tools/site/resource"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, read("docs/resource.md"), "run tools/render")


class Recipes(unittest.TestCase):
    def test_the_files_are_shown_as_they_are(self):
        text = read("docs/recipes.md")
        shown = dict(re.findall(r"^\[`[^`]+`\]\(\.\./manifests/examples/recipes/([^)]+)\):\n\n```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
        files = {path.name: path.read_text() for path in (ROOT / "manifests/examples/recipes").iterdir() if path.is_file()}
        self.assertEqual(shown.keys(), files.keys())
        for name, content in files.items():
            with self.subTest(name):
                self.assertEqual(shown[name], content)

    def test_the_versions_are_those_that_are_installed(self):
        pinned = dict(re.findall(r"^([a-z-]+)==([\d.]+) ", read("tools/recipes/requirements.txt") + read("tools/recipes/deepspeed.txt"), re.MULTILINE))
        pinned["torch"] = re.search(r"^torch_version=(\S+)$", read("tools/deps"), re.MULTILINE).group(1)
        told = re.search(r"real\npackages \((.*?)\)", read("docs/recipes.md")).group(1)
        for name, version in re.findall(r"(\w+) ([\d.]+)", told):
            self.assertEqual(pinned[name.lower()], version, name)
        self.assertEqual(len(told.split(",")), 5)


class Pages(Evidence, unittest.TestCase):
    """What the pages on security and upgrades say is shown by tests that exist."""

    def test_each_line_names_what_shows_it(self):
        checked = 0
        for path in ("docs/security.md", "docs/upgrades.md"):
            for row in markdown.rows(read(path)):
                for evidence in markdown.code_words(row[-1:]):
                    if re.fullmatch(r"plan/[\w-]+|tests/[\w/.-]+|[A-Z]\w+\.\w+", evidence):
                        checked += 1
                        with self.subTest(document=path, evidence=evidence):
                            self.check_evidence(evidence)
        self.assertGreater(checked, 15)


class Troubles(unittest.TestCase):
    QUIET = {"WorkersRunning", "Suspended", "SpecChanged", "NodesReadmitted", "WorkersSucceeded", "Worker0Succeeded"}

    def setUp(self):
        self.document = read("docs/troubleshooting.md")

    def test_every_reason_that_is_a_trouble_has_its_line(self):
        reasons = set(re.findall(r'k\w+ = "(\w+)"', read("operator/plan/reason.h")))
        first = markdown.code_words(row[0] for row in markdown.rows(self.document))
        described = {word for word in first if re.fullmatch(r"[A-Z]\w+", word)}
        self.assertEqual(described, reasons - self.QUIET)

    def test_each_field_that_a_command_reads_is_one_of_the_resource(self):
        version = yaml.safe_load(read("manifests/crd/trainingjobs.yaml"))["spec"]["versions"][0]
        top = version["schema"]["openAPIV3Schema"]
        paths = re.findall(r"get tj JOB -o jsonpath='\{\.([\w.]+)\}'", self.document)
        self.assertGreater(len(paths), 3)
        for path in paths:
            schema = top
            for name in path.split("."):
                self.assertIn(name, schema["properties"], path)
                schema = schema["properties"][name]


class ComingFrom(unittest.TestCase):
    def test_of_each_field_of_a_pytorchjob_the_converter_says_what_the_table_says(self):
        pod = {"spec": {"containers": [{"name": "pytorch", "image": "i", "command": ["a"]}]}}
        role = {"replicas": 1, "restartPolicy": "ExitCode", "template": pod}
        policy = {"backoffLimit": 1, "activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 9, "cleanPodPolicy": "None", "suspend": True,
                  "schedulingPolicy": {"minAvailable": 2}}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"},
               "spec": {"nprocPerNode": "2", "elasticPolicy": {"minReplicas": 1}, "runPolicy": policy,
                        "pytorchReplicaSpecs": {"Master": role, "Worker": role}}}
        status, text = program_output("tj", "validate", "-f", "-", stdin=json.dumps(job))
        self.assertEqual(status, 2)
        notes = [line for line in text.splitlines() if line.startswith("# ")]
        rows = [row for row in markdown.rows(markdown.section(read("docs/coming-from.md"), "Kubeflow PyTorchJob")) if len(row) == 3]
        self.assertGreater(len(rows), 9)
        for row in rows:
            for field in markdown.code_words(row[:1]):
                if row[2].startswith(("yes", "named")):
                    with self.subTest(field):
                        is_left_out = any(note.startswith((f"# spec.{field} ", f"# spec.{field} is")) for note in notes)
                        self.assertEqual(is_left_out, row[2].startswith("named"))
