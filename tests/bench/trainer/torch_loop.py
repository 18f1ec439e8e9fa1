"""Trains a GPT-2 in PyTorch, eager, as a reader of nanoGPT would: the trainer's contenders. Run it by itself or under
torchrun; rank 0 prints a line for each step.

  torch_loop.py --model transformers|plain --data FILE.bin --layers 4 --heads 4 --width 128 --context 64 ...
"""
import argparse
import contextlib
import math
import os
import sys

import numpy
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("transformers", "plain"), required=True)
    parser.add_argument("--data", required=True, help="uint16 tokens")
    for name in ("layers", "heads", "width", "context", "vocabulary", "batch-size", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--sharding", choices=("none", "fsdp2"), default="none", help="none: DistributedDataParallel")
    parser.add_argument("--hook", choices=("none", "fp16", "powersgd"), default="none",
                        help="PyTorch's own for DistributedDataParallel to send less")
    parser.add_argument("--bucket-mib", type=int, default=None, help="of DistributedDataParallel; without it its own 25")
    parser.add_argument("--powersgd-rank", type=int, default=4)
    parser.add_argument("--powersgd-from", type=int, default=1000, metavar="STEP", help="exact until then, 2 or more")
    add_common_flags(parser)
    return parser.parse_args()


def make_model(asked):
    """(module, function of inputs and targets that gives the mean loss)"""
    if asked.model == "plain":
        import plain_gpt2
        module = plain_gpt2.PlainGpt2(asked.layers, asked.heads, asked.width, asked.context, asked.vocabulary)
        return module, lambda model, inputs, targets: model(inputs, targets)
    from transformers import GPT2Config, GPT2LMHeadModel
    module = GPT2LMHeadModel(GPT2Config(
        n_layer=asked.layers, n_head=asked.heads, n_embd=asked.width, n_positions=asked.context,
        vocab_size=asked.vocabulary, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        bos_token_id=None, eos_token_id=None))
    module.train()

    def loss_of(model, inputs, targets):
        logits = model(inputs).logits
        return torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
    return module, loss_of


def with_hook(model, asked):
    if asked.hook == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if asked.hook == "powersgd":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        state = powerSGD_hook.PowerSGDState(process_group=None, matrix_approximation_rank=asked.powersgd_rank,
                                            start_powerSGD_iter=asked.powersgd_from)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return model


def distributed(module, asked, world_size):
    """What the loop calls. FSDP2 takes the module's parameters away from where they were, so before the optimizer."""
    if asked.sharding == "none":
        return with_hook(DistributedDataParallel(module, bucket_cap_mb=asked.bucket_mib), asked) if world_size > 1 else module
    mesh = init_device_mesh("cpu", (world_size,))  # over Gloo
    for block in module.blocks if asked.model == "plain" else module.transformer.h:
        fully_shard(block, mesh=mesh, reshard_after_forward=True)
    return fully_shard(module, mesh=mesh, reshard_after_forward=True)


def make_optimizer(model, lr):
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), fused=True)


def batch(tokens, samples, context, generator, device):
    """nanoGPT's: random places, a copy of each sample; to a GPU from pinned memory, beside what it computes."""
    places = torch.randint(len(tokens) - context, (samples,), generator=generator)
    inputs = torch.stack([torch.from_numpy(tokens[p:p + context].astype(numpy.int64)) for p in places.tolist()])
    targets = torch.stack([torch.from_numpy(tokens[p + 1:p + 1 + context].astype(numpy.int64))
                           for p in places.tolist()])
    if device == "cpu":
        return inputs, targets
    return tuple(each.pin_memory().to(device, non_blocking=True) for each in (inputs, targets))


def learning_rate(step, steps, highest):
    warmup = max(1, min(steps // 10, 2000))
    if step < warmup:
        return highest * (step + 1) / warmup
    share = (step - warmup) / max(1, steps - 1 - warmup)
    return highest * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))


def on_device(asked, module):
    if asked.device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as nanoGPT
    return module.to(asked.device)


def backward(asked, next_loss, autocast, alone):
    """The passes of a step, and the mean of their losses; `alone()` keeps gradients from being reduced before the last one."""
    shown = 0
    for number in range(asked.accumulation):
        with alone() if number + 1 < asked.accumulation else contextlib.nullcontext():
            with autocast:
                loss = next_loss()
            (loss / asked.accumulation if asked.accumulation > 1 else loss).backward()
        shown = shown + loss.detach() / asked.accumulation
    return shown


def train_steps(asked, module, next_loss, rank=0, alone=contextlib.nullcontext, over_ranks=lambda loss: loss):
    """`next_loss()` is the loss of the next batch, with a gradient; `over_ranks` makes of a rank's own the one that is shown."""
    autocast = torch.autocast(asked.device, torch.bfloat16, enabled=asked.precision == "bf16")
    optimizer = make_optimizer(module, asked.lr)
    for step in range(asked.steps):
        lr = learning_rate(step, asked.steps, asked.lr)
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss = over_ranks(backward(asked, next_loss, autocast, alone))
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        shown = loss.item()
        if rank == 0:
            print(f"step {step + 1}/{asked.steps} | loss {shown:.4f} | lr {lr:.1e}", flush=True)
            if step + 1 == asked.save_at:
                torch.save({"model": module.state_dict(), "optimizer": optimizer.state_dict()}, "saved.pt")


def add_common_flags(parser):
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--accumulation", type=int, default=1, help="passes of a step")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="bf16: by autocast, as nanoGPT")
    parser.add_argument("--compile", default="", metavar="BACKEND", help="torch.compile with it; empty: eager")
    parser.add_argument("--save-at", type=int, default=0, help="a step: torch.save() to saved.pt after it")


def train(asked, rank, world_size):
    torch.manual_seed(1337)
    module, loss_of = make_model(asked)
    on_device(asked, module)
    model = distributed(module, asked, world_size)
    if asked.compile:
        model = torch.compile(model, backend=asked.compile)
    tokens = numpy.memmap(asked.data, dtype=numpy.uint16, mode="r")
    generator = torch.Generator().manual_seed(1337 + rank)

    def next_loss():
        inputs, targets = batch(tokens, asked.batch_size // world_size // asked.accumulation, asked.context, generator, asked.device)
        return loss_of(model, inputs, targets)
    train_steps(asked, module, next_loss, rank, getattr(model, "no_sync", contextlib.nullcontext))


def place():
    """(rank, world size), as torchrun tells them."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def together(world_size, work):
    """Calls `work` in a group of Gloo. Where there are others it ends the process."""
    if world_size > 1:
        dist.init_process_group("gloo")
    work()
    if world_size > 1:
        dist.barrier()
        # destroy_process_group() of one rank while another still uses the group makes Gloo abort, now and then.
        sys.stdout.flush()
        os._exit(0)


def main():
    asked = flags()
    rank, world_size = place()
    together(world_size, lambda: train(asked, rank, world_size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
