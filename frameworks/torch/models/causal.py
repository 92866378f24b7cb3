"""Models with a cache as `torch.nn` modules, for any kind of block: attention over the cache.

A static cache is buffers (B, nkv, C, hs) that calls write to in place. A dynamic one is a list of each layer's keys and
values so far, (B, nkv, n, hs); a call makes a longer one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from workloads.causal import Causal

Tensors = dict[str, torch.Tensor]
Layers = list[tuple[torch.Tensor, torch.Tensor]]  # keys and values of each
Write = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class StaticLayer(nn.Module):
    """Keys and values of a layer, in memory for all places."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor):
        super().__init__()
        self.register_buffer("keys", keys)
        self.register_buffer("values", values)

    def fill(self, k: torch.Tensor, v: torch.Tensor) -> None:
        """Write a prompt's keys and values, (B, nkv, T, hs), from the beginning."""
        self.keys[:, :, : k.size(2)].copy_(k)
        self.values[:, :, : v.size(2)].copy_(v)

    def written(self, place: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all keys and values, with a token's (B, nkv, 1, hs) at its place (1,)."""
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        return self.keys, self.values


class GrowingLayer:
    """Keys and values of a layer that are concatenated with each token's."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor):
        self.keys, self.values = keys, values

    def written(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all keys and values, with a token's (B, nkv, 1, hs) after them."""
        self.keys, self.values = torch.cat((self.keys, k), 2), torch.cat((self.values, v), 2)
        return self.keys, self.values


class Block(nn.Module):
    """Causal self-attention over a cache. `projected` and `fed_forward` are those of a kind of model."""

    def __init__(self, model: Causal, fused: bool):
        super().__init__()
        self.heads, self.kv_heads, self.head_size, self.fused = model.heads, model.kv_heads, model.head_size, fused

    def projected(self, x: torch.Tensor, turn: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Map (..., H) -> queries (..., nh, hs), keys and values (..., nkv, hs)."""
        raise NotImplementedError

    def fed_forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Map states and attention's context, (..., H) -> the block's states."""
        raise NotImplementedError

    def decode(self, x: torch.Tensor, turn: Tensors, write: Write, mask: torch.Tensor | None) -> torch.Tensor:
        """Map states (B, H) of a token -> the block's; `write` stores its keys and values, and returns all.

        `mask` (C,) is added to scores.
        """
        q, k, v = self.projected(x, turn)  # (B, nh, hs), (B, nkv, hs) twice
        keys, values = write(k[:, :, None], v[:, :, None])
        q = q.unflatten(1, (self.kv_heads, -1))  # (B, nkv, nh / nkv, hs): heads that share keys are as rows of one
        if self.fused:
            masks = None if mask is None else mask[None, None, None]
            context = F.scaled_dot_product_attention(q, keys, values, attn_mask=masks)
        else:
            scores = (q * self.head_size**-0.5) @ keys.mT  # (B, nkv, nh / nkv, C)
            scores = scores if mask is None else scores + mask
            context = F.softmax(scores, dim=-1) @ values  # (B, nkv, nh / nkv, hs)
        return self.fed_forward(x, context.flatten(1))

    def forward(self, x: torch.Tensor, turn: Tensors) -> torch.Tensor:
        """Map states (B, T, H) of whole sequences -> the block's, without a cache."""
        return self.prefill(x, turn)[0]

    def prefill(self, x: torch.Tensor, turn: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return states (B, T, H) of a prompt, and its keys and values (B, nkv, T, hs)."""
        q, k, v = (y.transpose(1, 2) for y in self.projected(x, turn))  # (B, n, T, hs)
        length = x.size(1)
        if self.fused:
            grouped = self.heads != self.kv_heads
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)  # (B, nh, T, hs)
        else:
            q = q.reshape(len(x), self.kv_heads, -1, self.head_size)  # (B, nkv, nh / nkv * T, hs)
            scores = ((q * self.head_size**-0.5) @ k.mT).unflatten(2, (-1, length))  # (B, nkv, nh / nkv, T, T)
            future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)  # (T, T)
            shares = F.softmax(scores.masked_fill(future, -math.inf), dim=-1)
            context = (shares.flatten(2, 3) @ v).reshape(len(x), self.heads, length, self.head_size)
        return self.fed_forward(x, context.transpose(1, 2).flatten(2)), k, v


class CausalModel(nn.Module):
    """A model's blocks between its embeddings and its logits, which a kind of model has, and its static cache."""

    def __init__(self, blocks: list[Block], places: int):
        super().__init__()
        self.blocks, self.places = nn.ModuleList(blocks), places
        self.cache = nn.ModuleList()  # empty with a dynamic cache
        self.past: Layers | None = None  # the initial content of a dynamic cache, unless empty

    def embedded(self, ids: torch.Tensor, places: torch.Tensor | None) -> tuple[torch.Tensor, Tensors]:
        """Map tokens (B,) at a place (1,), or prompts (B, T) where it is None -> states (..., H), heads' turns."""
        raise NotImplementedError

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Map (..., H) -> (..., V)."""
        raise NotImplementedError

    def every_logit(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Map sequences (B, T), int64 -> logits of every token's successor (B, T, V), without a cache."""
        x, turn = self.embedded(input_ids, None)
        turn = {name: table.to(x.dtype) for name, table in turn.items()}
        for block in self.blocks:
            x = block(x, turn)
        return self.logits(x)

    def hold(self, layers: Layers) -> None:
        """Make these tensors the static cache."""
        self.cache = nn.ModuleList(StaticLayer(keys, values) for keys, values in layers)

    def read(self, input_ids: torch.Tensor, fills: bool) -> tuple[torch.Tensor, Layers]:
        """Map a prompt (B, T), int64 -> logits of the next token (B, V), and a dynamic cache as a list of layers.

        Where it `fills` the static cache, the list is empty.
        """
        x, turn = self.embedded(input_ids, None)
        layers = []
        for index, block in enumerate(self.blocks):
            x, k, v = block.prefill(x, turn)
            if fills:
                self.cache[index].fill(k, v)
            else:
                layers.append((k.contiguous(), v.contiguous()))  # as the grown ones will be: else another graph
        return self.logits(x[:, -1]), layers

    def proceed(self, tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """Map `tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V), by the static cache."""
        x, turn = self.embedded(tokens, place)
        slots = torch.arange(self.places, device=place.device)  # (C,)
        mask = torch.zeros(self.places, dtype=x.dtype, device=x.device).masked_fill(slots > place, -math.inf)
        for block, layer in zip(self.blocks, self.cache, strict=True):
            x = block.decode(x, turn, lambda k, v, layer=layer: layer.written(place, k, v), mask)
        return self.logits(x)

    def grow(self, tokens: torch.Tensor, place: torch.Tensor, layers: Layers) -> tuple[torch.Tensor, Layers]:
        """Return the same on a dynamic cache of all places before this one, and the longer cache."""
        x, turn = self.embedded(tokens, place)
        longer = [GrowingLayer(keys, values) for keys, values in layers]
        for block, layer in zip(self.blocks, longer, strict=True):
            x = block.decode(x, turn, layer.written, None)
        return self.logits(x), [(layer.keys, layer.values) for layer in longer]


def of_each_sequence(past: list[torch.Tensor], batch: int) -> Layers:
    """Copy keys and values, (layers, nkv, C, hs), by layer for every sequence of a batch: (B, nkv, C, hs)."""
    return [tuple(part.expand(batch, *part.shape).clone() for part in pair) for pair in zip(*past, strict=True)]
