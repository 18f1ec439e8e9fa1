"""What the two ranks of a run say, when, and whether it is what a fault must make them say."""

import re
import threading
import time

RUN_SECONDS_MAX = 300  # of one attempt; a machine may be busy
NODES = ("node-a", "node-b")  # as faults.py calls those of rank 0 and 1


class Said:
    """All that a process says, with the time of each line."""

    def __init__(self, process):
        self.process = process
        self.lines = []  # (seconds, text)
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.ended_at = None

    def read(self):
        for line in self.process.stdout:
            self.note(line.rstrip("\n"))
        self.process.wait()
        self.ended_at = time.monotonic()
        self.note(None)

    def note(self, line):
        with self.changed:
            self.lines.append((time.monotonic(), line))
            self.changed.notify_all()

    def wait_for(self, pattern):
        """Until a line matches, or the process ends."""
        def found():
            return any(line is None or re.search(pattern, line) for _, line in self.lines)

        with self.changed:
            if not self.changed.wait_for(found, RUN_SECONDS_MAX):
                raise SystemExit(f"no line like {pattern!r} within {RUN_SECONDS_MAX} s:\n{self.text()}")
            if not any(line is not None and re.search(pattern, line) for _, line in self.lines):
                raise SystemExit(f"ended without a line like {pattern!r}:\n{self.text()}")

    def wait(self):
        """Until its end; its exit code."""
        self.reader.join(RUN_SECONDS_MAX)
        if self.reader.is_alive():
            raise SystemExit(f"still running after {RUN_SECONDS_MAX} s:\n{self.text()}")
        return self.process.returncode

    def text(self):
        return "\n".join(line for _, line in self.lines if line is not None)

    def cause(self):
        """(seconds, sentence) of the trainer's own last words, before the launcher's."""
        said = [(at, line) for at, line in self.lines if line and line.startswith("trainer: ")]
        return said[-1] if said else (None, "")


def check_end(name, fault, ranks, struck_at, nodes=NODES):
    """The row's part from the sentence on, after a look at who says what and ends how; and whether training went on."""
    codes = {number: rank.wait() for number, rank in ranks.items()}
    if not any(codes.values()) and (fault.may_go_on or not fault.sentence):
        return "nothing: training goes on | - | - | same bits |", True
    said_at, sentence = ranks[fault.survivor].cause()
    wanted = fault.sentence
    for called, node in zip(NODES, nodes, strict=True):
        wanted = wanted.replace(called, node)
    told = f"{name}: exit codes {codes}, the survivor said {sentence!r}\n{ranks[fault.survivor].text()[-2000:]}"
    assert codes[fault.survivor] == fault.code, told
    assert wanted and re.search(wanted, sentence), told
    if fault.launcher_says:
        other = ranks[1 - fault.survivor].text()
        assert fault.launcher_says in other, other[-2000:]
    gone = max(rank.ended_at for rank in ranks.values()) - struck_at
    assert gone <= fault.seconds_max, f"said after {said_at - struck_at:.1f} s, all gone after {gone:.1f} s; {told}"
    said = sentence.removeprefix("trainer: ")
    return f"{said} | {said_at - struck_at:.1f} s | {gone:.1f} s | resumed, same bits |", False
