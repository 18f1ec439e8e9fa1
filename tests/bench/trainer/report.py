"""Turns results of the trainer's benchmark into tables of docs/measurements.md and a plot. Pure but for write()."""
import pathlib
import statistics
import sys

import measurements
import svg_bars

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
DOCUMENT = DOCS / "measurements.md"
DATA = DOCS / "measurements/trainer.json"
PLOT = DOCS / "measurements/trainer.svg"
BEGIN = "<!-- tests/bench/trainer writes from here -->"
END = "<!-- tests/bench/trainer writes to here -->"
TITLES = {"ours": "this trainer", "plain": "plain PyTorch", "transformers": "transformers"}
POLICY_TITLES = {"ours": "this trainer", "lerobot": "LeRobot's pi0"}
CLIP_TITLES = {"ours": "this trainer", "plain": "plain PyTorch", "channels-last": "plain PyTorch, channels last"}
STEPS_AFTER = 10


def of_save(seen, step):
    """How long the step after the save took beyond a usual one, and the ten after it beside those before."""
    taken = [after - before for before, after in zip(seen.ends, seen.ends[1:])]  # of steps 2, 3, ...
    before = taken[1:step - 1]  # steps 3 to `step`
    after = taken[step - 1:step - 1 + STEPS_AFTER]  # from the step during which the save began
    usual = statistics.median(before)
    return {"usual_step_ms": round(1000 * usual), "longest_step_after_ms": round(1000 * max(after)),
            "slowdown_percent": round(100 * (statistics.mean(after) / statistics.mean(before) - 1), 1)}


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(head, rows):
    return "\n".join([row(*head), row(*["---"] * len(head)), *(row(*cells) for cells in rows)])


def medians(runs):
    return {name: statistics.median(each) for name, each in runs.items() if each}


def rate_cases(results):
    return {**results.get("nano", {}), **results.get("small", {})}


def scatter(values):
    """Half of what lies between the best and the worst, in percent of the median."""
    return f"{50 * (max(values) - min(values)) / statistics.median(values):.0f} %"


def rates_table(cases):
    rows = []
    for case, runs in cases.items():
        rate = medians(runs)
        rows.append((case, *(f"{rate[name]:,.0f}" for name in TITLES),
                     f"{rate['ours'] / rate['plain']:.2f}", f"{rate['ours'] / rate['transformers']:.2f}",
                     f"{len(runs['ours'])}, {scatter(runs['ours'])}"))
    return table(("case", *(f"{title}, tokens/s" for title in TITLES.values()), "ours : plain", "ours : transformers",
                  "rounds, +- of ours"), rows)


def memory_table(results):
    cases = {case: runs for part in results["peaks_mib"].values() for case, runs in part.items()}
    rows = [(case, *(f"{mib:,.0f} MiB" for mib in medians(runs).values())) for case, runs in cases.items()]
    return table(("case", *TITLES.values()), rows)


def work_table(cases, titles, unit):
    """Of each case a row for each contender: `unit`, such as clips, per second, CPU time and memory."""
    rate = f"{unit}_per_second"
    rows = []
    for case, runs in cases.items():
        middle = {name: {what: statistics.median(each[what] for each in rounds) for what in rounds[0]}
                  for name, rounds in runs.items() if rounds}
        for name, seen in middle.items():
            rates = [each[rate] for each in runs[name]]
            rows.append((case, titles[name], f"{seen[rate]:.2f}", f"{middle['ours'][rate] / seen[rate]:.2f}",
                         f"{seen['cpu_seconds_per_step']:.2f} s", f"{seen['peak_mib']:,.0f} MiB",
                         f"{len(rates)}, {scatter(rates)}"))
    return table(("case", "who", f"{unit}/s", "ours : it", "CPU time of a step", "peak of resident memory", "rounds, +-"), rows)


def ratios(runs, one, other):
    """Of steps per second, round by round."""
    return [mine["steps_per_second"] / theirs["steps_per_second"] for mine, theirs in zip(runs[one], runs[other])]


def each_row(runs, more):
    """Of each contender: steps/s, what `more(name)` says, CPU time, memory, rounds."""
    for name, rounds in runs.items():
        rates = [each["steps_per_second"] for each in rounds]
        yield (TITLES.get(name, name), f"{statistics.median(rates):.3f}", more(name), f"{statistics.median(each['cpu_seconds_per_step'] for each in rounds):.2f} s",
               f"{max(each['peak_mib'] for each in rounds):,} MiB", f"{len(rates)}, {scatter(rates)}")


def qwen_table(found, head, more):
    return table(("who", "steps/s", head, "CPU time of a step", "peak of resident memory of a rank", "rounds, +-"), each_row(found["runs"], more))


