"""The test runner counts what really ran, and calls nothing a success that is none."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "test"))
import results  # noqa: E402
import stages  # noqa: E402

JUNIT = """<?xml version="1.0"?>
<testsuite name="x" tests="4" failures="1" disabled="1" skipped="1">
  <testcase name="Plan.starts" status="run"><system-out>ok</system-out></testcase>
  <testcase name="Plan.stops" status="fail"><failure message="Failed"/><system-out>no</system-out></testcase>
  <testcase name="Gpu.counts" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>[ RUN      ] Gpu.counts
/gpu_test.cc:7: Skipped
no GPU on this machine

[  SKIPPED ] Gpu.counts (0 ms)</system-out></testcase>
  <testcase name="Old.story" status="disabled"/>
  <testcase name="Script" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>looking
no second disk
</system-out></testcase>
</testsuite>"""


def stage(counts):
    return stages.Stage("unit", "unit tests", "true", counts=counts)


class Missing:
    @staticmethod
    def exists():
        return False


class Text:
    def __init__(self, text):
        self.text = text

    def exists(self):
        return True

    def read_text(self, errors):
        return self.text


class Junit(unittest.TestCase):
    def test_each_case_is_counted_once_with_its_reason(self):
        counted = results.of_junit(JUNIT)
        self.assertEqual(counted.passed, 1)
        self.assertEqual(counted.failed, ["Plan.stops: no"])
        self.assertEqual(counted.skipped, ["Gpu.counts: no GPU on this machine", "Old.story: no reason given",
                                           "Script: no second disk"])

    def test_of_a_script_of_unittest_the_first_failure_is_told(self):
        story = """..F.
======================================================================
FAIL: test_stops (test_zero.Zero.test_stops)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_zero.py", line 9, in test_stops
    self.finish(rank, 76)
    ~~~~~~~~~~~^^^^^^^^^^
AssertionError: 1 != 76 : stdout:
step 1

stderr:
trainer: the disk is full

----------------------------------------------------------------------
Ran 4 tests in 0.1s

FAILED (failures=1)
"""
        self.assertEqual(results.failure_reason(story),
                         "test_stops: AssertionError: 1 != 76 : stdout: step 1 stderr: trainer: the disk is full")
        described = story.replace("(test_zero.Zero.test_stops)\n", "(test_zero.Zero.test_stops)\nOn a full disk.\n", 1)
        self.assertEqual(results.failure_reason(described), results.failure_reason(story))
        self.assertEqual(results.failure_reason("one\nFAILED"), "FAILED")
        long = results.in_one_line("began " + "x " * 400 + "the cause")
        self.assertTrue(long.startswith("began ") and long.endswith(" the cause"))


PARTS = """<?xml version="1.0"?>
<testsuite>
  <testcase name="zero.0" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>[ RUN      ] Zero.saves
[       OK ] Zero.saves (3 ms)
[ RUN      ] Zero.on_a_gpu
/zero_test.cc:7: Skipped
no GPU on this machine

[  SKIPPED ] Zero.on_a_gpu (0 ms)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Zero.on_a_gpu</system-out></testcase>
  <testcase name="zero.1" status="fail"><failure message="Failed"/><system-out>[       OK ] Zero.loads (3 ms)
/zero_test.cc:9: Failure
Value of: loss
  Actual: 3
Expected: 2

/zero_test.cc:12: Failure
Value of: another

