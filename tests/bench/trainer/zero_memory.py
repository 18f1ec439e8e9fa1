#!/usr/bin/python3
"""Writes the table and the plot of ZeRO's memory and traffic in docs/measurements.md from what trainer_zero_test counts.

  tests/bench/trainer/zero_memory.py build/dev/tests/trainer/engine/trainer_zero_test
"""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "operator"))
import svg_bars  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
BEGIN, END = "<!-- zero_memory.py writes from here -->", "<!-- zero_memory.py writes to here -->"
LINE = re.compile(
    r"^(\w+), stage (\d), (\d) ranks, 1 passes: ([\d.]+) bytes per parameter \(law ([\d.]+)\), "
    r"([\d.]+) counted, ([\d.]+) moved$",
    re.MULTILINE,
)
SECONDS_MAX = 600


def main():
    test = [sys.argv[1], "--gtest_filter=Zero.memory_and_volume_follow_the_laws"]
    printed = subprocess.run(test, check=True, capture_output=True, text=True, timeout=SECONDS_MAX).stdout
    found = LINE.findall(printed)
    rows = ["| precision | stage | ranks | bytes per parameter | law | elements moved in a step / parameters |",
            "|---|---|---|---|---|---|"]
    groups = {}
    for precision, stage, ranks, held, law, _, moved in found:
        rows.append(f"| {precision} | {stage} | {ranks} | {held} | {law} | {moved if ranks != '1' else '-'} |")
        groups.setdefault(f"{precision}, stage {stage}", {})[f"{ranks} ranks"] = float(held)
    names = [f"{ranks} ranks" for ranks in (1, 2, 4)]
    plot = svg_bars.draw("Bytes per parameter of one rank: weights, gradients and moments", groups, names, 1)
    (DOCS / "measurements/zero.svg").write_text(plot)
    document = DOCS / "measurements.md"
    text = document.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    document.write_text(before + "\n".join([BEGIN, *rows, END]) + after)


main()