def qwen_parts(found):
    """Ratios are the medians of those of the rounds."""
    def times(part, one, other):
        return statistics.median(ratios(part["runs"], one, other))

    def work(part):
        return f"{part['case']}; {part['steps']['timed']} steps timed after {part['steps']['warmup']}"
    beside, seeing = found["beside"], found["seeing"]
    first, last = beside["runs"]["ours"][0]["losses"], beside["runs"]["transformers"][0]["losses"]
    alone = [text for part in found["alone"] for text in (
        f"**Two ranks beside one**, {work(part)}. A step of two ranks has twice the conversations. `2 apart` know nothing of each "
        "other, and share the machine alone.",
        qwen_table(part, "conversations/s, in multiples of one rank's",
                   lambda name, part=part: f"{int(name.split()[0]) * times(part, name, '1 rank'):.2f}"))]
    return [
        "### Qwen2.5-VL",
        f"A Qwen2.5-VL of {found['parameters']['qwen']:,} parameters and a VGGT of {found['parameters']['vggt']:,}, float32, on conversations of "
        f"{found['tokens']} tokens on average; each rank has one core and one thread. Peaks are those of the largest process.",
        f"**ZeRO-3 beside FSDP2**, two ranks, {work(beside)}. The losses of the first step and of the last were {first[0]:.4f} and "
        f"{first[1]:.4f} here, {last[0]:.4f} and {last[1]:.4f} there.",
        qwen_table(beside, "ours : it", lambda name: f"{times(beside, 'ours', name):.2f}"),
        *alone,
        f"**A live VGGT**, one rank, {work(seeing)}. `kept`: every frame was seen before, and what DINOv2 makes of it is kept "
        "(`--vggt-cache`); `anew`: nothing is kept.",
        qwen_table(seeing, "share of the step that VGGT takes", lambda name: f"{1 - times(seeing, name, 'off'):.1%}"),
    ]


def start_table(results):
    rows = [(case, *(f"{seconds:.2f} s" for seconds in medians(runs).values()))
            for case, runs in results.get("start", {}).items()]
    return table(("case", *TITLES.values()), rows)


def checkpoint_table(results):
    rows = []
    for name, seen in results.get("checkpoint", {}).items():
        said = {key: value for event in seen.get("said", []) for key, value in event.items()}
        stall = said.get("stall_ms")
        rows.append((TITLES[name], "-" if stall is None else f"{stall:.1f} ms", f"{seen['usual_step_ms']} ms",
                     f"{seen['longest_step_after_ms']} ms", f"{seen['slowdown_percent']} %"))
    return table(("who", "stall, by its own account", "usual step", "longest of the 10 steps after",
                  "slow-down of these 10"), rows)


def where_line(results):
    taken = {}
    for part, where in results["where"].items():
        taken.setdefault((where["date"], where["commit"]), []).append(f"{part} (load {where['load_before']})")
    where = next(iter(results["where"].values()))
    said = "; ".join(f"{', '.join(parts)} on {date} at commit `{commit}`" for (date, commit), parts in taken.items())
    return (f"Taken on {where['cores']} cores of {where['cpu']}, {where['memory_gib']} GiB, Linux {where['kernel']}: "
            f"{said}. The load is that of the machine before the part began.")


def steps_line(results):
    said = [f"{part}: {steps['timed']} steps timed after {steps['warmup']} that are not"
            for part, steps in results.get("steps", {}).items()]
    return "Of each run, " + "; ".join(said) + "." if said else ""


def text(results):
    parts = [where_line(results), steps_line(results)]
    if rate_cases(results):
        parts += ["### Tokens per second", f"![tokens per second]({PLOT.relative_to(DOCS)})",
                  rates_table(rate_cases(results))]
    if "zero3" in results:
        parts += ["### ZeRO-3 beside FSDP2", rates_table(results["zero3"])]
    if "taehv" in results:
        parts += ["### Clips per second of TAEHV", work_table(results["taehv"], CLIP_TITLES, "clips")]
    if "pi0" in results:
        parts += ["### Steps per second of pi0", work_table(results["pi0"], POLICY_TITLES, "steps")]
    if "qwen" in results:
        parts += qwen_parts(results["qwen"])
    if "decode" in results:
        seen = results["decode"]
        parts.append(f"`trainer decode` makes {seen['video'].replace('x', ' x ')} of TAEHV's latents in {seen['seconds']:.1f} s, "
                     f"{seen['frames_per_second']:.2f} frames/s, in {seen['peak_mib']:,.0f} MiB.")
    if "peaks_mib" in results:
        parts += ["### Peak of resident memory", memory_table(results)]
    if "start" in results:
        parts += ["### Process start to the end of the first step", start_table(results)]
    if "checkpoint" in results:
        parts += ["### A save of 124M parameters and their moments", checkpoint_table(results)]
    return "\n\n".join(part for part in parts if part)


def plot(results):
    groups = {}
    for case, runs in rate_cases(results).items():
        rate = medians(runs)
        groups[case] = {TITLES[name]: rate[name] / rate["transformers"] for name in TITLES}
    return svg_bars.draw("Tokens per second, in multiples of transformers'", groups, list(TITLES.values()), digits=2)


def document_with(document, results):
    """The document with these results in it; without results it says so."""
    return measurements.section(document, BEGIN, END, text(results) if results else "")


def write(results):
    measurements.write(sys.modules[__name__], results)
