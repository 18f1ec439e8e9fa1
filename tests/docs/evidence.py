"""What shows a line of a table: a test that exists."""
import collections
import re
import unittest

import markdown
from documents import ROOT, read


class Evidence:
    """For a class of tests: the tests there are."""

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
