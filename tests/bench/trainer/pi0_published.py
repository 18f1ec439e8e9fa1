"""Trains the pi0 of LeRobot 0.6.1 in its published size on batches that are made up on the device: three cameras of 224, a prompt of 48, chunks
of 50. Weights are random and float32, products of matrices in bfloat16 by autocast where asked for, as the trainer does it.
Prints a line for each step.

  pi0_published.py --batch-size 32 --steps 10 --device cuda --precision bf16 --recompute
"""
import argparse
import pathlib
import sys

import torch
import torch_loop

# In the tree, and in the kit, where it lies beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "lerobot"))
import lerobot_pi0  # noqa: E402

CAMERAS, SIDE, PROMPT, HORIZON, VALUES, VOCABULARY = 3, 224, 48, 50, 32, 257152


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("batch-size", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--recompute", action="store_true", help="LeRobot's gradient checkpointing")
    torch_loop.add_common_flags(parser)
    return parser.parse_args()


def next_loss(model, samples):
    """Of a batch whose first camera sees something, and whose prompts have one token: as the trainer's made-up samples."""
    pictures = [torch.rand(samples, 3, SIDE, SIDE) * 2 - 1 for _ in range(CAMERAS)]
    masks = [torch.full((samples,), camera == 0) for camera in range(CAMERAS)]
    token_mask = torch.arange(PROMPT).expand(samples, PROMPT) < 1
    actions = torch.randn(samples, HORIZON, VALUES)
    return model(pictures, masks, torch.randint(VOCABULARY, (samples, PROMPT)), token_mask, torch.randn(samples, VALUES), actions,
                 torch.randn_like(actions), model.sample_time(samples, actions.device)).mean()


def main():
    asked = flags()
    torch.manual_seed(1337)
    torch.set_default_device(asked.device)
    model = lerobot_pi0.make_published("pi0").train()
    torch_loop.on_device(asked, model)
    for head in (model.paligemma_with_expert.paligemma.lm_head, model.paligemma_with_expert.gemma_expert.lm_head):
        head.requires_grad_(False)  # nothing reads them
    if asked.recompute:
        model.gradient_checkpointing_enable()
    torch_loop.train_steps(asked, model, lambda: next_loss(model, asked.batch_size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
