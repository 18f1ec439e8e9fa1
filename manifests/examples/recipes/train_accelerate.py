"""Hugging Face Accelerate: a small network learns the sine."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 10


def main():
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    print(f"rank {accelerator.process_index} of {accelerator.num_processes}", flush=True)
    torch.manual_seed(0)
    x = torch.linspace(-3, 3, 2048).unsqueeze(1)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, torch.sin(x)), batch_size=32, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(EPOCHS):
        for batch, target in loader:
            loss = nn.functional.mse_loss(model(batch), target)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        if accelerator.is_main_process:
            print(f"epoch {epoch} loss {loss.item():.5f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
