"""Turns what was measured on the slow wire into tables of docs/measurements.md and a plot. Pure but for write()."""
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "operator"))
import measurements  # noqa: E402
import svg_bars  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
DOCUMENT = DOCS / "measurements.md"
DATA = DOCS / "measurements/slow_network.json"
PLOT = DOCS / "measurements/slow_network.svg"
BEGIN = "<!-- tests/bench/slow_network writes from here -->"
END = "<!-- tests/bench/slow_network writes to here -->"
# Of S2, two nodes at 1 Gb/s with 50 million parameters: an exact synchronisation of float32 takes 1.72 s where the passes of a
# step take 1 s, 63 % of both (docs/measurements.md, Slow networks).
COMMUNICATION_PER_COMPUTE = 1.72
LOSS_APART_MAX = 0.01
LOSSY = ("int8", "PowerSGD")
# (passes, who, least efficiency): the best of those named.
TARGETS = ((8, ("bf16",), 0.90), (8, LOSSY, 0.97), (1, LOSSY, 0.85))


def goodput(compute_seconds, gradient_bytes):
    """Bytes a second, each way, at which the ring law's all-reduce between two (each sends what the gradients hold) takes the
    share of a step that it takes in S2."""
    return gradient_bytes / (COMMUNICATION_PER_COMPUTE * compute_seconds)


def share(passes):
    """Of an exact and not overlapped synchronisation in a step of so many passes."""
    return COMMUNICATION_PER_COMPUTE / (passes + COMMUNICATION_PER_COMPUTE)


def in_step(one, other):
    """What is left where each step takes as long as the slower of two nodes takes for its own: 1 if both always take the same.
    Seconds of the steps of each."""
    return (sum(one) + sum(other)) / 2 / sum(map(max, one, other))


def median_of(runs, what):
    return statistics.median(run[what] for run in runs)


def efficiency(results, passes, name):
    """None where it was not measured."""
    runs = results["rates"].get(str(passes), {}).get("runs", {}).get(name)
    return median_of(runs, "efficiency") if runs else None


def apart(results, name):
    """Of the loss from that of the exact run, as a share of it; None where it was not measured."""
    losses = results.get("losses", {})
    return losses[name] / losses["fp32"] - 1 if name in losses and "fp32" in losses else None


def judged(results, choices):
    """(what must be, what is, whether it is) of each target that was measured; `choices` may differ in their loss."""
    rows = []
    for passes, names, least in TARGETS:
        reached = {name: efficiency(results, passes, name) for name in names}
        seen = {name: value for name, value in reached.items() if value is not None}
        told = ", ".join(f"{name} {value:.1%}" for name, value in seen.items())
        if seen:
            rows.append((f"accumulation {passes}, {' or '.join(names)}: at least {least:.0%}", told, max(seen.values()) >= least))
    for name in results.get("losses", {}):
        if name != "fp32" and name not in choices:
            gap = apart(results, name)
            rows.append((f"loss with {name}: within {LOSS_APART_MAX:.0%} of the exact one's", f"{gap:+.2%}", abs(gap) <= LOSS_APART_MAX))
    return rows


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(head, rows):
    return "\n".join([row(*head), row(*["---"] * len(head)), *(row(*cells) for cells in rows)])


def spread(runs):
    """Half of what lies between the best and the worst efficiency, in points of a percent."""
    seen = [run["efficiency"] for run in runs]
    return f"{50 * (max(seen) - min(seen)):.1f}"


def rates_table(results, passes):
    found = results["rates"][str(passes)]
    gradient_mb = results["link"]["gradient_bytes"] / 1e6
    rows = [("none: two nodes apart, this trainer", f"{statistics.median(found['baseline']['ours']):,.0f}", "100 %", "0", "-", "")]
    if found["baseline"].get("torch"):
        rows.append(("none: two nodes apart, plain PyTorch", f"{statistics.median(found['baseline']['torch']):,.0f}", "100 %", "0", "-", ""))
    if found.get("in_step"):
        rows.append(("none: each step waits for the slower of two nodes apart", "-", f"{statistics.median(found['in_step']):.1%}", "0", "-", ""))
    for name, runs in found["runs"].items():
        sent_mb = median_of(runs, "bytes_per_step") / 1e6
        rows.append((title_of(name), f"{median_of(runs, 'tokens_per_second'):,.0f}", f"{median_of(runs, 'efficiency'):.1%}",
                     f"{sent_mb:.2f}", f"{gradient_mb / sent_mb:.1f}", f"{len(runs)}, {spread(runs)}"))
    return table(("reduction", "tokens/s", "efficiency", "MB sent by a node in a step", "less than the gradients by", "rounds, +- points"),
                 rows)


def title_of(name):
    return f"PyTorch {name}" if name.startswith("DDP") else f"this trainer, {name}"


def losses_table(results):
    rows = [(name, f"{loss:.4f}", "-" if name == "fp32" else f"{apart(results, name):+.2%}") for name, loss in results["losses"].items()]
    return table(("reduction", "loss after the last step", "from the exact one's"), rows)


def targets_table(results, choices):
    return table(("target", "measured", ""), [(wanted, told, "reached" if is_so else "missed") for wanted, told, is_so in judged(results, choices)])


def where_line(results):
    where, link, model = results["where"], results["link"], results["model"]
    return (f"Taken on {where['date']} at commit `{where['commit']}`, on 2 of {where['cores']} cores of {where['cpu']}, {where['memory_gib']} GiB, Linux "
            f"{where['kernel']}, load {where['load_before']} before. GPT-2 of {model['layers']} layers and width {model['width']}, {model['parameters']:,} parameters, "
            f"{model['micro_batch']} x {model['context']} tokens in a pass of a node. A step of one pass takes a node {1000 * link['compute_seconds']:.0f} ms; so the wire "
            f"carries {link['goodput'] / 1e6:.1f} MB/s each way, and the {link['gradient_bytes'] / 1e6:.1f} MB of the gradients take "
            f"{1000 * link['exchange_seconds']:.0f} ms on it by a plain exchange ({link['exchange_seconds'] / link['compute_seconds']:.2f} of the step; S2's is "
            f"{COMMUNICATION_PER_COMPUTE}).")


def text(results):
    parts = [where_line(results), f"![efficiency]({PLOT.relative_to(DOCS)})"]
    for passes in sorted(map(int, results["rates"]), reverse=True):
        parts += [f"### {passes} {'passes' if passes > 1 else 'pass'} in a step: exact and not overlapped, {share(passes):.0%} would be communication",
                  rates_table(results, passes)]
    if results.get("losses"):
        parts += [f"### Loss after {results['loss_tokens']:,} tokens", losses_table(results)]
    if judged(results, results["choices"]):
        parts += ["### Targets", targets_table(results, results["choices"])]
    if results.get("skipped"):
        parts.append("Not measured, as the build had no such flag: " + ", ".join(results["skipped"]) + ".")
    return "\n\n".join(parts)


def plot(results):
    passes = sorted(map(int, results["rates"]), reverse=True)
    titles = {each: f"{each} {'passes' if each > 1 else 'pass'} in a step" for each in passes}
    groups = {}
    for each in passes:
        for name in results["rates"][str(each)]["runs"]:
            groups.setdefault(name, {})[titles[each]] = 100 * efficiency(results, each, name)
    return svg_bars.draw("Efficiency of two nodes on the slow wire, in percent", groups, list(titles.values()))


def document_with(document, results):
    """The document with these results in it; without results it says so."""
    return measurements.section(document, BEGIN, END, text(results) if results else "")


def write(results):
    measurements.write(sys.modules[__name__], results)
