"""What takes time: saves, steps, kernels."""
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


def rates(kit):
    """In turns, so that what slows the machine down for a while slows all of them."""
    part, size = "rates", kit.size
    tokens_per_step = size.batch_size * size.shape.context
    found, memory = {name: [] for name in contenders(kit)}, {}
    broken = {}
    for _ in range(size.rounds):
        for name, train in contenders(kit).items():
            if name in broken:
                continue
            try:
                said = train(size.steps)
                found[name].append(tokens_per_step / said.seconds_per_step(size.warmup))
                memory[name] = said.found(r"GPU memory: tensors took ([\d,]+ bytes)")  # ours says so
            except (runner.Failed, IndexError, ZeroDivisionError) as why:  # of a later round: out of time, say
                broken[name] = why
    for name, rates_of_it in found.items():
        if rates_of_it:
            yield rate_row(kit, part, name, rates_of_it, found["ours"], memory[name])
        else:
            yield rows.failed(part, name, broken[name])


def rate_row(kit, part, name, found, ours, memory):
    rate, peak = statistics.median(found), kit.machine.peak_tflops
    mfu = rate * kit.size.shape.flops_per_token() / (peak * 1e12) if peak else None
    share = f", MFU {mfu:.1%} of {peak} TFLOP/s" if mfu else ", MFU unknown: no peak for this device"
    beside = f", ours {statistics.median(ours) / rate:.2f} x" if ours and name != "ours" else ""
    what = f"{name}, {kit.size.shape.preset}, {kit.size.precision}"
    taken = f", tensors took {memory}" if memory else ""
    return rows.Row("ok", part, what, f"{rate:,.0f} tokens/s{share}{beside}{taken} ({len(found)} round{'s' * (len(found) > 1)})",
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
