"""Do the programs start here, and do the collectives work?"""
import os
import re

import comparisons
import rows
import runner

SHARED_CARD = "two ranks on one card are refused"
COLLECTIVES = r"collectives: (.*)$"  # the launcher puts the rank before it


def programs(kit):
    part = "programs"
    version = kit.run("version", [kit.program("trainer"), "--version"]).text.strip()
    yield rows.judged(part, "trainer starts", bool(version), version)
    listed = kit.run("libraries", ["ldd", kit.program("trainer-engine")]).text
    missing = re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE)
    is_theirs = f"libtorch_cpu.so => {kit.machine.torch_lib}/" in listed
    yield rows.judged(part, "all shared libraries are found", is_theirs and not missing, ", ".join(missing) or
                      f"libtorch_cpu.so is {'' if is_theirs else 'not '}that of Python's torch {kit.machine.torch}")
    what = "it finds the card by itself"
    if not kit.has_gpu:
        yield rows.needs_gpu(part, what)
        return
    name = "finds-the-card"
    seen = kit.train(name, *comparisons.CASES[0].flags(kit, 2), environment={"CUDA_VISIBLE_DEVICES": None})
    yield rows.judged(part, what, True, seen.found(COLLECTIVES))


def collectives(kit):
    """The communicator itself at world size 1, which a training of one rank would leave out; then two ranks."""
    part = "comm"
    probe = kit.run("communicator", [kit.program("communicator_probe")])
    for line in probe.text.splitlines():
        verdict, _, said = line.partition(" ")
        if verdict in ("ok", "FAIL"):
            yield rows.judged(part, said.partition(": ")[0], verdict == "ok", said.partition(": ")[2])
    if not kit.has_gpu:
        yield rows.needs_gpu(part, "NCCL plug-in, world size 1")
        yield rows.needs_gpu(part, SHARED_CARD)
    else:
        yield two_ranks_on_one_card(kit, part)
    yield two_ranks(kit, part)


def two_ranks_on_one_card(kit, part):
    """NCCL refuses a second rank on a card, so the trainer does before it starts NCCL."""
    try:
        seen = kit.train("shared-card", *comparisons.CASES[0].flags(kit, 1), ranks=2, code=78)
    except runner.Failed as why:
        return rows.failed(part, SHARED_CARD, why)
    said = seen.found("(have one GPU between them, .*)$")
    return rows.judged(part, SHARED_CARD, bool(said), said)


def two_ranks(kit, part):
    """On CPUs on every machine: Gloo carries no tensors of a card."""
    what = "two ranks, Gloo"
    flags = [*comparisons.CASES[0].flags(kit, kit.size.loss_steps), "--precision", "fp32"]
    one, two = kit.folder("one-rank"), kit.folder("two-ranks")
    kit.train("one-rank", *flags, device="cpu", out=one)
    try:
        seen = kit.train("two-ranks", *flags, ranks=2, device="cpu", out=two,
                         environment={"OMP_NUM_THREADS": str(threads_each(2))})
    except runner.Failed as why:
        return rows.failed(part, what, why)
    far = runner.farthest(runner.losses(one), runner.losses(two))
    return rows.judged(part, what, far <= comparisons.FP32_APART_MAX and "Gloo" in seen.found(COLLECTIVES),
                       f"losses {far:.1e} apart; {seen.found(COLLECTIVES)}", apart=far)


def threads_each(ranks):
    return max(1, len(os.sched_getaffinity(0)) // ranks)
