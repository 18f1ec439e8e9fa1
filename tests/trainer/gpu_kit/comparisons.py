"""Two trainings that must agree: by how much they may differ stands here."""
import dataclasses
import hashlib
import json
import shutil
import statistics
import typing

import rows
import runner

# Relative, of each step's loss. float32 sums in another order; what that does grows with the steps, which are few.
FP32_APART_MAX = 1e-3
# bfloat16 has 8 bits. In the median of the steps: a batch of text that a short training has not met yet has a loss that hangs
# on the last bit (on CPUs, too, one of 30 is 10 % apart).
BF16_APART_MAX = 5e-3


def gpt2_flags(kit, steps):
    return ["--model", "gpt2-nano", "--data", kit.data("text"), "--steps", steps, "--batch-size", 8]


def taehv_flags(kit, steps):
    return ["--model", "taehv-nano", "--data", kit.pictures(), "--steps", steps, "--batch-size", 4]


def pi0_flags(kit, steps):
    return ["--model", "pi0-nano", "--data", kit.number_of_samples(), "--steps", steps, "--batch-size", 8]


def qwen_flags(kit, steps):
    return ["--model", "qwen-vggt-nano", "--data", kit.scenes(), "--steps", steps, "--batch-size", 8]


@dataclasses.dataclass(frozen=True)
class Case:
    """How the kit trains a workload."""
    workload: str
    flags: typing.Callable  # of the kit and the number of steps
    program: str = "trainer"


# Two on samples that their programs make up: robots' data take Arrow's libraries and conversations those of pictures, which the kit does not have.
CASES = (Case("gpt2", gpt2_flags), Case("taehv", taehv_flags),
         Case("pi0", pi0_flags, program="pi0_colours/trainer"), Case("qwen_vggt", qwen_flags, program="qwen_scenes/trainer"))


def workloads(kit):
    """Of the program's own workloads, each one's case; None where the kit has none."""
    listed = kit.run("models", [kit.program("trainer"), "train", "--list-models"])
    models = json.loads(listed.found(r"^(\[.*\])$"))
    cases = {case.workload: case for case in CASES}
    return {model["workload"]: cases.get(model["workload"]) for model in models}


def parity(kit):
    part = "parity"
    for workload, case in workloads(kit).items():
        if case is None:
            yield rows.failed(part, workload, "the kit knows no way to train it (CASES in comparisons.py)")
            continue
        flags = case.flags(kit, kit.size.loss_steps)
        on_cpu, on_device = kit.folder(f"{workload}-cpu"), kit.folder(f"{workload}-device")
        kit.train(f"{workload}-cpu", *flags, "--precision", "fp32", "--threads", 1, device="cpu", out=on_cpu, program=case.program)
        # Without a GPU another number of threads is what changes the order of sums.
        threads = [] if kit.has_gpu else ["--threads", 2]
        kit.train(f"{workload}-device", *flags, "--precision", "fp32", *threads, out=on_device, program=case.program)
        far = runner.farthest(runner.losses(on_cpu), runner.losses(on_device))
        beside = "GPU beside CPU" if kit.has_gpu else "2 threads beside 1"
        yield rows.judged(part, f"{workload}, fp32, {beside}", far <= FP32_APART_MAX,
                          f"losses of {kit.size.loss_steps} steps {far:.1e} apart (at most {FP32_APART_MAX:.0e})", apart=far)


def bf16(kit):
    part = "bf16"
    case = CASES[0]
    found = {}
    for precision in ("fp32", "bf16"):
        folder = kit.folder(precision)
        kit.train(precision, *case.flags(kit, kit.size.loss_steps), "--precision", precision, out=folder)
        found[precision] = runner.losses(folder)
    far = statistics.median(runner.differences(found["fp32"], found["bf16"]))
    yield rows.judged(part, f"{case.workload}, bf16 beside fp32", 0 < far <= BF16_APART_MAX,
                      f"losses {far:.1e} apart in the median (at most {BF16_APART_MAX:.0e}, more than 0)", apart=far)


def resume(kit):
    for case in CASES:
        try:
            yield from resumed(kit, case)
        except (runner.Failed, OSError) as why:
            yield rows.failed("resume", f"{case.workload}, resumed", why)


def resumed(kit, case):
    """Half a run that goes on, beside a whole one."""
    half, steps = kit.size.loss_steps // 2, kit.size.loss_steps // 2 * 2
    flags = [*case.flags(kit, steps), "--repeatable", "--save-every", half]
    whole, again = kit.folder(f"{case.workload}-undisturbed"), kit.folder(f"{case.workload}-resumed")
    kit.train(f"{case.workload}-undisturbed", *flags, out=whole, program=case.program)
    shutil.copytree(whole / f"step-{half:06}", again / f"step-{half:06}")
    kit.train(f"{case.workload}-resumed", *flags, "--resume", out=again, program=case.program)
    after = {step: loss for step, loss in runner.losses(whole).items() if step > half}
    losses = runner.losses(again)
    yield rows.judged("resume", f"{case.workload}, losses after the resumption", after == losses,
                      f"{sum(losses.get(step) == loss for step, loss in after.items())} of {len(after)} are the same bits")
    contents = [digests(folder / f"step-{steps:06}") for folder in (whole, again)]
    differ = [name for name in contents[0] if contents[0][name] != contents[1].get(name)]
    yield rows.judged("resume", f"{case.workload}, weights and moments", contents[0] and not differ,
                      f"{', '.join(differ)} differ" if differ else f"{len(contents[0])} files are the same bytes")


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.safetensors"))}


def zero(kit):
    """On one card a single rank, which shares nothing out but takes the same way through the code."""
    part = "zero"
    ranks = 1 if kit.has_gpu else 2
    found = {}
    for stage in range(4):
        name = f"zero-{stage}"
        folder = kit.folder(name)
        try:
            kit.train(name, *CASES[0].flags(kit, kit.size.loss_steps), "--precision", "fp32", "--zero", stage, ranks=ranks,
                      out=folder)
            found[stage] = runner.losses(folder)
            far = runner.farthest(found[0], found[stage])
        except (runner.Failed, KeyError) as why:
            yield rows.failed(part, f"stage {stage}, fp32, {ranks} ranks", why)
            continue
        yield rows.judged(part, f"stage {stage}, fp32, {ranks} rank{'s' * (ranks > 1)}", far <= FP32_APART_MAX,
                          f"losses {far:.1e} from stage 0's", apart=far)
