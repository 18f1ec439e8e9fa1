"""pi0 and pi05 in PyTorch, written from the facts about the published models: shapes, names, and what each layer does."""
import math

import torch
from torch import nn
from torch.nn import functional

# image, patch, vision: layers, heads, width, hidden; layers, heads, head width; prefix, expert: width, hidden; vocabulary, cameras, prompt,
# horizon, values of state and action
SHAPES = {
    "pi0-nano": (56, 7, 2, 4, 64, 128, 3, 4, 16, 64, 128, 48, 96, 1024, 2, 16, 8, 8),
    "pi05-nano": (56, 7, 2, 4, 64, 128, 3, 4, 16, 64, 128, 48, 96, 1024, 2, 32, 8, 8),
}
HIDDEN = -2.3819763e38  # added to scores of what must not be seen


def holder(**children):
    module = nn.Module()
    for name, child in children.items():
        setattr(module, name, child)
    return module


class RmsNorm(nn.Module):
    def __init__(self, width, condition_width=None):
        super().__init__()
        if condition_width is None:
            self.weight = nn.Parameter(torch.zeros(width))
        else:
            self.dense = nn.Linear(condition_width, 3 * width)

    def forward(self, x, condition):
        """Normed, and the gate of what is added to the stream."""
        normed = x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6)
        if not hasattr(self, "dense"):
            return normed * (1 + self.weight), 1
        scale, shift, gate = self.dense(condition)[:, None].chunk(3, dim=-1)
        return normed * (1 + scale) + shift, gate


def gemma_layer(width, hidden, heads, head_width, condition_width):
    def matrix(inputs, outputs):
        return nn.Linear(inputs, outputs, bias=False)

    return holder(input_layernorm=RmsNorm(width, condition_width),
                  self_attn=holder(q_proj=matrix(width, heads * head_width), k_proj=matrix(width, head_width),
                                   v_proj=matrix(width, head_width), o_proj=matrix(heads * head_width, width)),
                  post_attention_layernorm=RmsNorm(width, condition_width),
                  mlp=holder(gate_proj=matrix(width, hidden), up_proj=matrix(width, hidden), down_proj=matrix(hidden, width)))


def gemma(width, hidden, layers, heads, head_width, vocabulary=None, condition_width=None):
    tower = holder(layers=nn.ModuleList(gemma_layer(width, hidden, heads, head_width, condition_width) for _ in range(layers)),
                   norm=RmsNorm(width, condition_width))
    if vocabulary is not None:
        tower.embed_tokens = nn.Embedding(vocabulary, width)
    return tower


def vision_layer(width, hidden):
    return holder(layer_norm1=nn.LayerNorm(width, eps=1e-6),
                  self_attn=holder(**{f"{name}_proj": nn.Linear(width, width) for name in ("q", "k", "v", "out")}),
                  layer_norm2=nn.LayerNorm(width, eps=1e-6), mlp=holder(fc1=nn.Linear(width, hidden), fc2=nn.Linear(hidden, width)))


