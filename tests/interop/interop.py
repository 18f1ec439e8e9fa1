"""The tests of tests/interop/run. Random weights, nothing from any hub."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

import numpy
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import conversation_tests
import make_golden
import pi0_tests
import qwen_tests
import taehv_model
import tokenizer_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINER = ROOT / "build/dev/trainer/trainer"
PROBE = ROOT / "build/dev/tests/interop/trainer_probe"
GOLDEN = ROOT / "tests/golden/trainer"
COMMAND_SECONDS_MAX = 240
LOGITS_APART_MAX = 1e-5
LOSSES_APART_MAX = 1e-4  # relative, in each of 100 steps
WEIGHTS_APART_MAX = 1e-4  # after them
SEED = 1337


class Failed(Exception):
    """What a test saw in place of what it wanted."""


def expect(is_true, *seen):
    if not is_true:
        raise Failed("\n".join(str(part) for part in seen))


def command(*words):
    env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "OMP_NUM_THREADS") if name in os.environ}
    done = subprocess.run([str(word) for word in words], text=True, timeout=COMMAND_SECONDS_MAX, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, f"{words[0]} {words[1]} ended with {done.returncode}:", done.stdout[-3000:])
    return done.stdout


def small_model(dtype=torch.float32, activation="gelu_new"):
    """Every tensor random: transformers would begin with zeros as biases, which hide mistakes."""
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=32, n_positions=24, vocab_size=96, resid_pdrop=0.0,
                                       embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None, eos_token_id=None,
                                       activation_function=activation))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "ln_" in name and name.endswith("weight") else 0.0, 0.1)
    return model.to(dtype)


def our_logits(folder, model_path, tokens):
    (folder / "tokens").write_bytes(tokens.to(torch.int32).numpy().tobytes())
    command(PROBE, "logits", model_path, folder / "tokens", len(tokens), folder / "logits")
    flat = torch.from_numpy(numpy.fromfile(folder / "logits", dtype=numpy.float32))
    return flat.view(*tokens.shape, -1)


def their_logits(model, tokens):
    with torch.no_grad():
        return model.eval()(tokens).logits


def expect_same_logits(ours, theirs, what):
    expect(ours.shape == theirs.shape, f"{what}: shapes {tuple(ours.shape)} and {tuple(theirs.shape)}")
    apart = (ours - theirs).abs().max().item()
    spread = theirs.std().item()
    expect(apart <= LOGITS_APART_MAX, f"{what}: logits differ by {apart}; they may by {LOGITS_APART_MAX}")
    expect(spread > 0.1, f"{what}: logits of a spread of {spread} show nothing")
    print(f"      {what}: logits differ by {apart:.1e} at most, their standard deviation is {spread:.2f}")


def some_tokens(model, samples=3):
    config = model.config
    return torch.randint(config.vocab_size, (samples, config.n_positions), generator=torch.Generator().manual_seed(2))


def write_text(folder):
    """Words in an order that is easy to learn in part."""
    words = "the quick brown fox jumps over the lazy dog and runs away".split()
    picks = torch.randint(len(words), (4000,), generator=torch.Generator().manual_seed(3)).tolist()
    (folder / "text").mkdir()
    (folder / "text/a.txt").write_text(" ".join(words[pick] for pick in picks))
    return folder / "text"


def train(folder, *flags, ranks=1):
    """Our trainer on a little text; the folder of its newest checkpoint."""
    out = folder / "out"
    words = [TRAINER, "train", "--data", write_text(folder), "--out", out, "--batch-size", 4, "--seq-len", 24, "--width", 32,
             "--layers", 2, "--heads", 4, *flags]
    command(*([TRAINER, "launch", "--nproc", ranks, "--", *words] if ranks > 1 else words))
    return max(out.glob("step-*"))


def loads_in_transformers(path):
    model, info = GPT2LMHeadModel.from_pretrained(path, output_loading_info=True)
    wrong = {key: value for key, value in info.items() if value}
    expect(not wrong, f"transformers does not take all of {path.name} as it is: {wrong}")
    return model


def test_we_load_what_transformers_saves(folder):
    model = small_model()
    model.save_pretrained(folder / "saved")
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, folder / "saved", tokens), their_logits(model, tokens), "one file")


def test_we_load_what_transformers_saves_in_shards(folder):
    model = small_model()
    model.save_pretrained(folder / "saved", max_shard_size="40KB")
    shards = len(list((folder / "saved").glob("model-*.safetensors")))
    expect(shards > 1, f"transformers wrote {shards} shards; this test needs several")
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, folder / "saved", tokens), their_logits(model, tokens), f"{shards} shards")


def test_we_load_names_without_transformer_as_on_the_hub(folder):
    """The first GPT-2 files lack the prefix and hold the causal masks."""
    model = small_model()
    model.save_pretrained(folder / "saved")
    tensors = load_file(folder / "saved/model.safetensors")
    renamed = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    for layer in range(model.config.n_layer):
        renamed[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 24, 24).tril()
    save_file(renamed, folder / "saved/model.safetensors", {"format": "pt"})
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, folder / "saved", tokens), their_logits(model, tokens), "hub's names")


def test_we_load_half_precision(folder):
    for dtype in (torch.bfloat16, torch.float16):
        model = small_model(dtype)
        path = folder / str(dtype).removeprefix("torch.")
        model.save_pretrained(path)
        tokens = some_tokens(model)
        expect_same_logits(our_logits(folder, path, tokens), their_logits(model.float(), tokens), path.name)


def test_transformers_loads_our_checkpoint(folder):
    checkpoint = train(folder, "--steps", 20, "--lr", 0.01)
    model = loads_in_transformers(checkpoint)
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, checkpoint, tokens), their_logits(model, tokens), checkpoint.name)


def test_transformers_loads_our_shards(folder):
    checkpoint = train(folder, "--steps", 20, "--lr", 0.01, ranks=2)
    shards = len(list(checkpoint.glob("model-*.safetensors")))
    expect(shards == 2, f"2 ranks wrote {shards} shards: {sorted(path.name for path in checkpoint.iterdir())}")
    model = loads_in_transformers(checkpoint)
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, checkpoint, tokens), their_logits(model, tokens),
                       f"{shards} files written by 2 ranks")


def test_both_forms_of_gelu_go_there_and_back(folder):
    logits = {}
    for activation in ("gelu", "gelu_pytorch_tanh", "gelu_new"):
        model = small_model(activation=activation)
        with torch.no_grad():  # where the forms are furthest apart
            for layer in model.transformer.h:
                layer.mlp.c_fc.weight.mul_(10)
        model.save_pretrained(folder / activation)
        tokens = some_tokens(model)
        logits[activation] = their_logits(model, tokens)
        expect_same_logits(our_logits(folder, folder / activation, tokens), logits[activation], activation)
    apart = (logits["gelu"] - logits["gelu_new"]).abs().max().item()
    expect(apart > 10 * LOGITS_APART_MAX, f"the forms differ by {apart} only, which shows nothing")
    checkpoint = train(folder, "--steps", 20, "--lr", 0.01, "--gelu", "erf")
    model = loads_in_transformers(checkpoint)
    expect(model.config.activation_function == "gelu", model.config.activation_function)
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, checkpoint, tokens), their_logits(model, tokens), "--gelu erf")


def test_rows_that_only_fill_up_go_everywhere_and_are_never_chosen(folder):
    checkpoint = train(folder, "--steps", 20, "--lr", 0.01, "--vocabulary", 320)
    model = loads_in_transformers(checkpoint)
    expect((model.config.vocab_size, model.config.tokenizer_vocab_size) == (320, 256), model.config)
    tokens = some_tokens(model)
    expect_same_logits(our_logits(folder, checkpoint, tokens), their_logits(model, tokens), "320 rows")
    command(TRAINER, "export", "--from", checkpoint, "--to", folder / "ours.safetensors")
    rows = load_file(folder / "ours.safetensors")["transformer.wte.weight"]
    expect(rows.shape == (320, 32) and torch.equal(rows, model.transformer.wte.weight), rows.shape)
    # Rows of which one half or the other would always be chosen, if they could be.
    direction = 10 * torch.randn(32, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.transformer.wte.weight[256:288] = direction
        model.transformer.wte.weight[288:] = -direction
    model.save_pretrained(folder / "filled")
    prompt = torch.tensor([list(b"the ")])
    expect(their_logits(model, prompt)[0, -1].argmax() >= 256, "the rows do not show")
    said = command(TRAINER, "sample", "--from", folder / "filled", "--prompt", "the ", "--tokens", 20, "--temperature", 0)
    expect(said.startswith("the ") and "20 tokens in" in said, said)


def test_greedy_samples_are_those_of_transformers(folder):
    checkpoint = train(folder, "--steps", 60, "--lr", 0.01)
    model = loads_in_transformers(checkpoint).eval()
    for prompt in ("the quick", "over", "a"):
        count = 24 - len(prompt)  # all of the context
        theirs = model.generate(torch.tensor([list(prompt.encode())]), do_sample=False, max_new_tokens=count, eos_token_id=None, pad_token_id=0)
        said = command(TRAINER, "sample", "--from", checkpoint, "--prompt", prompt, "--tokens", count, "--temperature", 0)
        wanted = bytes(theirs[0].tolist()).split(b"\0")[0].decode(errors="replace")
        expect(said.startswith(wanted + "\n"), said, wanted)


def test_safetensors_reads_all_our_files(folder):
    checkpoint = train(folder, "--steps", 5, "--ema", 0.9)
    shapes = {f"transformer.{name}": tuple(tensor.shape) for name, tensor in
              GPT2LMHeadModel.from_pretrained(checkpoint).transformer.state_dict().items()}
    wanted = {"model": shapes, "ema": shapes,
              "optimizer": {f"{moment}.{name}": shape for moment in ("exp_avg", "exp_avg_sq")
                            for name, shape in shapes.items()}}
    seen = {stem: {} for stem in wanted}
    for path in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                tensor = file.get_tensor(name)
                expect(tensor.dtype == torch.float32 and tensor.isfinite().all(), f"{path.name}: {name}: {tensor}")
                seen[path.name.removesuffix(".safetensors").split("-")[0]][name] = tuple(tensor.shape)
    for stem, tensors in wanted.items():
        expect(seen[stem] == tensors, f"{stem}: tensors and shapes that are only in our files or only expected:",
               sorted(map(str, seen[stem].items() ^ tensors.items())))
    expect(len(shapes) == 28, f"{len(shapes)} tensors; two layers have 28")


def test_golden_files_are_what_pytorch_says_today(folder):
    if os.environ.get("TJ_UPDATE_GOLDEN"):
        subprocess.run([sys.executable, make_golden.__file__, GOLDEN], check=True, timeout=COMMAND_SECONDS_MAX)
    subprocess.run([sys.executable, make_golden.__file__, folder], check=True, timeout=COMMAND_SECONDS_MAX)
    ours, theirs = load_file(GOLDEN / "optimizer.safetensors"), load_file(folder / "optimizer.safetensors")
    expect(ours.keys() == theirs.keys(), "other tensors; run tests/interop/make_golden.py")
    for name, tensor in theirs.items():
        # Another CPU's kernels may round otherwise.
        expect(torch.allclose(ours[name], tensor, 1e-6, 1e-7), f"{name} differs; run tests/interop/make_golden.py")
    numbers = [json.loads((path / "optimizer.json").read_text()) for path in (GOLDEN, folder)]
    expect(numbers[0]["scaler"] == numbers[1]["scaler"], "the scaler differs; run tests/interop/make_golden.py")


def rate(step, steps, highest, lowest, warmup):
    """The schedule as docs/trainer.md tells it; `step` from 0."""
    if step < warmup:
        return highest * (step + 1) / warmup
    share = (step - warmup) / (steps - 1 - warmup)
    return lowest + (highest - lowest) * 0.5 * (1 + math.cos(math.pi * share))


def their_losses(model, tokens, starts, steps, batch_size, highest, warmup):
    """The same training in PyTorch, with nothing of ours but the places of the samples."""
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=highest, betas=(0.9, 0.95), eps=1e-8)
    length, losses = model.config.n_positions, []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps, highest, highest / 10, warmup)
        rows = [tokens[start:start + length + 1] for start in starts[step * batch_size:(step + 1) * batch_size]]
        batch = torch.from_numpy(numpy.stack(rows).astype(numpy.int64))
        logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.size(-1)), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_hundred_steps_side_by_side(folder):
    """From the same weights over the same batches: AdamW, clipping, warm-up, cosine, decay of matrices only."""
    steps, batch_size, highest, warmup = 100, 8, 3e-3, 10
    model = small_model()
    model.save_pretrained(folder / "saved")
    chain = torch.arange(6000) * 7 % 61 + torch.randint(8, (6000,), generator=torch.Generator().manual_seed(4))
    tokens = chain.numpy().astype(numpy.uint16)
    tokens.tofile(folder / "data.bin")
    length = model.config.n_positions
    starts = [int(line) for line in
              command(PROBE, "samples", SEED, len(tokens), length, steps * batch_size).split()]
    command(TRAINER, "train", "--data", folder / "data.bin", "--out", folder / "out", "--init-from", folder / "saved",
            "--steps", steps, "--batch-size", batch_size, "--lr", highest, "--warmup-steps", warmup, "--seed", SEED,
            "--grad-clip", 1)
    lines = [json.loads(line) for line in (folder / "out/metrics.jsonl").read_text().splitlines()]
    ours = [line["loss"] for line in lines if "loss" in line]
    theirs = their_losses(model, tokens, starts, steps, batch_size, highest, warmup)
    expect(len(ours) == steps, f"{len(ours)} losses in metrics.jsonl, wanted {steps}")
    apart = max(abs(mine - other) / other for mine, other in zip(ours, theirs))
    print(f"      losses from {theirs[0]:.3f} to {theirs[-1]:.3f}, apart by {apart:.1e} of the loss at most")
    expect(theirs[-1] < theirs[0] - 0.5, f"nothing was learnt: {theirs[0]} to {theirs[-1]}")
    expect(apart <= LOSSES_APART_MAX, f"losses are apart by {apart} of the loss; they may by {LOSSES_APART_MAX}")
    trained = loads_in_transformers(max((folder / "out").glob("step-*")))
    apart = {name: apart_without_key_biases(name, mine, other) for (name, mine), other in
             zip(trained.named_parameters(), model.parameters(), strict=True)}
    name, most = max(apart.items(), key=lambda item: item[1])
    print(f"      weights after {steps} steps differ by {most:.1e} at most, in {name}")
    expect(most <= WEIGHTS_APART_MAX, f"{name}: weights after {steps} steps differ by {most}")


def apart_without_key_biases(name, mine, other):
    """A bias of the keys changes no score: its gradient is rounding, which AdamW makes as large as any."""
    apart = (mine - other).abs().detach()
    if name.endswith("attn.c_attn.bias"):
        width = len(apart) // 3
        apart[width:2 * width] = 0
    return apart.max().item()


def expect_near(ours, theirs, what, apart_max=1e-5):
    """Relative to the largest value, as sums of both signs have errors of its size."""
    apart = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    expect(apart <= apart_max, what, apart)
    return apart


class GradientApart(Failed):
    """With these inputs; values, which a slope does not change at once, agree with all."""


def of_some_inputs(compare):
    """ReLU has another slope on each side of zero. Of the millions of its inputs one may lie within rounding of it, and be positive to one
    program and negative to the other: which, depends on the CPU (seed 5 of taeltx, where AVX2 is all there is: a gradient 2 % apart). What
    is computed wrongly is wrong for all inputs."""
    failures = []
    for seed in (5, 6, 7, 8):
        try:
            return compare(seed)
        except GradientApart as failure:
            failures.append(failure)
            print("    apart with the inputs of seed", seed, "|", *failure.args)
    raise failures[0]


def taehv_apart(folder, variant, seed):
    """How far the trainer's is from the reference, with weights and frames of this seed."""
    torch.manual_seed(seed)
    model = taehv_model.Taehv(variant)
    save_file(model.state_dict(), folder / "weights.safetensors")
    side = 16 * model.patch
    pixels = torch.randint(0, 256, (2, 2 * model.frames_of_latent, 3, side, side), dtype=torch.uint8)
    (folder / "frames").write_bytes(pixels.numpy().tobytes())
    command(PROBE, "taehv", variant, folder / "weights.safetensors", folder / "frames", folder / "answer")
    answer = torch.frombuffer(bytearray((folder / "answer").read_bytes()), dtype=torch.float32)
    frames = pixels.float() / 255
    latents = model.encode(frames)
    made = model.decode(latents)
    error = made - frames[:, model.trim :]
    loss = error.square().sum() + 0.5 * error.abs().sum()
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    seen = made.clamp(0, 1)
    at = farthest = 0

    def compare(what, theirs):
        nonlocal at, farthest
        ours = answer[at : at + theirs.numel()].view(theirs.shape)
        at += theirs.numel()
        farthest = max(farthest, expect_near(ours, theirs.detach(), f"{variant}: {what}"))

    for what, theirs in (("latents", latents), ("frames", seen), ("streamed latents", latents), ("streamed frames", seen)):
        compare(what, theirs)
    expect(at + sum(gradient.numel() for gradient in gradients) == answer.numel(), variant, at, answer.numel())
    try:
        for (name, _), gradient in zip(model.named_parameters(), gradients, strict=True):
            compare(f"the gradient of {name}", gradient)
    except Failed as failure:
        raise GradientApart(*failure.args) from None
    return farthest


