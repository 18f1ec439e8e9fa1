"""Lightning: a small network learns the sine; the Trainer takes the number of workers from NNODES."""
import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Sine(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))

    def training_step(self, batch, _):
        return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def on_train_batch_end(self, outputs, batch, batch_index):
        self.last_loss = outputs["loss"].item()

    def on_train_epoch_end(self):
        if self.global_rank == 0:
            print(f"epoch {self.current_epoch} loss {self.last_loss:.5f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main():
    lightning.seed_everything(0)
    x = torch.linspace(-3, 3, 2048).unsqueeze(1)
    loader = DataLoader(TensorDataset(x, torch.sin(x)), batch_size=32, shuffle=True)
    trainer = lightning.Trainer(num_nodes=int(os.environ["NNODES"]), strategy="ddp", max_epochs=10, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    print(f"rank {trainer.global_rank} of {trainer.world_size}", flush=True)
    trainer.fit(Sine(), loader)


if __name__ == "__main__":
    main()
