"""GPT written with `paddle.nn`, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import math
from functools import partial

import paddle
import paddle.nn.functional as F
from paddle import nn

from workloads.gpt import LAYER_NORM_EPSILON, Gpt


class Block(nn.Layer):
    """Self-attention and a two-layer perceptron, each behind a layer norm and added to the residual; ViT's as well."""

    def __init__(self, hidden: int, heads: int, fused: bool, causal: bool, bias: bool, epsilon: float):
        super().__init__()
        self.heads, self.head_size, self.fused, self.causal = heads, hidden // heads, fused, causal
        has = {"bias_attr": None if bias else False}
        self.ln_1 = nn.LayerNorm(hidden, epsilon=epsilon, **has)
        self.qkv = nn.Linear(hidden, 3 * hidden, **has)
        self.projection = nn.Linear(hidden, hidden, **has)
        self.ln_2 = nn.LayerNorm(hidden, epsilon=epsilon, **has)
        self.expand = nn.Linear(hidden, 4 * hidden, **has)
        self.contract = nn.Linear(4 * hidden, hidden, **has)

    def forward(self, x, future=None):
        """Map (B, T, H) -> (B, T, H); `future` (T, T) is added to scores."""
        split = [0, 0, self.heads, self.head_size]  # 0 keeps a dimension
        q, k, v = self.qkv(self.ln_1(x)).split(3, axis=-1)  # (B, T, H) each
        q, k, v = q.reshape(split), k.reshape(split), v.reshape(split)  # (B, T, nh, hs)
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)  # (B, T, nh, hs)
        else:
            q, k, v = q.transpose([0, 2, 1, 3]), k.transpose([0, 2, 1, 3]), v.transpose([0, 2, 1, 3])  # (B, nh, T, hs)
            scores = paddle.matmul(q, k, transpose_y=True) * (1 / math.sqrt(self.head_size))  # (B, nh, T, T)
            if future is not None:
                scores = scores + future.astype(scores.dtype)
            context = paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3])  # (B, T, nh, hs)
        x = x + self.projection(context.reshape([0, 0, -1]))  # (B, T, H)
        return x + self.contract(F.gelu(self.expand(self.ln_2(x))))  # (B, T, H), the exact GELU


class GptModel(nn.Layer):
    """A GPT with tied embeddings: its output layer's weights are the token embeddings."""

    def __init__(self, workload: Gpt, fused: bool):
        super().__init__()
        self.wte = nn.Embedding(workload.vocabulary, workload.hidden)
        self.wpe = nn.Embedding(workload.positions, workload.hidden)
        sizes = workload.hidden, workload.heads
        block = partial(Block, *sizes, fused, causal=True, bias=False, epsilon=LAYER_NORM_EPSILON)
        self.h = nn.LayerList(block() for _ in range(workload.layers))
        self.ln_f = nn.LayerNorm(workload.hidden, epsilon=LAYER_NORM_EPSILON, bias_attr=False)

    def logits(self, input_ids, last: bool):
        """Map `input_ids` (B, T), int64 -> logits (B, T, V), or (B, V) of the last position."""
        length = input_ids.shape[1]
        x = self.wte(input_ids) + self.wpe(paddle.arange(length))  # (B, T, H)
        future = paddle.triu(paddle.full([length, length], -1e30, "float32"), 1)  # (T, T), 0 where attended
        for block in self.h:
            x = block(x, future)
        x = self.ln_f(x)
        return paddle.matmul(x[:, -1] if last else x, self.wte.weight, transpose_y=True)

    def forward(self, input_ids):
        """Map `input_ids` (B, T), int64 -> logits of the next token (B, V)."""
        return self.logits(input_ids, last=True)
