"""TAEHV in PyTorch, written from the facts about the published model: shapes, names, and what each layer does."""
import math

import torch
from torch import nn
from torch.nn import functional

# patch, latent channels, width of the encoder, widths of the decoder, stages that halve time, stages that double it
VARIANTS = {
    "taehv-nano": (1, 16, 16, (32, 16, 16, 16), (2, 2, 1), (1, 2, 2)),
    "taehv": (1, 16, 64, (256, 128, 64, 64), (2, 2, 1), (1, 2, 2)),
    "taew2_1": (1, 16, 64, (256, 128, 64, 64), (2, 2, 1), (1, 2, 2)),
    "taehv1_5": (2, 32, 64, (256, 128, 64, 64), (2, 2, 1), (1, 2, 2)),
    "taeh3": (2, 24, 64, (256, 128, 64, 64), (2, 2, 1), (1, 2, 2)),
    "taew2_2": (2, 48, 64, (256, 128, 64, 64), (2, 2, 1), (1, 2, 2)),
    "taeltx": (4, 128, 64, (256, 128, 64, 64), (2, 2, 2), (2, 2, 2)),
}


class SoftClamp(nn.Module):
    def forward(self, x):
        return 3 * torch.tanh(x / 3)


class Memory(nn.Module):
    """Sees each frame with the one before it."""
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))

    def over_time(self, x):
        before = torch.zeros_like(x)
        before[:, 1:] = x[:, :-1]
        both = torch.cat([x, before], dim=2).flatten(0, 1)
        return torch.relu(self.conv(both) + x.flatten(0, 1)).unflatten(0, x.shape[:2])


class Pool(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.stride = stride
        self.conv = nn.Conv2d(width * stride, width, 1, bias=False)

    def over_time(self, x):
        clips, frames, channels, height, width = x.shape
        groups = x.reshape(clips * frames // self.stride, self.stride * channels, height, width)
        return self.conv(groups).unflatten(0, (clips, -1))


class Grow(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.stride = stride
        self.conv = nn.Conv2d(width, width * stride, 1, bias=False)

    def over_time(self, x):
        made = self.conv(x.flatten(0, 1))
        parts = made.chunk(self.stride, dim=1)  # frame after frame
        return torch.stack(parts, dim=1).flatten(0, 1).unflatten(0, (x.shape[0], -1))


class Taehv(nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.patch, latents, width, widths, halves, doubles = VARIANTS[variant]
        colours = 3 * self.patch**2
        layers = [nn.Conv2d(colours, width, 3, padding=1), nn.ReLU()]
        for stride in halves:
            layers += [Pool(width, stride), nn.Conv2d(width, width, 3, stride=2, padding=1, bias=False)]
            layers += [Memory(width) for _ in range(3)]
        self.encoder = nn.Sequential(*layers, nn.Conv2d(width, latents, 3, padding=1))
        layers = [SoftClamp(), nn.Conv2d(latents, widths[0], 3, padding=1), nn.ReLU()]
        for stage, stride in enumerate(doubles):
            layers += [Memory(widths[stage]) for _ in range(3)]
            layers += [nn.Upsample(scale_factor=2), Grow(widths[stage], stride),
                       nn.Conv2d(widths[stage], widths[stage + 1], 3, padding=1, bias=False)]
        self.decoder = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(widths[3], colours, 3, padding=1))
        self.frames_of_latent, self.trim = math.prod(halves), math.prod(doubles) - 1

    @staticmethod
    def applied(layers, x):
        for layer in layers:
            x = layer.over_time(x) if hasattr(layer, "over_time") else layer(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return x

    def encode(self, frames):
        return self.applied(self.encoder, functional.pixel_unshuffle(frames, self.patch))

    def decode(self, latents):
        """Not clamped yet."""
        return functional.pixel_shuffle(self.applied(self.decoder, latents), self.patch)[:, self.trim :]