def time_embedding(time, width):
    periods = torch.tensor([4e-3 * 1000 ** (i / (width // 2 - 1)) for i in range(width // 2)], dtype=torch.float64)
    angles = time.double()[:, None] * (2 * math.pi) / periods
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1).float()


def turned(x, positions):
    """Rotary positions: x [B, heads, T, width]; the i-th value of one half turns with the i-th of the other."""
    half = x.shape[-1] // 2
    angles = positions[:, None, :, None].float() / 10000 ** (torch.arange(half) / half)
    pairs = torch.view_as_complex(torch.stack([x[..., :half], x[..., half:]], dim=-1).contiguous())
    pairs = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], dim=-1)


def who_sees_whom(valid, begins):
    """[B, T, T] of what is valid [B, T] and where blocks begin [T]: blocks see themselves and those before."""
    number = torch.tensor(begins).cumsum(0)
    seen = number[None, :] <= number[:, None]
    return seen[None] & valid[:, None, :] & valid[:, :, None]


class Pi0(nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.is_pi05 = variant.startswith("pi05")
        (self.side, self.patch, vision_layers, self.vision_heads, vision_width, vision_hidden, layers, self.heads, self.head_width,
         width, hidden, self.expert_width, expert_hidden, vocabulary, self.cameras, self.prompt, self.horizon, self.values) = SHAPES[variant]
        patches = (self.side // self.patch) ** 2
        vision = holder(embeddings=holder(patch_embedding=nn.Conv2d(3, vision_width, self.patch, stride=self.patch),
                                          position_embedding=nn.Embedding(patches, vision_width)),
                        encoder=holder(layers=nn.ModuleList(vision_layer(vision_width, vision_hidden) for _ in range(vision_layers))),
                        post_layernorm=nn.LayerNorm(vision_width, eps=1e-6))
        vlm = holder(vision_tower=holder(vision_model=vision), multi_modal_projector=holder(linear=nn.Linear(vision_width, width)),
                     language_model=gemma(width, hidden, layers, self.heads, self.head_width, vocabulary))
        expert = gemma(self.expert_width, expert_hidden, layers, self.heads, self.head_width,
                       condition_width=self.expert_width if self.is_pi05 else None)
        self.paligemma_with_expert = holder(paligemma=holder(model=vlm), gemma_expert=holder(model=expert))
        self.vision, self.projector, self.words_of = [vision], [vlm.multi_modal_projector.linear], [vlm.language_model]
        self.action_in_proj = nn.Linear(self.values, self.expert_width)
        self.action_out_proj = nn.Linear(self.expert_width, self.values)
        if self.is_pi05:
            self.time_mlp_in = nn.Linear(self.expert_width, self.expert_width)
            self.time_mlp_out = nn.Linear(self.expert_width, self.expert_width)
        else:
            self.state_proj = nn.Linear(self.values, self.expert_width)
            self.action_time_mlp_in = nn.Linear(2 * self.expert_width, self.expert_width)
            self.action_time_mlp_out = nn.Linear(self.expert_width, self.expert_width)

    def towers(self):
        return self.paligemma_with_expert.paligemma.model.language_model, self.paligemma_with_expert.gemma_expert.model

    def of_image(self, image):
        (vision,), (projector,) = self.vision, self.projector
        x = vision.embeddings.patch_embedding(image).flatten(2).transpose(1, 2) + vision.embeddings.position_embedding.weight
        for layer in vision.encoder.layers:
            normed = layer.layer_norm1(x)
            q, k, v = (getattr(layer.self_attn, name)(normed).unflatten(-1, (self.vision_heads, -1)).transpose(1, 2)
                       for name in ("q_proj", "k_proj", "v_proj"))
            shares = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
            x = x + layer.self_attn.out_proj((shares @ v).transpose(1, 2).flatten(2))
            x = x + layer.mlp.fc2(functional.gelu(layer.mlp.fc1(layer.layer_norm2(x)), approximate="tanh"))
        return projector(vision.post_layernorm(x))

    def prefix(self, seen):
        """Tokens [B, P, width], which of them are valid, and where blocks begin."""
        images = [self.of_image(seen["images"][:, camera]) for camera in range(self.cameras)]
        valid = [seen["image_mask"][:, camera, None].expand(image.shape[:2]) for camera, image in enumerate(images)]
        words = self.towers()[0].embed_tokens(seen["tokens"])
        tokens = torch.cat([*images, words * math.sqrt(words.shape[-1])], dim=1)
        return tokens, torch.cat([*valid, seen["token_mask"]], dim=1), [0] * tokens.shape[1]

    def suffix(self, state, noisy, time):
        """Tokens [B, S, width], where blocks begin, and the condition of the norms."""
        of_time = time_embedding(time, self.expert_width)
        actions = self.action_in_proj(noisy)
        begins = [1] + [0] * (self.horizon - 1)
        if self.is_pi05:
            return actions, begins, functional.silu(self.time_mlp_out(functional.silu(self.time_mlp_in(of_time))))
        both = torch.cat([actions, of_time[:, None].expand_as(actions)], dim=-1)
        mixed = self.action_time_mlp_out(functional.silu(self.action_time_mlp_in(both)))
        return torch.cat([self.state_proj(state)[:, None], mixed], dim=1), [1, *begins], None

    def velocity(self, seen, noisy, time):
        prefix, prefix_valid, prefix_begins = self.prefix(seen)
        suffix, begins, condition = self.suffix(seen["state"], noisy, time)
        valid = torch.cat([prefix_valid, torch.ones(suffix.shape[:2], dtype=torch.bool)], dim=1)
        mask = torch.where(who_sees_whom(valid, prefix_begins + begins)[:, None], 0.0, HIDDEN)
        positions = valid.long().cumsum(dim=1) - 1
        towers, streams, conditions = self.towers(), [prefix, suffix], [None, condition]
        for layers in zip(*(tower.layers for tower in towers), strict=True):
            streams = self.joint(layers, streams, conditions, mask, positions)
        normed, _ = towers[1].norm(streams[1], condition)
        return self.action_out_proj(normed[:, -self.horizon :])

    def joint(self, layers, streams, conditions, mask, positions):
        """One layer of both towers: one attention over the tokens of both."""
        q, k, v, gates = [], [], [], []
        for layer, x, condition in zip(layers, streams, conditions, strict=True):
            normed, gate = layer.input_layernorm(x, condition)
            gates.append(gate)
            for name, parts in (("q_proj", q), ("k_proj", k), ("v_proj", v)):
                parts.append(getattr(layer.self_attn, name)(normed).unflatten(-1, (-1, self.head_width)).transpose(1, 2))
        q, k = turned(torch.cat(q, dim=2), positions), turned(torch.cat(k, dim=2), positions)
        k, v = (part.repeat_interleave(self.heads, dim=1) for part in (k, torch.cat(v, dim=2)))
        shares = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.head_width) + mask, dim=-1)
        mixed = (shares @ v).transpose(1, 2).flatten(2).split([x.shape[1] for x in streams], dim=1)
        made = []
        for layer, x, condition, part, gate in zip(layers, streams, conditions, mixed, gates, strict=True):
            x = x + gate * layer.self_attn.o_proj(part)
            normed, gate = layer.post_attention_layernorm(x, condition)
            inner = functional.gelu(layer.mlp.gate_proj(normed), approximate="tanh") * layer.mlp.up_proj(normed)
            made.append(x + gate * layer.mlp.down_proj(inner))
        return made

    def loss(self, seen, actions, noise, time):
        """The mean over all values."""
        share = time[:, None, None]
        wanted = noise - actions
        return functional.mse_loss(self.velocity(seen, share * noise + (1 - share) * actions, time), wanted)

    @torch.no_grad()
    def sample(self, seen, noise, steps=10):
        x = noise
        for step in range(steps):
            time = torch.full((len(noise),), 1 - step / steps)
            x = x - self.velocity(seen, x, time) / steps
        return x
