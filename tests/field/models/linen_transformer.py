"""A causal transformer in Flax Linen."""

import numpy as np
from flax import linen as nn


class Transformer(nn.Module):
    width: int = 64
    layers: int = 2
    vocabulary: int = 1000

    @nn.compact
    def __call__(self, ids):
        embedding = nn.Embed(self.vocabulary, self.width)
        x = embedding(ids)
        mask = nn.make_causal_mask(ids)
        for _ in range(self.layers):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x), mask=mask)
            y = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
            x = x + nn.Dense(self.width)(y)
        return embedding.attend(nn.LayerNorm()(x))


def model():
    return Transformer()


def inputs(batch_size, seq_len=32):
    return np.random.randint(0, 1000, (batch_size, seq_len))
