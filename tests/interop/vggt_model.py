"""VGGT's aggregator and its coupling to Qwen2.5-VL in PyTorch, written from the facts about them: the other side of
tests/interop/qwen_tests.py. Weights are a dictionary with the names of the published file."""
import torch
from torch.nn import functional

MEAN, DEVIATION = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
DINO_EPS, EPS, BASE = 1e-6, 1e-5, 100.0


class Shape:
    width, hidden, heads, layers, dino_layers, patch, square, registers = 64, 128, 4, 3, 2, 14, 3, 4


class FullWidth(Shape):
    width, hidden, heads, layers, dino_layers, square = 1024, 4096, 16, 2, 1, 37


def layer_tensors(prefix, shape, has_norms):
    width, head = shape.width, shape.width // shape.heads
    tensors = {"norm1.weight": [width], "norm1.bias": [width], "attn.qkv.weight": [3 * width, width], "attn.qkv.bias": [3 * width],
               "attn.proj.weight": [width, width], "attn.proj.bias": [width], "ls1.gamma": [width], "norm2.weight": [width],
               "norm2.bias": [width], "mlp.fc1.weight": [shape.hidden, width], "mlp.fc1.bias": [shape.hidden],
               "mlp.fc2.weight": [width, shape.hidden], "mlp.fc2.bias": [width], "ls2.gamma": [width]}
    if has_norms:
        tensors |= {f"attn.{which}_norm.{part}": [head] for which in "qk" for part in ("weight", "bias")}
    return {prefix + name: size for name, size in tensors.items()}


def random_weights(shape=Shape):
    """With a mask and a head, as the published file has them; nothing is zero, which hides mistakes."""
    torch.manual_seed(21)
    width, dino = shape.width, "aggregator.patch_embed."
    sizes = {dino + "cls_token": [1, 1, width], dino + "pos_embed": [1, 1 + shape.square**2, width],
             dino + "register_tokens": [1, shape.registers, width], dino + "mask_token": [1, width],
             dino + "patch_embed.proj.weight": [width, 3, shape.patch, shape.patch], dino + "patch_embed.proj.bias": [width],
             dino + "norm.weight": [width], dino + "norm.bias": [width], "aggregator.camera_token": [1, 2, 1, width],
             "aggregator.register_token": [1, 2, shape.registers, width], "camera_head.trunk.weight": [4, 2 * width]}
    for number in range(shape.dino_layers):
        sizes |= layer_tensors(f"{dino}blocks.{number}.", shape, False)
    for number in range(shape.layers):
        for kind in ("frame", "global"):
            sizes |= layer_tensors(f"aggregator.{kind}_blocks.{number}.", shape, True)
    weights = {}
    for name, size in sizes.items():
        spread = 0.3 if len(size) != 2 and "proj.weight" not in name else 1 / torch.Size(size[1:]).numel() ** 0.5
        weights[name] = torch.randn(size) * spread + (1.0 if "norm" in name and name.endswith("weight") else 0.0)
    return weights


def normed(x, weights, name, eps):
    return functional.layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights[name + ".bias"], eps)


def linear(x, weights, name):
    return functional.linear(x, weights[name + ".weight"], weights[name + ".bias"])


def turned_along(x, positions):
    """x [..., tokens, width], positions [tokens]."""
    half = x.shape[-1] // 2
    angle = positions[:, None].float() * BASE ** (-torch.arange(half) / half)
    real, imaginary = x[..., :half], x[..., half:]
    return torch.cat([real * angle.cos() - imaginary * angle.sin(), imaginary * angle.cos() + real * angle.sin()], -1)


