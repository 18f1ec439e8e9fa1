"""What PyTorch's own Python computes on a small fixed problem: tests/golden/trainer, which
tests/trainer/engine/pytorch_golden_test.cc holds ours against.

    $(tools/deps python-torch) tests/interop/make_golden.py [FOLDER]     default: tests/golden/trainer

Weights and gradients are integers divided by powers of two, so that both sides begin with the same bits.
"""
import json
import pathlib
import platform
import sys

import numpy
import torch
import transformers
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "golden/trainer"
SHAPES = ((3, 5), (7,), (2, 4, 3), (1,), (16, 8))
STEPS = 100
SHOWN = (1, 10, 100)  # steps whose state is kept
LR, BETAS, WEIGHT_DECAY = 0.01, (0.9, 0.95), 0.1
NORM_MAX = 1.0
EMA_DECAY = 0.98
GROWTH_INTERVAL = 7
OVERFLOWS = (5, 6, 23, 60, 61, 62, 99)  # steps, from 1, whose gradients hold an infinity


def ramp(tensor, count):
    return torch.arange(count, dtype=torch.int64) + 1000 * tensor


def weight(tensor):
    """Tensor number `tensor`, before training."""
    shape = SHAPES[tensor]
    index = ramp(tensor, torch.Size(shape).numel())
    return ((index * 37 % 101 - 50).to(torch.float32) / 64).view(shape)


def gradient(tensor, step):
    """At `step`, from 1. Each third step's are eight times as large."""
    shape = SHAPES[tensor]
    index = ramp(tensor, torch.Size(shape).numel())
    small = ((index * 31 + index * step % 13 + step * 17) % 127 - 63).to(torch.float32) / 2048
    return (small * (8 if step % 3 == 0 else 1)).view(shape)


def parameters():
    return [torch.nn.Parameter(weight(tensor)) for tensor in range(len(SHAPES))]


def adamw(weights):
    groups = [{"params": [w for w in weights if w.dim() >= 2], "weight_decay": WEIGHT_DECAY},
              {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=1e-8, fused=False, foreach=False)


def put_gradients(weights, step):
    for tensor, parameter in enumerate(weights):
        parameter.grad = gradient(tensor, step)


def keep(tensors, name, step, values):
    for tensor, value in enumerate(values):
        tensors[f"{name}.{step:03}.{tensor}"] = value.detach().clone()


def plain_run(tensors):
    weights = parameters()
    optimizer = adamw(weights)
    for step in range(1, STEPS + 1):
        put_gradients(weights, step)
        optimizer.step()
        if step in SHOWN:
            keep(tensors, "adamw.weight", step, weights)
            keep(tensors, "adamw.exp_avg", step, [optimizer.state[w]["exp_avg"] for w in weights])
            keep(tensors, "adamw.exp_avg_sq", step, [optimizer.state[w]["exp_avg_sq"] for w in weights])


def clipped_run(tensors):
    """With clipping, and an average that moves after each step."""
    weights = parameters()
    model = torch.nn.Module()
    model.weights = torch.nn.ParameterList(weights)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(EMA_DECAY))
    average.update_parameters(model)  # the first call copies
    optimizer = adamw(weights)
    norms = []
    for step in range(1, STEPS + 1):
        put_gradients(weights, step)
        norms.append(torch.nn.utils.clip_grad_norm_(weights, NORM_MAX).item())
        if step in (1, 3):
            keep(tensors, "clipped.gradient", step, [w.grad for w in weights])
        optimizer.step()
        average.update_parameters(model)
        if step in SHOWN:
            keep(tensors, "clipped.weight", step, weights)
            keep(tensors, "clipped.average", step, list(average.module.weights))
    assert any(norm < NORM_MAX for norm in norms) and any(norm > NORM_MAX for norm in norms)
    return norms


def scaled_run(tensors):
    """The scaler's life: what it was in each step, which steps it took, and where the weights ended."""
    weights = parameters()
    optimizer = adamw(weights)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, growth_interval=GROWTH_INTERVAL)
    scales, taken = [], []
    for step in range(1, STEPS + 1):
        scaler.scale(torch.zeros(1))  # the scale is made on the first call
        scales.append(scaler.get_scale())
        for tensor, parameter in enumerate(weights):
            parameter.grad = gradient(tensor, step) * scales[-1]
        if step in OVERFLOWS:
            weights[step % len(weights)].grad.view(-1)[0] = float("inf")
        before = weights[0].detach().clone()
        scaler.step(optimizer)
        taken.append(not torch.equal(before, weights[0]))
        scaler.update()
    keep(tensors, "scaled.weight", STEPS, weights)
    return {"scales": scales, "taken": taken, "last": scaler.get_scale()}


def rates(make):
    """Of a schedule of transformers, as its scheduler gives them to an optimizer: STEPS + 1 values."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)
    schedule = make(optimizer)
    seen = []
    for _ in range(STEPS + 1):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return seen


def schedules():
    """transformers counts steps from 0 with a rate of 0, and its last rate comes after the last step."""
    last = STEPS - 1
    common = {"num_warmup_steps": 10}
    return {
        "cosine": rates(lambda o: transformers.get_cosine_schedule_with_warmup(o, num_training_steps=last, **common)),
        "cosine_with_min": rates(lambda o: transformers.get_cosine_with_min_lr_schedule_with_warmup(
            o, num_training_steps=last, min_lr=LR / 10, **common)),
        "linear": rates(lambda o: transformers.get_linear_schedule_with_warmup(o, num_training_steps=last, **common)),
        "constant": rates(lambda o: transformers.get_constant_schedule_with_warmup(o, **common)),
    }


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    tensors = {}
    plain_run(tensors)
    numbers = {
        "made_with": {"python": platform.python_version(), "torch": torch.__version__,
                      "transformers": transformers.__version__, "numpy": numpy.__version__},
        "norms": clipped_run(tensors),
        "scaler": scaled_run(tensors),
        "schedules": schedules(),
    }
    save_file(tensors, folder / "optimizer.safetensors")
    (folder / "optimizer.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
