"""Trains TAEHV in PyTorch on clips that were decoded beforehand, as a reader of its author's notebook would: the trainer's
contender. The model is tests/interop's, the loop and the optimizer are torch_loop's. Prints a line for each step.

  taehv_loop.py --model taehv --weights FILE.pth --make-weights
  taehv_loop.py --model taehv --weights FILE.pth --data CLIPS --frames 12 --side 64 --batch-size 2 --steps 5

CLIPS holds uint8 [clips, frames, 3, side, side].
"""
import argparse
import sys

import numpy
import taehv_model
import torch
import torch_loop

ABSOLUTE_WEIGHT = 0.1  # of |error| beside error squared, as the trainer's --l1-weight


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=tuple(taehv_model.VARIANTS), required=True)
    parser.add_argument("--weights", required=True, help="a file of torch.save")
    parser.add_argument("--make-weights", action="store_true", help="write them, at random, and train nothing")
    parser.add_argument("--data", help="decoded clips")
    for name in ("frames", "side", "batch-size", "steps"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--channels-last", action="store_true", help="the weights' memory format")
    torch_loop.add_common_flags(parser)
    return parser.parse_args()


def make_weights(asked):
    torch.manual_seed(1337)
    module = taehv_model.Taehv(asked.model)
    torch.nn.init.constant_(module.decoder[-1].bias, 0.5)  # begins with grey, as the author's
    torch.save(module.state_dict(), asked.weights)


class Reconstruction(torch.nn.Module):
    """Frames in, their loss out: one thing to compile."""
    def __init__(self, taehv):
        super().__init__()
        self.taehv = taehv

    def forward(self, clips):
        frames = clips.float() / 255
        error = self.taehv.decode(self.taehv.encode(frames)).float() - frames[:, self.taehv.trim:]
        return error.square().mean() + ABSOLUTE_WEIGHT * error.abs().mean()


def train(asked):
    taehv = taehv_model.Taehv(asked.model)
    taehv.load_state_dict(torch.load(asked.weights, weights_only=True))
    module = torch_loop.on_device(asked, Reconstruction(taehv))
    if asked.channels_last:
        module.to(memory_format=torch.channels_last)
    if asked.device == "cuda":
        torch.backends.cudnn.benchmark = True  # every batch has one shape
    model = torch.compile(module, backend=asked.compile) if asked.compile else module
    clips = numpy.memmap(asked.data, dtype=numpy.uint8, mode="r").reshape(-1, asked.frames, 3, asked.side, asked.side)
    generator = torch.Generator().manual_seed(1337)

    def next_loss():
        chosen = torch.randint(len(clips), (asked.batch_size,), generator=generator).numpy()
        batch = torch.from_numpy(numpy.asarray(clips[chosen]))
        if asked.device == "cuda":
            batch = batch.pin_memory().to(asked.device, non_blocking=True)
        return model(batch)
    torch_loop.train_steps(asked, module, next_loss)
    if asked.device == "cuda":  # in the words of the trainer
        print(f"GPU memory: tensors took {torch.cuda.max_memory_allocated():,} bytes at most", flush=True)


def main():
    asked = flags()
    if asked.make_weights:
        make_weights(asked)
    else:
        train(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
