"""Models with a static cache in buffers, for any kind of block: attention, and the passes' layers."""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from frameworks.paddle.models import matrices
from measurement.cells import Cell
from workloads.causal import Causal
from workloads.decode import PAST, STEPS
from workloads.matrices import MATMUL, NONE
from workloads.spec import Arrays, Workload


class Block(nn.Layer):
    """Causal self-attention over a cache. `projected` and `fed_forward` are those of a kind of model.

    A cache is keys and values, (B, nkv, C, hs) each, which calls write to in place: those in buffers, or others.
    """

    def __init__(self, model: Causal, batch: int, places: int):
        super().__init__()
        self.heads, self.kv_heads, self.head_size = model.heads, model.kv_heads, model.head_size
        for name in ("keys", "values"):
            self.register_buffer(name, paddle.zeros([batch, self.kv_heads, places, self.head_size]))

    def linear(self, weights: Arrays, *names: str, quant: str = NONE, form: str = MATMUL) -> nn.Layer:
        """Return a layer of the matrices of these names, one after the other, as Paddle has them: (in, out)."""
        values = np.concatenate([weights[f"{name}.weight"] for name in names]).T
        if (quant, form) != (NONE, MATMUL):
            return matrices.Linear(values.T, quant, form)
        made = nn.Linear(*values.shape, bias_attr=False)
        made.weight.set_value(paddle.to_tensor(np.ascontiguousarray(values), made.weight.dtype))
        return made

    def projected(self, x, turn):
        """Map (..., H) -> queries (..., nh, hs), keys and values (..., nkv, hs)."""
        raise NotImplementedError

    def fed_forward(self, x, context):
        """Map states and attention's context, (..., H) -> the block's states."""
        raise NotImplementedError

    def decode(self, x, turn, place, mask, cache):
        """Map states (B, H) of a token at `place` (1,) -> the block's; `mask` (C,) is added to scores."""
        q, k, v = self.projected(x, turn)  # (B, nh, hs), (B, nkv, hs) twice
        slots = place.reshape([1, 1, 1, 1]).expand([x.shape[0], self.kv_heads, 1, self.head_size])
        keys, values = written(cache[0], slots, k.unsqueeze(2)), written(cache[1], slots, v.unsqueeze(2))
        q = q.reshape([0, self.kv_heads, -1, self.head_size]) * self.head_size**-0.5
        scores = paddle.matmul(q, keys, transpose_y=True) + mask  # (B, nkv, nh / nkv, C)
        context = paddle.matmul(F.softmax(scores), values)  # (B, nkv, nh / nkv, hs)
        return self.fed_forward(x, context.reshape([0, -1]))

    def prefill(self, x, turn, future, cache):
        """Return states (B, T, H) of prompts, each of which fills the cache; `future` (T, T) is added to scores."""
        q, k, v = (y.transpose([0, 2, 1, 3]) for y in self.projected(x, turn))  # (B, n, T, hs)
        length = x.shape[1]
        for kept, new in ((cache[0], k), (cache[1], v)):
            if kept.shape[2] == length:
                paddle.assign(new, kept)
            else:
                written(kept, paddle.arange(length).reshape([1, 1, -1, 1]).expand(new.shape), new)
        q = q.reshape([0, self.kv_heads, -1, self.head_size]) * self.head_size**-0.5
        scores = paddle.matmul(q, k, transpose_y=True).reshape([0, self.kv_heads, -1, length, length])
        shares = F.softmax(scores + future.astype(scores.dtype)).reshape([0, self.kv_heads, -1, length])
        context = paddle.matmul(shares, v).reshape([0, self.heads, length, self.head_size])
        return self.fed_forward(x, context.transpose([0, 2, 1, 3]).reshape([0, 0, -1]))


