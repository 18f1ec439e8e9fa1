"""Which stages may start now. Pure: reads its arguments, starts nothing.

Each lane takes its stages one at a time, in the order of stages.py, past those whose needs are still under way."""


def _settled(stage, rows, selected):
    """What it needs has ended, and so has what it comes after, where that runs at all."""
    return all(name in rows for name in stage.needs) and all(name in rows for name in stage.after if name in selected)


def missing(stage, rows):
    """What it needs and what failed; None where it can run."""
    return next((name for name in stage.needs if name in rows and not rows[name].usable), None)


def may_start(selected, running, rows):
    """The stages to start now. `running`: stages, `rows`: what has ended, by name."""
    names = {stage.name for stage in selected}
    begun = {stage.name for stage in running} | set(rows)
    ready = [stage for stage in selected if stage.name not in begun and _settled(stage, rows, names)]
    lanes = {stage.lane for stage in running}
    chosen = []
    for stage in ready:
        if stage.lane not in lanes:
            lanes.add(stage.lane)
            chosen.append(stage)
    return chosen
