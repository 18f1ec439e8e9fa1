"""Turns results of the benchmark into the tables of docs/measurements.md and a plot. Pure but for write()."""
import pathlib
import statistics
import sys

import measurements
import svg_bars

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
DOCUMENT = DOCS / "measurements.md"
DATA = DOCS / "measurements/operator.json"
PLOT = DOCS / "measurements/operator.svg"
BEGIN = "<!-- tests/bench/operator writes from here -->"
END = "<!-- to here -->"
NAMES = {"bare": "bare client", "ours": "this operator", "training-operator": "training-operator v1.8.1",
         "jobset": "JobSet v0.8.2"}


def pods_of(workload):
    jobs, workers = workload.split("x")
    return int(jobs) * int(workers)


def median(runs, key):
    return statistics.median(one[key] for one in runs)


def rate(workload, runs, key):
    return pods_of(workload) / median(runs, key)


def rates(workload, runs):
    return (f"{rate(workload, runs, 'exist_seconds'):.0f} pods/s until all exist, "
            f"{rate(workload, runs, 'running_seconds'):.0f} until all run")


def by_contender(results, workload):
    """Runs of each; of the bare client those with the number of connections that served it best."""
    runs = results.get("creation", {}).get(workload, {})
    bare = [each for name, each in runs.items() if name.startswith("bare")]
    found = {"bare": min(bare, key=lambda each: median(each, "exist_seconds"))} if bare else {}
    if "ours" in runs:
        found["ours"] = runs["ours"]
    for peer, workloads in results.get("peers", {}).items():
        if workload in workloads:
            found[peer] = workloads[workload]
    return found


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(head, rows):
    return "\n".join([row(*head), row(*["---"] * len(head)), *(row(*cells) for cells in rows)])


def creation_table(results):
    rows = []
    for workload in results.get("creation", {}):
        runs = by_contender(results, workload)
        for name, each in runs.items():
            seconds = {key: median(each, key) for key in ("exist_seconds", "running_seconds")}
            share = {key: f"{median(runs['bare'], key) / seconds[key]:.0%}" for key in seconds}
            rows.append((workload, NAMES[name], f"{rate(workload, each, 'exist_seconds'):.0f}", share["exist_seconds"],
                         f"{rate(workload, each, 'running_seconds'):.0f}", share["running_seconds"]))
    return table(("jobs x workers", "who", "pods/s until all exist", "of bare", "pods/s until all run", "of bare"), rows)


def restart_table(results):
    rows = [(workers, f"{median(runs['ours'], 'running_seconds'):.2f} s", f"{median(runs['bare'], 'running_seconds'):.2f} s")
            for workers, runs in results.get("restart", {}).items()]
    return table(("workers", "gang restart, this operator", "the bare client deletes and creates as many"), rows)


def footprint_table(results):
    rows = [(situation, f"{seen['memory_mb']} MB", f"{seen['anonymous_mb']} MB", f"{seen['cpu_percent']} %",
             written(seen["writes"]))
            for situation, seen in results.get("footprint", {}).items()]
    return table(("situation", "resident memory", "of it anonymous", "CPU of one core", "writes in the sample"), rows)


def written(writes):
    return ", ".join(f"{count} {what}" for what, count in sorted(writes.items())) or "0"


def writes_table(results):
    rows = [(NAMES[name], workers, sum(counted.values()), written(counted))
            for name, sizes in results.get("writes", {}).items() for workers, counted in sizes.items()]
    return table(("who", "workers", "writes", "of these"), rows)


def where_line(results):
    """The machine is that of the last part; each part has its commit."""
    commits = {}
    for part, where in results["where"].items():
        commits.setdefault((where["date"], where["commit"]), []).append(part)
    taken = "; ".join(f"{', '.join(parts)} on {date} at commit `{commit}`" for (date, commit), parts in commits.items())
    return (f"Taken on {where['cores']} cores of {where['cpu']}, {where['memory_gib']} GiB, Linux {where['kernel']}: "
            f"{taken}.")


def memory_table(results):
    """The most after any of the workloads."""
    seen = {}
    for workload in results.get("creation", {}):
        for name, runs in by_contender(results, workload).items():
            seen.setdefault(name, []).extend(runs)
    rows = []
    for name, runs in seen.items():
        if name != "bare":  # it is gone by then
            most = max(runs, key=lambda each: each["memory_mb"])
            rows.append((NAMES[name], f"{most['memory_mb']:.0f} MB", f"{most['anonymous_mb']:.0f} MB"))
    return table(("who", "resident memory after these workloads", "of it anonymous"), rows)


def text(results):
    parts = [where_line(results), "### Creation", f"![pods per second]({PLOT.relative_to(DOCS)})", creation_table(results),
             memory_table(results), "### Gang restart", restart_table(results), "### At rest", footprint_table(results),
             "### Writes for one job that runs and succeeds", writes_table(results)]
    return "\n\n".join(part for part in parts if part)


def plot(results):
    groups = {workload: {NAMES[name]: rate(workload, each, "exist_seconds")
                         for name, each in by_contender(results, workload).items()}
              for workload in results.get("creation", {})}
    return svg_bars.draw("Pods per second until all exist, by jobs x workers", groups, list(NAMES.values()))


def document_with(document, results):
    """The document with these results in it; without results it says so."""
    return measurements.section(document, BEGIN, END, text(results) if results else "")


def write(results):
    measurements.write(sys.modules[__name__], results)