def test_taehv_is_the_one_of_the_facts(folder):
    farthest = max(of_some_inputs(lambda seed, variant=variant: taehv_apart(folder, variant, seed)) for variant in taehv_model.VARIANTS)
    print(f"    {len(taehv_model.VARIANTS)} variants, at most {farthest:.1e} apart")


def test_the_discriminator_is_the_one_of_the_facts(folder):
    torch.manual_seed(7)
    model = taehv_model.Discriminator("taehv-nano")
    real, made = torch.rand(2, 6, 3, 16, 16), torch.rand(2, 6, 3, 16, 16)
    latents = torch.randn(2, 2, 16, 2, 2).half().float()
    with torch.no_grad():  # running means that are not those of the beginning
        context = latents.mean(1).half().float().repeat_interleave(2, dim=0)
        for _ in range(3):
            model(torch.rand(4, 9, 16, 16), context)
    state = {f"discriminator.{name}": value for name, value in model.state_dict().items() if "num_batches" not in name}
    save_file(state, folder / "weights.safetensors")
    (folder / "clips").write_bytes(b"".join(tensor.numpy().tobytes() for tensor in (real, made, latents)))
    command(PROBE, "adversary", "taehv-nano", folder / "weights.safetensors", folder / "clips", folder / "answer")
    answer = torch.frombuffer(bytearray((folder / "answer").read_bytes()), dtype=torch.float32)
    groups = made.reshape(4, 9, 16, 16)
    expected = [("correction", model.correction(real, made, context)), ("scores", model.eval()(groups, context))]
    scores = model.train()(groups, context)
    gradients = torch.autograd.grad((scores - 1).square().mean(), list(model.parameters()))
    expected.append(("scores in training", scores))
    by_name = dict(zip([name for name, _ in model.named_parameters()], gradients, strict=True))
    by_name |= {name: buffer for name, buffer in model.named_buffers() if "num_batches" not in name}
    # As the trainer lists them.
    expected += [(name, by_name[name]) for name in (key.removeprefix("discriminator.") for key in state)]
    at = 0
    for what, theirs in expected:
        ours = answer[at : at + theirs.numel()].view(theirs.shape)
        at += theirs.numel()
        # The correction is divided by its own, small size.
        expect_near(ours, theirs.detach(), what, 1e-3 if what == "correction" else 1e-4)
    expect(at == answer.numel(), at, answer.numel())


