"""Trains the pi0 of LeRobot 0.6.1 on pictures that were decoded beforehand: the trainer's contender. Its model is LeRobot's own code
(tests/lerobot/lerobot_pi0.py), the loop and the optimizer are torch_loop's. Prints a line for each step. By the Python of tools/lerobot.

  pi0_loop.py --data FOLDER --side 112 --batch-size 8 --steps 5

FOLDER is of tests/arm/record.py, with frames.npz.
"""
import argparse
import pathlib
import sys

import numpy
import sentencepiece
import torch
import torch_loop
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "lerobot"))
import lerobot_pi0  # noqa: E402

VOCABULARY, PROMPT, HORIZON, VALUES, COUNTED = 1024, 16, 8, 8, 2  # of the trainer's flags


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    for name in ("side", "batch-size", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    torch_loop.add_common_flags(parser)
    return parser.parse_args()


def normalised(values):
    padded = numpy.zeros((*values.shape[:-1], VALUES), numpy.float32)
    flat = values.reshape(-1, COUNTED)
    padded[..., :COUNTED] = (values - flat.mean(0)) / flat.std(0)
    return torch.from_numpy(padded)


class Samples:
    """All of the data set, as the model takes it."""
    def __init__(self, folder, side):
        frames = numpy.load(folder / "frames.npz")
        sized = [[numpy.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BILINEAR)) for picture in pictures]
                 for pictures in frames["pictures"]]
        self.pictures = torch.from_numpy(numpy.stack(sized)).permute(1, 0, 4, 2, 3).contiguous()  # [cameras, frames, 3, side, side]
        episodes = frames["episode"]
        last = numpy.searchsorted(episodes, episodes, side="right") - 1
        self.actions = normalised(frames["action"][numpy.minimum(numpy.arange(len(last))[:, None] + numpy.arange(HORIZON), last[:, None])])
        self.state = normalised(frames["state"])
        words = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        ids = [(words.encode(str(task), add_bos=True) + words.encode("\n"))[:PROMPT] for task in frames["task"]]
        self.tokens = torch.tensor([each + [0] * (PROMPT - len(each)) for each in ids])
        self.token_mask = torch.tensor([[place < len(each) for place in range(PROMPT)] for each in ids])

    def loss(self, model, chosen):
        """Of the actions' own values, as LeRobot's policy counts them."""
        count = len(chosen)
        pictures = [camera[chosen].float() / 127.5 - 1 for camera in self.pictures]
        actions = self.actions[chosen]
        errors = model(pictures, [torch.ones(count, dtype=torch.bool)] * len(pictures), self.tokens[chosen], self.token_mask[chosen],
                       self.state[chosen], actions, torch.randn_like(actions), model.sample_time(count, "cpu"))
        return errors[:, :, :COUNTED].mean()


def main():
    asked = flags()
    torch.manual_seed(1337)
    model = lerobot_pi0.make("pi0", asked.side, VOCABULARY, HORIZON, VALUES).train()
    samples = Samples(asked.data, asked.side)
    generator = torch.Generator().manual_seed(1337)

    def next_loss():
        return samples.loss(model, torch.randint(len(samples.state), (asked.batch_size,), generator=generator))
    for head in (model.paligemma_with_expert.paligemma.lm_head, model.paligemma_with_expert.gemma_expert.lm_head):
        head.requires_grad_(False)  # nothing reads them
    torch_loop.train_steps(asked, model, next_loss)
    return 0


if __name__ == "__main__":
    sys.exit(main())
