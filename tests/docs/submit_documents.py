"""docs/tj-submit.md against `tj`: its tables have the flags of the helps."""
import re
import unittest

import markdown
from documents import long_flags, read
from programs import program_output

SESSION_FLAGS = {"--kubeconfig", "--context", "--namespace"}
# In the examples of the help: of sbatch, and of trainer train.
OF_OTHERS = {"--exclusive", "--qos", "--model", "--data", "--out"}


class Submitting(unittest.TestCase):
    def assert_flags(self, command, missing=frozenset()):
        section = markdown.section(read("docs/tj-submit.md"), f"tj {command}")
        told = {flag for row in markdown.rows(section) for flag in re.findall(r"`(--[a-z-]+)", " ".join(row))}
        _, text = program_output("tj", command, "--help")
        offered = long_flags("\n".join(line for line in text.splitlines() if re.match(r" +-", line)))
        self.assertEqual(told | missing, offered)

    def test_the_flags_of_submit_are_those_of_the_program(self):
        self.assert_flags("submit", SESSION_FLAGS | {"--file", "--output"})

    def test_the_flags_of_launch_are_those_of_the_program(self):
        self.assert_flags("launch")

    def test_the_flags_of_slurm_are_those_of_the_program(self):
        self.assert_flags("slurm", OF_OTHERS)
