"""Python's unittest, told as the runner of the stages reads it."""
import sys
import unittest

from support.places import ROOT

sys.path.append(str(ROOT / "tools/test"))
from reasons import in_one_line  # noqa: E402


def reason(trace):
    """The message of what was raised, from its first line on: a failed wait shows there what it waited for."""
    lines = [line for line in trace.splitlines() if line.strip()]
    raised = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    said = [line.strip() for line in lines[raised[-1] + 1:] if line[:1] != " "] if raised else lines
    return in_one_line(" ".join(said))


def tell(suite, verbosity=2):
    """Runs it; prints a line for each test that failed or was skipped and, last, `N passed, N failed, N skipped`. The exit
    status is 0 only when tests ran and none failed."""
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=verbosity).run(suite)
    failed = {}  # once for each test: its subtests count as one
    for case, trace in result.failures + result.errors:
        failed.setdefault(getattr(case, "test_case", case).id(), reason(trace))
    for name, why in sorted(failed.items()):
        print(f"FAIL {name}: {why}")
    for case, why in result.skipped:
        print(f"SKIP {case.id()}: {why}")
    print(f"{result.testsRun - len(failed) - len(result.skipped)} passed, {len(failed)} failed, {len(result.skipped)} skipped")
    return 1 if failed or not result.testsRun else 0