def turned(x, places):
    """The first half of a head by rows, the second by columns."""
    rows, columns = x.split(x.shape[-1] // 2, -1)
    return torch.cat([turned_along(rows, places[:, 0]), turned_along(columns, places[:, 1])], -1)


def layer(x, weights, prefix, heads, eps, places=None, sees=None):
    scenes, tokens, width = x.shape
    qkv = linear(normed(x, weights, prefix + "norm1", eps), weights, prefix + "attn.qkv")
    q, k, v = (part.reshape(scenes, tokens, heads, -1).transpose(1, 2) for part in qkv.split(width, -1))
    if places is not None:
        q = turned(normed(q, weights, prefix + "attn.q_norm", eps), places)
        k = turned(normed(k, weights, prefix + "attn.k_norm", eps), places)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if sees is not None:
        scores = scores.masked_fill(~sees, float("-inf"))
    mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(scenes, tokens, width)
    x = x + weights[prefix + "ls1.gamma"] * linear(mixed, weights, prefix + "attn.proj")
    inside = functional.gelu(linear(normed(x, weights, prefix + "norm2", eps), weights, prefix + "mlp.fc1"))
    return x + weights[prefix + "ls2.gamma"] * linear(inside, weights, prefix + "mlp.fc2")


def dino(images, weights, shape):
    """Normalised patch tokens [images, patches, width]."""
    prefix = "aggregator.patch_embed."
    patches = functional.conv2d(images, weights[prefix + "patch_embed.proj.weight"], weights[prefix + "patch_embed.proj.bias"],
                                stride=shape.patch)
    count, _, rows, columns = patches.shape
    positions = weights[prefix + "pos_embed"]
    plane = positions[:, 1:].transpose(1, 2).reshape(1, shape.width, shape.square, shape.square)
    if (rows, columns) != (shape.square, shape.square):
        plane = functional.interpolate(plane, (rows, columns), mode="bicubic", antialias=True)
    first = (weights[prefix + "cls_token"] + positions[:, :1]).expand(count, -1, -1)
    x = torch.cat([first, weights[prefix + "register_tokens"].expand(count, -1, -1), (patches + plane).flatten(2).transpose(1, 2)], 1)
    for number in range(shape.dino_layers):
        x = layer(x, weights, f"{prefix}blocks.{number}.", shape.heads, DINO_EPS)
    return normed(x, weights, prefix + "norm", DINO_EPS)[:, 1 + shape.registers :]


def tokens(frames, weights, is_causal, shape=Shape):
    """frames [scenes, frames, 3, height, width] -> of each layer [scenes, frames, special + patches, 2 * width]."""
    scenes, count, _, height, width = frames.shape
    images = (frames - MEAN[:, None, None]) / DEVIATION[:, None, None]
    patches = dino(images.flatten(0, 1), weights, shape).unflatten(0, (scenes, count))
    special = torch.cat([weights["aggregator.camera_token"], weights["aggregator.register_token"]], 2)[0]
    of_frame = torch.stack([special[min(frame, 1)] for frame in range(count)]).expand(scenes, -1, -1, -1)
    x = torch.cat([of_frame, patches], 2)
    rows, columns = height // shape.patch, width // shape.patch
    places = torch.tensor([(0, 0)] * (1 + shape.registers) + [(row + 1, column + 1) for row in range(rows) for column in range(columns)])
    frame_of = torch.arange(count).repeat_interleave(len(places))
    sees = frame_of[:, None] >= frame_of if is_causal else None
    made = []
    for number in range(shape.layers):
        inside = layer(x.flatten(0, 1), weights, f"aggregator.frame_blocks.{number}.", shape.heads, EPS, places).view(x.shape)
        x = layer(inside.flatten(1, 2), weights, f"aggregator.global_blocks.{number}.", shape.heads, EPS, places.repeat(count, 1),
                  sees).view(x.shape)
        made.append(torch.cat([inside, x], -1))
    return made


def newest(frames, weights, is_causal, shape=Shape):
    """Of the last frame's patches, as the last layer but one leaves them."""
    return tokens(frames, weights, is_causal, shape)[-2][:, -1, 1 + shape.registers :]


def geometry(features, rows, columns, merger):
    """features [rows * columns, width] -> tokens of the language tower, 2 x 2 patches each."""
    plane = features.view(rows, columns, -1)
    scaled = plane * plane.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt() * merger["merger.ln_q.weight"]
    groups = torch.stack([torch.cat([scaled[row + i, column + j] for i in range(2) for j in range(2)])
                          for row in range(0, rows, 2) for column in range(0, columns, 2)])
    return linear(functional.gelu(linear(groups, merger, "merger.mlp.0")), merger, "merger.mlp.2")
