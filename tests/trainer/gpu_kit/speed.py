"""What takes time: saves, steps, kernels."""
import dataclasses
import json
import os
import statistics

import rows
import runner

KERNELS_SHOWN = 20


def speed_flags(kit, steps, *more):
    """Of our trainer, for the model whose speed is measured."""
    size, shape = kit.size, kit.size.shape
    return ["--model", shape.preset, "--data", kit.noise(shape.vocabulary), "--vocabulary", shape.vocabulary, "--seq-len",
            shape.context, "--batch-size", size.batch_size, "--steps", steps, "--precision", size.precision, "--keep", 1,
            *more]


def save(kit):
    part, every = "save", kit.size.save_every
    folder = kit.folder("saving")
    kit.train("saving", *speed_flags(kit, 3 * every, "--save-every", every), out=folder)
    events = runner.events(folder)
    saves = [event for event in events if event.get("event") == "checkpoint"]
    after = [event["percent"] for event in events if event.get("event") == "interference"]
    if not saves:
        raise runner.Failed("metrics.jsonl has no event of a checkpoint")
    stall_ms = statistics.median(event["stall_ms"] for event in saves)
    written = statistics.median(event["written_seconds"] for event in saves)
    slower = f"the 10 steps after it {statistics.median(after):+.1f} %" if after else "no 10 steps after it"
    yield rows.judged(part, f"{kit.size.shape.preset}, {len(saves)} saves", len(saves) == 3,
                      f"stall {stall_ms:.1f} ms, written in {written:.2f} s, {slower}", stall_ms=stall_ms,
                      written_seconds=written, percent_after=after)


def peer(kit, steps, *more):
    shape = kit.size.shape
    return [kit.python, kit.root / "peers" / "torch_loop.py", "--model", "plain", "--data", kit.noise(shape.vocabulary),
            "--layers", shape.layers, "--heads", shape.heads, "--width", shape.width, "--context", shape.context,
            "--vocabulary", shape.padded_vocabulary, "--batch-size", kit.size.batch_size, "--steps", steps, "--device",
            kit.device, "--precision", kit.size.precision, *more]


def peer_environment(kit):
    """The caller's libraries, not the kit's; what is compiled is kept from one round to the next."""
    return {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH"), "TORCHINDUCTOR_CACHE_DIR": str(kit.out / "inductor"), "TRITON_CACHE_DIR": str(kit.out / "triton")}


def contenders(kit):
    """name -> function that trains `steps` steps and tells what it saw."""
    compiled = f"torch.compile ({kit.size.compiler})"
    return {
        "ours": lambda steps: kit.train("ours", *speed_flags(kit, steps)),
        "PyTorch eager": lambda steps: kit.run("eager", peer(kit, steps), peer_environment(kit)),
        compiled: lambda steps: kit.run("compiled", peer(kit, steps, "--compile", kit.size.compiler), peer_environment(kit)),
    }


@dataclasses.dataclass
class Taken:
    """What one contender's rounds took."""
    seconds_per_step: list = dataclasses.field(default_factory=list)
    memory: str = ""  # of a GPU, at most
    broken: Exception = None

    @property
    def rounds(self):
        count = len(self.seconds_per_step)
        return f"({count} round{'s' * (count > 1)})"


def take_turns(contenders, size):
    """name -> Taken. In turns, so that what slows the machine down for a while slows all of them."""
    taken = {name: Taken() for name in contenders}
    for _ in range(size.rounds):
        for name, train in contenders.items():
            mine = taken[name]
            if mine.broken:
                continue
            try:
                said = train(size.steps)
                mine.seconds_per_step.append(said.seconds_per_step(size.warmup))
                mine.memory = said.found(r"GPU memory: tensors took ([\d,]+ bytes)")
            except (runner.Failed, IndexError, ZeroDivisionError) as why:  # of a later round: out of time, say
                mine.broken = why
    return taken


def beside_ours(name, taken):
    """How much faster ours is, and what the contender's tensors took of the card."""
    mine, ours = taken[name], taken["ours"]
    times = ""
    if ours.seconds_per_step and name != "ours":
        faster = statistics.median(mine.seconds_per_step) / statistics.median(ours.seconds_per_step)
        times = f", ours {faster:.2f} x"
    return times + (f", tensors took {mine.memory}" if mine.memory else "")


def rates(kit):
    taken = take_turns(contenders(kit), kit.size)
    for name, mine in taken.items():
        if mine.seconds_per_step:
            yield rate_row(kit, name, taken)
        else:
            yield rows.failed("rates", name, mine.broken)


def rate_row(kit, name, taken):
    found = [kit.size.batch_size * kit.size.shape.context / seconds for seconds in taken[name].seconds_per_step]
    rate, peak = statistics.median(found), kit.machine.peak_tflops
    mfu = rate * kit.size.shape.flops_per_token() / (peak * 1e12) if peak else None
    share = f", MFU {mfu:.1%} of {peak} TFLOP/s" if mfu else ", MFU unknown: no peak for this device"
    return rows.Row("ok", "rates", f"{name}, {kit.size.shape.preset}, {kit.size.precision}",
                    f"{rate:,.0f} tokens/s{share}{beside_ours(name, taken)} {taken[name].rounds}",
                    {"tokens_per_second": [round(each, 1) for each in found], "mfu": mfu})


def kernels(kit):
    """CUDA loads the counter of kernels into any program that it is named to."""
    part, library = "kernels", kit.root / "lib" / "libkernel_times.so"
    load = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).InitializeInjection is not None)"
    loaded = kit.run("kernel-times", [kit.python, "-c", load, library]).text.strip()
    yield rows.judged(part, "the counter of kernels loads", loaded == "True", library.name)
    for name, train in kernel_contenders(kit).items():
        what = f"{KERNELS_SHOWN} kernels of {name}"
        if not kit.has_gpu:
            yield rows.needs_gpu(part, what)
            continue
        times = kit.out / f"kernels-{name.split()[0].lower()}.json"
        try:
            train({"CUDA_INJECTION64_PATH": str(library), "KERNEL_TIMES_OUT": str(times)})
            yield kernel_row(kit, part, name, what, times)
        except (runner.Failed, OSError) as why:
            yield rows.failed(part, what, why)


def kernel_contenders(kit):
    steps = kit.size.warmup
    return {"ours": lambda env: kit.train("ours-kernels", *speed_flags(kit, steps), environment=env),
            "torch.compile": lambda env: kit.run("compiled-kernels", peer(kit, steps, "--compile", kit.size.compiler),
                                                 {**peer_environment(kit), **env})}


def kernel_row(kit, part, name, what, times):
    found = json.loads(times.read_text())
    total = sum(each["ms"] for each in found)
    for each in found:
        each["share"] = each["ms"] / total
    kit.kernels[name] = found[:KERNELS_SHOWN]
    first = found[0]["name"][:40] if found else "no kernel seen"
    return rows.judged(part, what, bool(found), f"{len(found)} kernels in {total:.0f} ms; most: {first}", total_ms=total)
