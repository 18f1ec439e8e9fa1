"""TAEHV in PyTorch, written from the facts about the published model: shapes, names, and what each layer does."""
import math

import torch
from torch import nn
from torch.nn import functional

# patch, latent channels, width of the encoder, widths of the decoder, stages that halve time, stages that double it, decoder
SMALL, USUAL, SUPER = (32, 16, 16, 16), (256, 128, 64, 64), (512, 256, 128, 64)
VARIANTS = {
    "taehv-nano": (1, 16, 16, SMALL, (2, 2, 1), (1, 2, 2), "plain"),
    "taehv-nano-super": (1, 16, 16, SMALL, (2, 2, 1), (1, 2, 2), "super"),
    "taehv": (1, 16, 64, USUAL, (2, 2, 1), (1, 2, 2), "plain"),
    "taehv1_5": (2, 32, 64, USUAL, (2, 2, 1), (1, 2, 2), "plain"),
    "taehv1_5_super": (2, 32, 64, SUPER, (2, 2, 1), (1, 2, 2), "super"),
    "taeh3": (2, 24, 64, USUAL, (2, 2, 1), (1, 2, 2), "plain"),
    "taew2_2": (2, 48, 64, USUAL, (2, 2, 1), (1, 2, 2), "plain"),
    "taew2_2_super": (2, 48, 64, SUPER, (2, 2, 1), (1, 2, 2), "super"),
    "taeltx": (4, 128, 64, USUAL, (2, 2, 2), (2, 2, 2), "plain"),
    "taeltx2_3_wide": (4, 128, 64, (1024, 512, 256, 64), (2, 2, 2), (2, 2, 2), "wide"),
}


class SoftClamp(nn.Module):
    def forward(self, x):
        return 3 * torch.tanh(x / 3)


class Remembering(nn.Module):
    """Sees each frame with the one before it."""
    def over_time(self, x):
        before = torch.zeros_like(x)
        before[:, 1:] = x[:, :-1]
        both = torch.cat([x, before], dim=2).flatten(0, 1)
        return self.finished(self.conv(both) + x.flatten(0, 1)).unflatten(0, x.shape[:2])

    finished = staticmethod(torch.relu)


class Memory(Remembering):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))


class WideMemory(Remembering):
    """Of convolutions that mix channels or pixels, but in groups of 64 channels never both."""
    def __init__(self, width):
        super().__init__()
        layers = []
        for mixed in (2 * width, width):
            layers += [nn.Conv2d(mixed, width, 1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1, groups=width // 64), nn.ReLU()]
        self.conv = nn.Sequential(*layers[:-1])


class SuperMemory(Remembering):
    def __init__(self, width):
        super().__init__()
        both = 2 * width
        self.conv = nn.Sequential(nn.Conv2d(both, both, 7, padding=3, groups=both, bias=False), nn.Conv2d(both, 2 * both, 1),
                                  nn.ReLU(), nn.Conv2d(2 * both, width, 1, bias=False))

    finished = staticmethod(lambda x: x)


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
        self.patch, latents, width, widths, halves, doubles, decoder = VARIANTS[variant]
        colours = 3 * self.patch**2
        layers = [nn.Conv2d(colours, width, 3, padding=1), nn.ReLU()]
        for stride in halves:
            layers += [Pool(width, stride), nn.Conv2d(width, width, 3, stride=2, padding=1, bias=False)]
            layers += [Memory(width) for _ in range(3)]
        self.encoder = nn.Sequential(*layers, nn.Conv2d(width, latents, 3, padding=1))
        layers = self.super_stages(latents, widths, doubles) if decoder == "super" else self.stages(latents, widths, doubles, decoder)
        self.decoder = nn.Sequential(*layers, nn.Conv2d(widths[3], colours, 3, padding=1))
        self.frames_of_latent, self.trim = math.prod(halves), math.prod(doubles) - 1

    @staticmethod
    def stages(latents, widths, doubles, decoder):
        memory = {"plain": Memory, "wide": WideMemory}[decoder]
        layers = [SoftClamp(), nn.Conv2d(latents, widths[0], 3, padding=1), nn.ReLU()]
        for stage, stride in enumerate(doubles):
            layers += [memory(widths[stage]) for _ in range(3)]
            layers += [nn.Upsample(scale_factor=2), Grow(widths[stage], stride),
                       nn.Conv2d(widths[stage], widths[stage + 1], 3, padding=1, bias=False)]
        return [*layers, nn.ReLU()]

    @staticmethod
    def super_stages(latents, widths, doubles):
        layers = [nn.Conv2d(latents, widths[0], 1, bias=False)]
        for width, following, stride in zip(widths, widths[1:], doubles):
            layers += [SuperMemory(width) for _ in range(3)]
            layers += [nn.Conv2d(width, 4 * following, 3, padding=1), nn.ReLU(), nn.PixelShuffle(2), Grow(following, stride)]
        return layers

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


class Discriminator(nn.Module):
    """Scores of groups of three frames, [n, 9, H, W], beside their latents: one of each stage and each 8 x 8 pixels."""
    def __init__(self, variant):
        super().__init__()
        _, latents, width, *_ = VARIANTS[variant]
        widths = [9 + latents, *(times * width for times in (1, 2, 4, 8, 8, 8))]
        self.blocks, self.proj = nn.ModuleList(), nn.ModuleList()
        for stage, (before, after) in enumerate(zip(widths, widths[1:])):
            halves = stage in (1, 2, 3)
            conv = nn.Conv2d(before, after, 4 if halves else 3, stride=2 if halves else 1, padding=1, bias=False)
            self.blocks.append(nn.Sequential(conv, nn.BatchNorm2d(after), nn.ReLU()))
            self.proj.append(nn.Conv2d(after, 1, 1, bias=False))

    def forward(self, groups, context):
        size = groups.shape[-2:]
        seen = torch.cat([2 * groups - 1, functional.interpolate(context, size)], dim=1)
        opinions = []
        for block, opinion in zip(self.blocks, self.proj):
            seen = block(seen)
            opinions.append(functional.adaptive_avg_pool2d(opinion(seen), (size[0] // 8, size[1] // 8)))
        return torch.cat(opinions, dim=1)

    def correction(self, real, made, context):
        """Of clips of whole groups, [N, T, 3, H, W]; by the running means."""
        self.eval()
        clips = made.shape[:2]

        def scores(frames):
            return self(frames.reshape(-1, 9, *frames.shape[-2:]), context)

        made = made.clone().requires_grad_()
        distance = (scores(made) - scores(real)).square().mean(dim=(1, 2, 3)).sum()
        (gradient,) = torch.autograd.grad(distance, made)
        self.train()
        size = gradient.flatten(1).std(dim=1, correction=0).view(-1, 1, 1, 1, 1)
        return (-gradient / (size + 1e-5)).view(*clips, *made.shape[2:])
