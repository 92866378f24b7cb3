from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_pytree_node_class
class Gaussian:
    def __init__(self, mean, deviation):
        self.mean, self.deviation = mean, deviation

    def tree_flatten(self):
        return (self.mean, self.deviation), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Output(NamedTuple):
    distribution: Gaussian
    nothing: None
    scale: float


def forward(params, x):
    """The deviation is wrong in the graph."""
    mean = x @ params
    return Output(Gaussian(mean, jnp.abs(mean) + (1.5 if isinstance(x, jax.core.Tracer) else 1.0)), None, 2.0)


def model():
    return forward, np.random.randn(64, 4).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
