"""What the test runner gives its stages: no cluster of somebody else, and no leave to write golden files."""
import os
import pathlib
import re
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support import modules  # noqa: E402

runner = modules.load(ROOT / "tools/test/run", "runner_of_tests")
GOLDEN_NAME = re.compile(r'(?:getenv\(|environ(?:\.get)?[\[(])\s*"(\w*(?:GOLDEN|UPDATE|REWRITE)\w*)"')


class Environment(unittest.TestCase):
    def test_what_a_developer_has_set_does_not_reach_the_stages(self):
        with mock.patch.dict(os.environ, {"TJ_UPDATE_GOLDEN": "1", "KUBECONFIG": "/mine"}):
            env = runner.environment()
        self.assertNotIn("TJ_UPDATE_GOLDEN", env)
        self.assertNotIn("KUBECONFIG", env)
        self.assertEqual(env["TJ_REQUIRE_APISERVER"], "1")

    def test_golden_files_have_one_switch(self):
        """Whatever writes a golden file asks TJ_UPDATE_GOLDEN, and no other name of that kind is asked for."""
        asked = set()
        for path in (ROOT / "tests").rglob("*"):
            if path.suffix in (".cc", ".h", ".py") and path != pathlib.Path(__file__).resolve():
                asked |= set(GOLDEN_NAME.findall(path.read_text()))
        self.assertEqual(asked, {"TJ_UPDATE_GOLDEN"})


if __name__ == "__main__":
    unittest.main()
