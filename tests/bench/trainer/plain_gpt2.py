"""GPT-2 as people write it in PyTorch after nanoGPT: the contender that does nothing beside training. Sizes: B samples,
T tokens, C width.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.hidden, self.mlp_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        samples, tokens, width = x.shape
        q, k, v = (part.view(samples, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attention_out(mixed.transpose(1, 2).contiguous().view(samples, tokens, width))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp_out(F.gelu(self.hidden(self.ln_2(x)), approximate="tanh"))


class PlainGpt2(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            std = 0.02 / math.sqrt(2 * layers) if name.endswith("out.weight") else 0.02
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        self.head.weight = self.tokens.weight  # tied

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.positions(torch.arange(inputs.size(1), device=inputs.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
