"""pi0: steps per second and what they take of the card, beside LeRobot's own model. Weights are random."""
import statistics

import rows
import runner
import speed

DATA_THREADS = 4
STEPS_MAX = 1000  # a run is ended once its steps are timed: a checkpoint of the published size has 38 GB
IS_THERE = "import importlib.util as u; print(all(u.find_spec(name) for name in ('lerobot', 'transformers')))"


def recomputation(size, flag):
    return [flag] if size.recomputes else []


def ours(kit, size):
    flags = ["--model", size.preset, "--data", kit.number_of_samples(), "--batch-size", size.batch_size, "--steps", STEPS_MAX,
             "--precision", kit.size.precision, "--data-threads", DATA_THREADS if kit.has_gpu else 1, *recomputation(size, "--recompute")]
    return kit.train("policies-ours", *flags, program="pi0_colours/trainer", until_step=size.steps)


def lerobots(kit, size):
    command = [kit.python, kit.root / "peers" / "pi0_published.py", "--batch-size", size.batch_size, "--steps", STEPS_MAX, "--device",
               kit.device, "--precision", kit.size.precision, *recomputation(size, "--recompute")]
    return kit.run("policies-lerobot", command, speed.peer_environment(kit), until_step=size.steps)


def rate_row(kit, what, runs, faster=""):
    found = [1 / run.seconds_per_step(kit.size.policies.warmup) for run in runs]
    memory_mib = max(run.card_mib for run in runs)
    taken = f", {memory_mib:,} MiB of the card" if memory_mib else ""
    return rows.Row("ok", "policies", what, f"{statistics.median(found):.3f} steps/s{taken}{faster}",
                    {"steps_per_second": [round(each, 3) for each in found], "card_mib": memory_mib})


def rates(kit):
    size = kit.size.policies
    shape = f"{size.preset}, {kit.size.precision}, batch {size.batch_size}"
    if kit.has_gpu and kit.machine.memory_gib < size.memory_gib:
        yield rows.Row("SKIP", "policies", shape, f"needs a card of {size.memory_gib} GiB")
        return
    mine = [ours(kit, size) for _ in range(size.rounds)]
    yield rate_row(kit, f"ours, {shape}", mine)
    what = f"LeRobot's pi0, {kit.size.precision}, batch {size.batch_size}"
    if not kit.has_gpu:
        yield rows.needs_gpu("policies", what)
        return
    if kit.run("lerobot-is-there", [kit.python, "-c", IS_THERE], speed.peer_environment(kit)).text.strip() != "True":
        yield rows.Row("SKIP", "policies", what, "needs LeRobot 0.6.1 and transformers in the Python of --python")
        return
    try:
        theirs = [lerobots(kit, size) for _ in range(size.rounds)]
    except runner.Failed as why:
        yield rows.failed("policies", what, why)
        return
    times = statistics.median(run.seconds_per_step(size.warmup) for run in theirs) / statistics.median(
        run.seconds_per_step(size.warmup) for run in mine)
    yield rate_row(kit, what, theirs, f", ours {times:.2f} x")