def test_we_load_what_torch_saves_and_nothing_runs(folder):
    torch.manual_seed(6)
    model = taehv_model.Taehv("taehv-nano")
    state = model.state_dict()
    # As people's files are: half precision, other strides, a storage that is shared, entries that are no tensors.
    odd = {name: tensor.half() for name, tensor in state.items()}
    first = next(iter(odd))
    odd[first] = odd[first].to(memory_format=torch.channels_last)
    odd["epoch"] = 7
    frames = torch.randint(0, 256, (2, 8, 3, 16, 16), dtype=torch.uint8)
    (folder / "frames").write_bytes(frames.numpy().tobytes())

    def answer(weights):
        command(PROBE, "taehv", "taehv-nano", weights, folder / "frames", folder / "answer")
        return torch.frombuffer(bytearray((folder / "answer").read_bytes()), dtype=torch.float32)

    save_file({name: tensor.half().float().contiguous() for name, tensor in state.items()}, folder / "plain.safetensors")
    expected = answer(folder / "plain.safetensors")
    for name, content in (("dict.pth", odd), ("nested.pt", {"state_dict": odd, "step": 3})):
        torch.save(content, folder / name)
        expect(torch.equal(answer(folder / name), expected), name)

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "was-here"),))
    torch.save({"a": Evil()}, folder / "evil.pth")
    done = subprocess.run([PROBE, "taehv", "taehv-nano", folder / "evil.pth", folder / "frames", folder / "answer"],
                          capture_output=True, text=True, timeout=60, check=False)
    expect(done.returncode == 1 and "which no dictionary of tensors needs" in done.stderr, done)
    expect(not (folder / "was-here").exists())


