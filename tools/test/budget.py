"""How long a stage may take: a budget of seconds, stretched by how slow this machine is while it runs.

The budgets stand in stages.py, for two quiet cores on which the yardstick takes YARDSTICK_SECONDS. The yardstick is
taken when a run begins, and again before a stage is failed; the slower of both counts. So a machine that is half as
fast, or busy with something else, gets twice the time, and a stage that alone has become slow still fails.

A stage has two budgets. It was cold if something in it had to be made that a cache holds later: its own log says so,
and ccache does. Whether the caches were empty when the run began is no measure: one changed header is enough.
"""
import re
import subprocess
import sys
import time

YARDSTICK_SECONDS = 1.6
YARDSTICK = "sum(i * i % 7 for i in range(30_000_000))"
END_BUDGETS = 2
END_SECONDS_MIN = 20 * 60
YARDSTICK_PROCESSES = 2  # as many as the cores that the budgets are for
MADE = re.compile(r"^(?:deps: (?:installing|fetching|making)|cluster: building|images: (?:building|making)|"
                  r"tidy: \d+ sources, [1-9])", re.MULTILINE)


def yardstick():
    """1 on the machine that the budgets were made for, or on a faster one; 2 where the same work takes twice as long."""
    began = time.monotonic()
    processes = [subprocess.Popen([sys.executable, "-c", YARDSTICK]) for _ in range(YARDSTICK_PROCESSES)]
    for process in processes:
        process.wait()
    return max(1.0, (time.monotonic() - began) / YARDSTICK_SECONDS)


class Slowness:
    def __init__(self, measure=yardstick):
        self.measure = measure
        self.value = measure()

    def again(self):
        self.value = max(self.value, self.measure())
        return self.value


def was_cold(log, compiled):
    """`log`: what the stage printed; `compiled`: what ccache did not have."""
    return compiled > 0 or MADE.search(log) is not None


def compiled(ccache_log):
    """ccache's statistics log has a line for each thing that it counted."""
    return ccache_log.read_text().splitlines().count("cache_miss") if ccache_log.exists() else 0


def seconds_max(stage, cold, slowness):
    return (max(stage.warm_seconds, stage.cold_seconds) if cold else stage.warm_seconds) * slowness


def seconds_until_end(stage, slowness):
    """When a stage is ended: far above its budget, so that what is only slow can be told from what hangs."""
    return max(END_SECONDS_MIN, END_BUDGETS * seconds_max(stage, True, slowness))


def judge(stage, spent, slowness):
    """Sets the budget of what was spent. What is wrong with it, or None."""
    spent.budget_seconds = seconds_max(stage, spent.cold, slowness.value)
    if spent.seconds > spent.budget_seconds:
        spent.budget_seconds = seconds_max(stage, spent.cold, slowness.again())
    if spent.seconds <= spent.budget_seconds:
        return None
    return (f"{stage.name}: took {spent.seconds:.0f} s; its budget is {spent.budget_seconds:.0f} s "
            f"({'cold' if spent.cold else 'warm'}, on a machine that is {slowness.value:.1f} times as slow)")