[  FAILED  ] Stages/Zero.learns/2, where GetParam() = 4-byte object (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Stages/Zero.learns/2, where GetParam() = 4-byte object</system-out></testcase>
  <testcase name="zero.2" status="fail"><failure message="Failed"/><system-out>[       OK ] Zero.a (3 ms)
[       OK ] Zero.b (3 ms)
[ RUN      ] Zero.c
terminate called</system-out></testcase>
</testsuite>"""


class Parts(unittest.TestCase):
    def test_a_program_of_many_tests_counts_as_many(self):
        counted = results.of_junit(PARTS)
        self.assertEqual(counted.passed, 4)
        self.assertEqual(counted.skipped, ["Zero.on_a_gpu: no GPU on this machine"])

    def test_the_test_that_failed_is_named_and_a_program_that_crashed(self):
        self.assertEqual(results.of_junit(PARTS).failed, ["Stages/Zero.learns/2: Value of: loss Actual: 3 Expected: 2", "zero.2: terminate called"])


class Script(unittest.TestCase):
    def test_the_last_closing_line_counts(self):
        counted = results.of_script("3 passed, 0 failed\nFAIL the second story\nskip: gpu: none here\n"
                                    "4 passed, 1 failed, 1 skipped\ncleaning up\n")
        self.assertEqual((counted.passed, counted.failed, counted.skipped),
                         (4, ["the second story"], ["gpu: none here"]))

    def test_a_failure_is_told_with_its_reason(self):
        """unittest tells the name alone before that."""
        counted = results.of_script("FAIL: test_slow (Slurm.test_slow)\n...\nFAIL Slurm.test_slow: 3 != 4\n1 passed, 1 failed\n")
        self.assertEqual(counted.failed, ["Slurm.test_slow: 3 != 4"])

    def test_a_script_without_a_closing_line_counts_nothing(self):
        self.assertIsNone(results.of_script("all is well\n"))

    def test_failures_without_names_still_count(self):
        self.assertEqual(len(results.of_script("0 passed, 2 failed\n").failed), 2)


class OfStage(unittest.TestCase):
    def test_nothing_ran_is_a_failure(self):
        self.assertEqual(results.of_stage(stage("ctest"), "", Missing, 0).failed, ["unit: no test ran"])
        self.assertEqual(results.of_stage(stage("script"), "hello\n", Missing, 0).failed, ["unit: no test ran"])

    def test_an_exit_status_without_a_failed_test_is_a_failure(self):
        self.assertEqual(results.of_stage(stage("script"), "2 passed, 0 failed\n", Missing, 3).failed,
                         ["unit: exit status 3: 2 passed, 0 failed"])
        self.assertEqual(results.of_stage(stage(""), "a\nOSError: no disk\n\n", Missing, 1).failed, ["unit: exit status 1: OSError: no disk"])
        self.assertEqual(results.of_stage(stage(""), "", Missing, 1).failed, ["unit: exit status 1: it printed nothing"])

    def test_a_stage_without_tests_may_count_none(self):
        self.assertEqual(results.of_stage(stage(""), "", Missing, 0), results.Counted())

    def test_junit_is_read_where_it_is(self):
        self.assertEqual(results.of_stage(stage("ctest"), "", Text(JUNIT), 8).failed, ["Plan.stops: no"])


class Sum(unittest.TestCase):
    def test_the_last_line_is_the_sum_and_what_failed_stands_before_it(self):
        rows = [results.Row("unit", results.Spent(1), results.of_junit(JUNIT)), results.not_run("e2e", "cluster")]
        self.assertEqual(results.table(rows)[-2:], ["failed  unit: Plan.stops: no", "1 passed, 1 failed, 4 skipped"])
        self.assertIn("skipped e2e: e2e: not run because cluster failed", results.table(rows))
        self.assertEqual(results.exit_status(rows), 1)

    def test_success_needs_a_test_that_passed(self):
        self.assertEqual(results.exit_status([results.Row("build", results.Spent(1), results.Counted())]), 1)
        self.assertEqual(results.exit_status([results.Row("unit", results.Spent(1), results.Counted(passed=1))]), 0)


    def test_a_row_says_what_a_stage_may_take(self):
        spent = results.Spent(seconds=30, cpu_seconds=50, cold=True, budget_seconds=60)
        said = results.times([results.Row("unit", spent, results.Counted(passed=7))])[1].split()
        self.assertEqual(said, ["unit", "30", "60", "50%", "50", "cold", "7", "0", "0"])


if __name__ == "__main__":
    unittest.main()
