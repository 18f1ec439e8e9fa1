"""TAEHV: clips per second beside PyTorch's, and a video that is decoded."""
import random
import re
import statistics

import rows
import runner
import speed

CLIPS_OF_PEER = 64
DATA_THREADS = 4  # a card takes thousands of frames in a second


def videos_of(size):
    """Larger than a clip, and enough clips for a batch."""
    return runner.Pictures(frames=2 * size.frames * size.batch_size, width=size.side * 3 // 2, height=size.side * 3 // 2)


def clips_file(kit, size):
    """For PyTorch, which need not decode: uint8 [clips, frames, 3, side, side], of the same pictures."""
    path = kit.out / "clips"
    pictures, dice = videos_of(size), random.Random(1)
    frames = [pictures.pixels(frame) for frame in range(pictures.frames)]
    made = bytearray()
    for _ in range(CLIPS_OF_PEER):
        first = dice.randrange(pictures.frames - size.frames + 1)
        top, left = (dice.randrange(side - size.side + 1) for side in (pictures.height, pictures.width))
        for frame in frames[first:first + size.frames]:
            for channel in range(3):
                for row in range(top, top + size.side):
                    begin = 3 * (row * pictures.width + left)
                    made += frame[begin + channel:begin + 3 * size.side:3]
    path.write_bytes(made)
    return path


def peer(kit, *more):
    return [kit.python, kit.root / "peers" / "taehv_loop.py", "--model", kit.size.clips.preset, "--weights", kit.out / "taehv.pth",
            *more]


def training_peer(kit, data, steps, *more):
    size = kit.size.clips
    return peer(kit, "--data", data, "--frames", size.frames, "--side", size.side, "--batch-size", size.batch_size, "--steps", steps,
                "--device", kit.device, "--precision", kit.size.precision, *more)


def our_flags(kit, steps):
    size = kit.size.clips
    return ["--model", size.preset, "--data", kit.pictures(videos_of(size)), "--clip-frames", size.frames, "--clip-size", size.side,
            "--batch-size", size.batch_size, "--steps", steps, "--precision", kit.size.precision, "--init-from",
            kit.out / "taehv.pth", "--data-threads", DATA_THREADS if kit.has_gpu else 1, "--keep", 1]


def contenders(kit):
    """name -> function that trains `steps` steps from the same weights and tells what it saw."""
    kit.run("taehv-weights", peer(kit, "--make-weights"), speed.peer_environment(kit))
    data, compiler = clips_file(kit, kit.size.clips), kit.size.compiler

    def training(name, *more):
        return lambda steps: kit.run(name, training_peer(kit, data, steps, *more), speed.peer_environment(kit))
    return {"ours": lambda steps: kit.train("clips-ours", *our_flags(kit, steps)),
            "PyTorch eager": training("clips-eager"),
            "PyTorch eager, channels last": training("clips-channels-last", "--channels-last"),
            f"torch.compile ({compiler})": training("clips-compiled", "--compile", compiler)}


def rates(kit):
    size = kit.size.clips
    taken = speed.take_turns(contenders(kit), size)
    for name, mine in taken.items():
        what = f"{name}, {size.preset}, {kit.size.precision}"
        if not mine.seconds_per_step:
            yield rows.failed("clips", what, mine.broken)
            continue
        found = [size.batch_size / seconds for seconds in mine.seconds_per_step]
        yield rows.Row("ok", "clips", what,
                       f"{statistics.median(found):,.1f} clips/s{speed.beside_ours(name, taken)} {mine.rounds}",
                       {"clips_per_second": [round(each, 2) for each in found]})


LONGER = 4  # times, of the video beside the one of the figure
DECODED = re.compile(r"^decoded latents .* in ([\d.]+) s \|.* model ([\d.]+) s", re.MULTILINE)
MEMORY = re.compile(r"^peak memory: .*?(\d+ MB) of tensors", re.MULTILINE)


def decode(kit):
    """`trainer decode` as it starts, and what its model takes once it is warm: by a video that is longer."""
    size = kit.size.clips
    what = f"{size.preset}, {size.decoded_frames} frames of {size.decoded_width} x {size.decoded_height}"
    if "trainer decode" not in kit.run("commands", [kit.program("trainer"), "--help"]).text:
        yield rows.Row("SKIP", "decode", what, "needs a build that has trainer decode")
        return
    if not (kit.out / "taehv.pth").exists():
        kit.run("taehv-weights", peer(kit, "--make-weights"), speed.peer_environment(kit))
    decoded(kit, size.decoded_frames)  # the first one reads cuDNN's libraries from the disk
    seconds, model, memory = decoded(kit, size.decoded_frames)
    _, longer, _ = decoded(kit, LONGER * size.decoded_frames)
    warm = (longer - model) / (LONGER - 1)
    taken = f", tensors took {memory}" if memory else ""
    yield rows.judged("decode", what, True, f"{seconds:.2f} s with its file, {model:.2f} s by the model, {warm:.2f} s once warm{taken}",
                      seconds=seconds, model_seconds=model, warm_seconds=warm, memory=memory)


def decoded(kit, frames):
    """(seconds in all, seconds of the model, what tensors took of the card, in words) of a video of so many frames."""
    size = kit.size.clips
    pictures = kit.pictures(runner.Pictures(frames, size.decoded_width, size.decoded_height))
    folder = kit.folder("decoding")
    folder.mkdir(parents=True)
    latents = folder / f"latents-{frames}.safetensors"

    def command(verb, source, out):
        return kit.run(verb, [kit.program("trainer"), verb, "--model", size.preset, "--weights", kit.out / "taehv.pth", "--in", source,
                              "--out", out, "--device", kit.device])
    command("encode", pictures, latents)
    said = command("decode", latents, folder / "decoded").text
    found = DECODED.search(said)
    if found is None:
        raise runner.Failed("trainer decode does not say what it took")
    memory = MEMORY.search(said)
    return float(found[1]), float(found[2]), memory[1] if memory else ""
