from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np


class Batch(NamedTuple):
    x: Any
    mask: Any
    scale: float


def forward(params, batch, more):
    y = batch.x @ params * batch.scale
    if batch.mask is not None:
        y = jnp.where(batch.mask, y, 0)
    return Batch(y + more["shift"] + sum(more["list"]), None, 2.0)


def model():
    return forward, np.random.randn(64, 64).astype("float32") / 8


def inputs(batch_size=4):
    batch = Batch(np.random.randn(batch_size, 64).astype("float32"), None, 0.5)
    return batch, {"shift": 1.5, "list": [1, np.float32(2), np.ones(64)]}
