"""A small GPT (decoder only, pre-norm), sharded by FSDP2."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

VOCABULARY = 256
"""Bytes: no tokenizer to ship."""


class Size(NamedTuple):
    """layers of `width` with `heads` heads; length: tokens of a sample."""

    layers: int
    width: int
    heads: int
    length: int


class Block(nn.Module):
    """Attention and feed-forward."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.qkv, self.out = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)
        self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

    def forward(self, x: Tensor) -> Tensor:
        """Shape kept: samples, tokens, width."""
        samples, length, width = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(samples, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(samples, length, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class GPT(nn.Module):
    """Tokens to the mean loss of the next ones. Activations of a block are computed again in the backward pass."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, size.width), nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm, self.head = nn.LayerNorm(size.width), nn.Linear(size.width, VOCABULARY, bias=False)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy in nats."""
        x = self.token(inputs) + self.place(torch.arange(inputs.shape[1], device=inputs.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build(size: Size, mesh: Any, seed: int) -> GPT:
    """The same weights for a seed, whatever the number of ranks: made whole, then sharded.

    Parameters stay gathered between the forwards of a step (ZeRO 2): all but the first and the last then run without
    the network, and their time is the rank's own.
    """
    torch.manual_seed(seed)
    model = GPT(size)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    return model


def flops_per_token(size: Size) -> float:
    """6 per weight of the matrices and 12 x layers x width x length of attention: PaLM, arXiv 2204.02311."""
    weights = 12 * size.layers * size.width**2 + VOCABULARY * size.width
    return 6.0 * weights + 12.0 * size.layers * size.width * size.length
