"""Counts what a stage's tests did, from CTest's JUnit file or from a script's closing line, and adds it up."""
import dataclasses
import re
import xml.etree.ElementTree as ElementTree

from reasons import REASON_CHARS_MAX, in_one_line

CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\b")
SKIP_LINE = re.compile(r"^\s*(?:SKIP|skip|skipped):?\s+(.+)$")
FAIL_LINE = re.compile(r"^\s*(?:FAIL|not ok)\b:?\s*(.+)$")
GTEST_SKIPPED = re.compile(r": Skipped\n(.*?)\n(?:\n|\[)", re.DOTALL)
GTEST_FAILED = re.compile(r": Failure\n(.*?)\n(?:\n|\[)", re.DOTALL)
UNITTEST_FAILED = re.compile(r"^(?:FAIL|ERROR): (\S+).*\n(?:.+\n)?-+\nTraceback .*\n(?:[ \t].*\n)+((?:.*\n)*?)\n?(?:={70}|-{70})$", re.MULTILINE)
GTEST_CASE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$", re.MULTILINE)


@dataclasses.dataclass
class Counted:
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)  # "name: reason"
    skipped: list = dataclasses.field(default_factory=list)  # "name: reason"


@dataclasses.dataclass
class Spent:
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of what the stage started and waited for: a cluster's daemons are not in it
    compiled: int = 0  # what ccache did not have
    cold: bool = False
    budget_seconds: float = 0.0


@dataclasses.dataclass
class Row:
    name: str
    spent: Spent
    counted: Counted
    usable: bool = True  # what builds on this stage can run

    def __post_init__(self):
        self.usable = self.usable and not self.counted.failed


def not_run(name, needed):
    return Row(name, Spent(), Counted(skipped=[f"{name}: not run because {needed} failed"]), usable=False)


def last_line(text, nothing="it printed nothing"):
    """What a failing program printed last is the cause."""
    return next((line.strip()[-REASON_CHARS_MAX:] for line in reversed(text.splitlines()) if line.strip()), nothing)


def skip_reason(output):
    """What GTEST_SKIP was told; of another program its last line."""
    told = GTEST_SKIPPED.search(output)
    return told.group(1).strip() if told else last_line(output, "no reason given")


def failure_reason(output):
    """The first failed expectation of GoogleTest or of Python's unittest; of another program its last line."""
    if told := GTEST_FAILED.search(output):
        return in_one_line(told.group(1))
    if told := UNITTEST_FAILED.search(output):
        return f"{told.group(1)}: {in_one_line(told.group(2))}"
    return last_line(output)


def of_gtest(output, counted):
    """Adds what each of a program's tests came to; says whether one of them failed."""
    before = 0
    failed = len(counted.failed)
    for ended in GTEST_CASE.finditer(output):
        verdict, name = ended.groups()
        if verdict == "OK":
            counted.passed += 1
        elif verdict == "FAILED":
            counted.failed.append(f"{name}: {failure_reason(output[before:ended.end()])}")
        else:
            counted.skipped.append(f"{name}: {skip_reason(output[before:ended.end()])}")
        before = ended.end()
    return len(counted.failed) > failed


def of_junit(text):
    """CTest writes status run, fail, notrun or disabled for each program. One of several tests (PARTS in tj_targets.cmake)
    says in its output what each came to."""
    counted = Counted()
    for case in ElementTree.fromstring(text).iter("testcase"):
        name, status = case.get("name"), case.get("status")
        output, skipped = case.findtext("system-out") or "", case.find("skipped")
        tests = len(GTEST_CASE.findall(output))
        told = of_gtest(output, counted) if tests > 1 else False
        if status == "fail" or case.find("failure") is not None:
            counted.failed += [] if told else [f"{name}: {failure_reason(output)}"]
        elif tests <= 1 and (skipped is not None or status in ("notrun", "disabled")):
            counted.skipped.append(f"{name}: {skip_reason(output)}")
        elif tests <= 1:
            counted.passed += 1
    return counted


def of_script(log):
    """The last line `N passed, N failed[, N skipped]`; absent when the script printed none. What failed stands just before it, with
    the reason; further up unittest has its own lines, without."""
    lines = log.splitlines()
    closing = next((found for found in map(CLOSING_LINE.match, reversed(lines)) if found), None)
    if closing is None:
        return None
    passed, failed, skipped = (int(number or 0) for number in closing.groups())
    reasons = [found.group(1) for found in map(SKIP_LINE.match, lines) if found][:skipped]
    reasons += ["no reason given"] * (skipped - len(reasons))
    names = [found.group(1) for found in map(FAIL_LINE.match, lines) if found][-failed:] if failed else []
    names += ["see the log"] * (failed - len(names))
    return Counted(passed, names, reasons)


def of_stage(stage, log, junit_path, exit_code):
    counted = Counted()
    if stage.counts == "ctest" and junit_path.exists():
        counted = of_junit(junit_path.read_text(errors="replace"))
    elif stage.counts == "script":
        counted = of_script(log) or counted
    ran = counted.passed + len(counted.failed) + len(counted.skipped)
    if exit_code != 0 and not counted.failed:
        counted.failed.append(f"{stage.name}: exit status {exit_code}: {last_line(log)}")
    elif stage.counts and ran == 0:
        counted.failed.append(f"{stage.name}: no test ran")
    return counted


def in_words(counted):
    parts = [f"{counted.passed} passed"] if counted.passed else []
    if counted.failed:
        parts.append(f"{len(counted.failed)} failed")
    if counted.skipped:
        parts.append(f"{len(counted.skipped)} skipped")
    return f": {', '.join(parts)}" if parts else ""


def totals(rows):
    return (sum(row.counted.passed for row in rows), sum(len(row.counted.failed) for row in rows),
            sum(len(row.counted.skipped) for row in rows))


def times(rows):
    """A row for each stage: what it took, of the CPU and of the clock, and what it may take."""
    lines = [f"{'stage':<16}{'seconds':>8}{'budget':>8}{'share':>7}{'cpu':>8}  {'caches':<6}{'passed':>8}{'failed':>8}{'skipped':>9}"]
    for row in rows:
        spent, counted = row.spent, row.counted
        share = f"{spent.seconds / spent.budget_seconds:.0%}" if spent.budget_seconds else ""
        lines.append(f"{row.name:<16}{spent.seconds:>8.0f}{spent.budget_seconds:>8.0f}{share:>7}{spent.cpu_seconds:>8.0f}"
                     f"  {'cold' if spent.cold else 'warm':<6}{counted.passed:>8}{len(counted.failed):>8}{len(counted.skipped):>9}")
    return lines


def table(rows):
    """What failed stands last: whoever sees the end of a log only sees the cause."""
    lines = ["", *times(rows), ""]
    for row in rows:
        lines += [f"skipped {row.name}: {reason}" for reason in row.counted.skipped]
    for row in rows:
        lines += [f"failed  {row.name}: {name}" for name in row.counted.failed]
    passed, failed, skipped = totals(rows)
    lines.append(f"{passed} passed, {failed} failed, {skipped} skipped")
    return lines


def exit_status(rows):
    passed, failed, _ = totals(rows)
    return 0 if failed == 0 and passed > 0 else 1
