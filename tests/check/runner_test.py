"""What the test runner gives its stages: no cluster of somebody else, and no leave to write golden files."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import unittest
from unittest import mock

PATH = pathlib.Path(__file__).resolve().parents[2] / "tools/test/run"
loader = importlib.machinery.SourceFileLoader("runner", str(PATH))
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)
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
        for path in (PATH.parents[2] / "tests").rglob("*"):
            if path.suffix in (".cc", ".h", ".py") and path != pathlib.Path(__file__).resolve():
                asked |= set(GOLDEN_NAME.findall(path.read_text()))
        self.assertEqual(asked, {"TJ_UPDATE_GOLDEN"})


if __name__ == "__main__":
    unittest.main()