def test_torch_loads_what_we_export(folder):
    torch.manual_seed(7)
    state = taehv_model.Taehv("taehv-nano-super").state_dict()
    save_file(state, folder / "state.safetensors")
    command(TRAINER, "export", "--from", folder / "state.safetensors", "--to", folder / "ours.pth")
    model = taehv_model.Taehv("taehv-nano-super")
    model.load_state_dict(torch.load(folder / "ours.pth", weights_only=True))  # strict
    expect(all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items()), "bits")
    odd = {"nothing": torch.zeros(0, 3), "scalar": torch.tensor(3.0), "long": torch.arange(7), "yes": torch.tensor([True, False])}
    odd |= {str(dtype): torch.randn(5, 3).to(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float64)}
    save_file(odd, folder / "odd.safetensors")
    for target in ("odd.pth", "again.safetensors"):
        command(TRAINER, "export", "--from", folder / "odd.safetensors", "--to", folder / target)
    loaded = [torch.load(folder / "odd.pth", weights_only=True, mmap=mmap) for mmap in (False, True)]
    for ours in [*loaded, load_file(folder / "again.safetensors")]:
        expect(ours.keys() == odd.keys(), list(ours))
        for name, tensor in ours.items():
            expect(tensor.dtype == odd[name].dtype and torch.equal(tensor, odd[name]), name, tensor)


def main():
    words = sys.argv[1:]
    tests = [(name.removeprefix("test_"), test) for name, test in {**globals(), **vars(tokenizer_tests), **vars(pi0_tests), **vars(qwen_tests), **vars(conversation_tests)}.items()
             if name.startswith("test_")]
    chosen = [(name, test) for name, test in tests if not words or any(word in name for word in words)]
    torch.set_num_threads(1)
    failed = 0
    for name, test in chosen:
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="tj-interop-") as folder:
                test(pathlib.Path(folder))
            print(f"pass  {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Failed as reason:
            failed += 1
            print(f"FAIL  {name}\n{reason}", flush=True)
        except Exception:  # noqa: BLE001 - the others go on
            failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
