"""Llama written with `paddle.nn` and a static cache, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from workloads.decode import PAST, STEPS
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.spec import Arrays, Workload


class Block(nn.Layer):
    """Causal self-attention over a cache and a gated perceptron, each behind a norm and added to the residual.

    Products that have their input in common are one. The cache holds keys and values as (B, nkv, C, hs), in buffers
    that calls write to in place.
    """

    def __init__(self, model: Llama, weights: Arrays, prefix: str, batch: int, places: int):
        super().__init__()
        self.heads, self.kv_heads, self.head_size = model.heads, model.kv_heads, model.head_size

        def linear(*names: str) -> nn.Linear:
            values = np.concatenate([weights[f"{prefix}.{name}.weight"] for name in names]).T  # (in, out), Paddle's way
            made = nn.Linear(*values.shape, bias_attr=False)
            made.weight.set_value(paddle.to_tensor(np.ascontiguousarray(values), made.weight.dtype))
            return made

        self.input_norm = parameter(self, weights[f"{prefix}.input_layernorm.weight"])
        self.qkv = linear("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # (H, (nh + 2 nkv) * hs)
        self.output = linear("self_attn.o_proj")
        self.inner_norm = parameter(self, weights[f"{prefix}.post_attention_layernorm.weight"])
        self.gate_up = linear("mlp.gate_proj", "mlp.up_proj")
        self.down = linear("mlp.down_proj")
        for name in ("keys", "values"):
            self.register_buffer(name, paddle.zeros([batch, self.kv_heads, places, self.head_size]))

    def decode(self, x, cosines, sines, place, mask):
        """States (B, H) of a token a sequence, which is written to `place` (1,); `mask` (C,) is added to scores."""
        q, k, v = self.projected(x, cosines, sines)  # (B, nh, hs), (B, nkv, hs) twice
        slots = place.reshape([1, 1, 1, 1]).expand([x.shape[0], self.kv_heads, 1, self.head_size])
        keys, values = written(self.keys, slots, k.unsqueeze(2)), written(self.values, slots, v.unsqueeze(2))
        q = q.reshape([0, self.kv_heads, -1, self.head_size]) * self.head_size**-0.5
        scores = paddle.matmul(q, keys, transpose_y=True) + mask  # (B, nkv, nh / nkv, C)
        context = paddle.matmul(F.softmax(scores), values)  # (B, nkv, nh / nkv, hs)
        return self.fed_forward(x, context.reshape([0, -1]))

    def prefill(self, x, cosines, sines, future):
        """States (B, T, H) of prompts, each of which fills the cache; `future` (T, T) is added to scores."""
        q, k, v = (y.transpose([0, 2, 1, 3]) for y in self.projected(x, cosines, sines))  # (B, n, T, hs)
        length = x.shape[1]
        for cache, new in ((self.keys, k), (self.values, v)):
            if cache.shape[2] == length:
                paddle.assign(new, cache)
            else:
                written(cache, paddle.arange(length).reshape([1, 1, -1, 1]).expand(new.shape), new)
        q = q.reshape([0, self.kv_heads, -1, self.head_size]) * self.head_size**-0.5
        scores = paddle.matmul(q, k, transpose_y=True).reshape([0, self.kv_heads, -1, length, length])
        shares = F.softmax(scores + future.astype(scores.dtype)).reshape([0, self.kv_heads, -1, length])
        context = paddle.matmul(shares, v).reshape([0, self.heads, length, self.head_size])
        return self.fed_forward(x, context.transpose([0, 2, 1, 3]).reshape([0, 0, -1]))

    def projected(self, x, cosines, sines):
        """(..., H) -> turned queries (..., nh, hs) and keys (..., nkv, hs), and values."""
        qkv = self.qkv(norm(x, self.input_norm))
        qkv = qkv.reshape([0] * (x.ndim - 1) + [-1, self.head_size])
        qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], axis=-2)
        qk = qk * cosines + paddle.roll(qk, self.head_size // 2, axis=-1) * sines
        q, k = qk.split([self.heads, self.kv_heads], axis=-2)
        return q, k, v

    def fed_forward(self, x, context):
        x = x + self.output(context)  # (..., H)
        gate, up = self.gate_up(norm(x, self.inner_norm)).split(2, axis=-1)  # (..., I)
        return x + self.down(F.silu(gate) * up)


class LlamaModel(nn.Layer):
    """A Llama with its cache."""

    def __init__(self, workload: Workload, weights: Arrays, batch: int, places: int):
        super().__init__()
        model, self.workload = workload.model, workload
        self.embedding = parameter(self, weights[EMBEDDING])
        self.head = self.embedding if model.tied else parameter(self, weights[HEAD])
        blocks = (Block(model, weights, f"model.layers.{i}", batch, places) for i in range(model.layers))
        self.blocks = nn.LayerList(blocks)
        self.last_norm = parameter(self, weights[LAST_NORM])
        for name, table in zip(("cosines", "sines"), model.rotary(np.arange(places)), strict=True):
            self.register_buffer(name, paddle.to_tensor(table, self.embedding.dtype))  # (C, hs)

    def logits(self, x):
        """(B, H) -> (B, V)."""
        return paddle.matmul(norm(x, self.last_norm), self.head, transpose_y=True)

    def read(self, input_ids):
        """A prompt (B, T), int64, into the cache -> logits of the next token (B, V)."""
        length = input_ids.shape[1]
        tables = (table if table.shape[0] == length else table[:length] for table in (self.cosines, self.sines))
        cosines, sines = (table.unsqueeze(1) for table in tables)  # (T, 1, hs)
        future = paddle.triu(paddle.full([length, length], -1e30, "float32"), 1)  # (T, T), 0 where attended
        x = F.embedding(input_ids, self.embedding)  # (B, T, H)
        for block in self.blocks:
            x = block.prefill(x, cosines, sines, future)
        return self.logits(x[:, -1])

    def proceed(self, tokens, place):
        """`tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V)."""
        future = (paddle.arange(self.cosines.shape[0]) > place).astype("float32")  # (C,)
        mask = (future * -1e30).astype(self.cosines.dtype)
        cosines, sines = (paddle.gather(table, place) for table in (self.cosines, self.sines))  # (1, hs)
        x = F.embedding(tokens, self.embedding)  # (B, H)
        for block in self.blocks:
            x = block.decode(x, cosines, sines, place, mask)
        return self.logits(x)

    def cached(self, places) -> dict[str, paddle.Tensor]:
        """What the cache holds at some places (n,): keys and values, (layers, B, nkv, n, hs)."""
        return {
            name: paddle.stack([paddle.gather(getattr(block, name), places, axis=2) for block in self.blocks])
            for name in ("keys", "values")
        }


class Prefill(LlamaModel):
    """Reads a prompt."""

    def forward(self, input_ids):
        """`input_ids` (B, T), int64 -> logits of the next token (B, V)."""
        return self.read(input_ids)

    def restore(self) -> None:
        """A prompt writes all of the cache anew."""

    def compared(self, _) -> dict[str, paddle.Tensor]:
        """The cache after a call on this input, where it is compared."""
        return self.cached(paddle.to_tensor(self.workload.places_compared({"prompt": self.cosines.shape[0]})))


class Decode(LlamaModel):
    """Takes one token after the other."""

    def __init__(self, workload: Workload, weights: Arrays, batch: int, places: int):
        super().__init__(workload, weights, batch, places)
        self.first = []  # what calls write over
        for layer, block in enumerate(self.blocks):
            for cache, name in zip((block.keys, block.values), PAST, strict=True):
                past = paddle.to_tensor(np.array(weights[name][layer]), cache.dtype)  # (nkv, C, hs)
                cache.set_value(past.unsqueeze(0).expand(cache.shape))
                self.first.append((cache, past[:, -STEPS:].clone()))

    def forward(self, tokens, place):
        """`tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V)."""
        return self.proceed(tokens, place)

    def restore(self) -> None:
        """Put back what the cache held before the first call."""
        for cache, first in self.first:
            cache[:, :, -STEPS:] = first

    def compared(self, place) -> dict[str, paddle.Tensor]:
        """The cache after a call on this input, where it is compared."""
        return self.cached(paddle.concat([place - 1, place]))


def parameter(layer: nn.Layer, values: np.ndarray) -> paddle.Tensor:
    """A parameter of `layer` in Paddle's default type with these values."""
    made = layer.create_parameter(list(values.shape))
    made.set_value(paddle.to_tensor(np.ascontiguousarray(values), made.dtype))
    return made


def written(cache, slots, new):
    """The cache with `new` (B, nkv, n, hs) at `slots`, of the same shape, along its places; in place.

    The operator itself: in a program that is captured, the tensor's method of that name makes another tensor.
    """
    return paddle._C_ops.put_along_axis_(cache, slots, new, 2, "assign", True)


def norm(x, weight):
    """RMS normalisation from Paddle's parts, in float32 whatever the dtype: its own operator is a GPU's."""
    wide = x.astype("float32")
    wide = wide * paddle.rsqrt(paddle.mean(paddle.square(wide), axis=-1, keepdim=True) + NORM_EPSILON)
    return wide.astype(x.dtype) * weight


MODELS = {"prefill": Prefill, "decode": Decode, "generate": LlamaModel}