class CausalModel(nn.Layer):
    """Blocks between a kind of model's embeddings and its logits, each with its cache."""

    def __init__(self, places: int):
        super().__init__()
        self.places = places

    def embedded(self, ids, place):
        """Map tokens (B,) at a place (1,), or prompts (B, T) where it is None -> states (..., H), heads' turns."""
        raise NotImplementedError

    def logits(self, x):
        """Map (B, H) -> (B, V)."""
        raise NotImplementedError

    def buffered(self) -> list[tuple]:
        """Return the cache in buffers: keys and values of each layer."""
        return [(block.keys, block.values) for block in self.blocks]

    def read(self, input_ids, cache):
        """Map a prompt (B, T), int64, into the cache -> logits of the next token (B, V)."""
        length = input_ids.shape[1]
        future = paddle.triu(paddle.full([length, length], -1e30, "float32"), 1)  # (T, T), 0 where attended
        x, turn = self.embedded(input_ids, None)  # (B, T, H)
        for block, kept in zip(self.blocks, cache):  # noqa: B905 (to_static's translation of zip has no strict)
            x = block.prefill(x, turn, future, kept)
        return self.logits(x[:, -1])

    def proceed(self, tokens, place, cache):
        """Map `tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V), by the static cache."""
        x, turn = self.embedded(tokens, place)  # (B, H)
        future = (paddle.arange(self.places) > place).astype("float32")  # (C,)
        mask = (future * -1e30).astype(x.dtype)
        for block, kept in zip(self.blocks, cache):  # noqa: B905 (as above)
            x = block.decode(x, turn, place, mask, kept)
        return self.logits(x)

    def forward(self, ids, place=None, cache=None):
        """Run prefill, which takes no place, or decode; on the cache in buffers unless one is given."""
        cache = self.buffered() if cache is None else cache
        return self.read(ids, cache) if place is None else self.proceed(ids, place, cache)


class Cache:
    """A model's cache in buffers, without the model: an exported program has its own weights.

    For `decode` it begins with the past that `weights` hold.
    """

    def __init__(self, model: CausalModel, workload: Workload, cell: Cell, weights: Arrays):
        self.layers, self._first = model.buffered(), []
        self._workload, self._cell = workload, cell
        for layer, pair in enumerate(self.layers if cell.pass_name == "decode" else []):
            for tensor, name in zip(pair, PAST, strict=True):
                past = paddle.to_tensor(np.array(weights[name][layer]), tensor.dtype)  # (nkv, C, hs)
                tensor.set_value(past.unsqueeze(0).expand(tensor.shape))
                self._first.append((tensor, past[:, -STEPS:].clone()))  # what calls overwrite

    def restore(self) -> None:
        """Restore the cache's contents from before the first call; a prompt writes all of it again."""
        for tensor, first in self._first:
            tensor[:, :, -STEPS:] = first

    def compared(self, last) -> dict[str, paddle.Tensor]:
        """Return the compared places of the cache after a call with this last input: (layers, B, nkv, n, hs)."""
        if self._cell.pass_name == "decode":
            places = paddle.concat([last - 1, last])
        else:
            places = paddle.to_tensor(self._workload.places_compared(dict(self._cell.parameters)))
        sides = zip(("keys", "values"), zip(*self.layers, strict=True), strict=True)
        return {name: paddle.stack([paddle.gather(t, places, axis=2) for t in tensors]) for name, tensors in sides}


def parameter(layer: nn.Layer, values: np.ndarray) -> paddle.Tensor:
    """Return a parameter of `layer` in Paddle's default type with these values."""
    made = layer.create_parameter(list(values.shape))
    made.set_value(paddle.to_tensor(np.ascontiguousarray(values), made.dtype))
    return made


def written(cache, slots, new):
    """Return the cache with `new` (B, nkv, n, hs) at `slots`, of the same shape, along its places; in place.

    The operator itself: in a program that is captured, the tensor's method of that name makes another tensor.
    """
    return paddle._C_ops.put_along_axis_(cache, slots, new, 2, "assign", True)
