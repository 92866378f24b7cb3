"""A block of Equinox: attention and an MLP, mapped over the batch."""

import equinox as eqx
import jax
import numpy as np


class Block(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP
    norm: eqx.nn.LayerNorm

    def __init__(self, width, key):
        one, other = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, width, key=one)
        self.mlp = eqx.nn.MLP(width, width, 2 * width, 1, activation=jax.nn.gelu, key=other)
        self.norm = eqx.nn.LayerNorm(width)

    def of_one(self, x):
        y = jax.vmap(self.norm)(x)
        x = x + self.attention(y, y, y)
        return x + jax.vmap(self.mlp)(x)

    def __call__(self, x):
        return jax.vmap(self.of_one)(x)


def model():
    return Block(64, jax.random.key(0))


def inputs(batch_size, seq_len=32):
    return np.random.randn(batch_size, seq_len, 64).astype("float32")
