"""DeepSpeed: a small network learns the sine under ZeRO stage 2, with the settings of ds_config.json."""
import deepspeed
import torch
from torch import nn
from torch.utils.data import TensorDataset

EPOCHS = 10


def main():
    if not torch.cuda.is_available():  # on CPUs it would compile a kernel now, which needs a compiler and PyTorch's headers
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed()  # reads RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    torch.manual_seed(0)
    x = torch.linspace(-3, 3, 2048).unsqueeze(1)
    dataset = TensorDataset(x, torch.sin(x))
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    engine, _, loader, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                                training_data=dataset, config="ds_config.json")
    print(f"rank {engine.global_rank} of {engine.world_size} has ZeRO stage {engine.zero_optimization_stage()}", flush=True)
    for epoch in range(EPOCHS):
        for batch, target in loader:
            loss = nn.functional.mse_loss(engine(batch.to(engine.device)), target.to(engine.device))
            engine.backward(loss)
            engine.step()
        if engine.global_rank == 0:
            print(f"epoch {epoch} loss {loss.item():.5f}", flush=True)
    engine.destroy()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
