"""Plain PyTorch: a small network learns the sine by DistributedDataParallel, and goes on from its checkpoint after a restart.

Runs as `python3 train_ddp.py`, one process per worker, or as `torchrun train_ddp.py`, one process per GPU: the variables
are the same.
"""
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 20
CHECKPOINT = pathlib.Path(os.environ.get("CHECKPOINTS", "."), "last.pt")


def main():
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")  # reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else torch.device("cpu")
    torch.manual_seed(0)

    x = torch.linspace(-3, 3, 2048).unsqueeze(1)
    dataset = TensorDataset(x, torch.sin(x))
    sampler = DistributedSampler(dataset)  # each rank gets its own part of the samples
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    first = 0
    if CHECKPOINT.exists():  # all ranks read it, so all of them go on from the same epoch
        saved = torch.load(CHECKPOINT, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1
    print(f"rank {rank} of {dist.get_world_size()} begins with epoch {first}", flush=True)

    parallel = DistributedDataParallel(model)
    for epoch in range(first, EPOCHS):
        sampler.set_epoch(epoch)
        for batch, target in loader:
            loss = nn.functional.mse_loss(parallel(batch.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()  # gradients are averaged over all ranks here
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.5f}", flush=True)
            part = CHECKPOINT.with_suffix(".part")
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, part)
            part.rename(CHECKPOINT)  # a crash in the middle of a save leaves the one before
        dist.barrier()  # nobody is a checkpoint ahead
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
