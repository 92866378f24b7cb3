import dataclasses

import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class MLP:
    """A module that is a pytree, as Equinox has them."""

    weights: list
    activation: str = dataclasses.field(metadata={"static": True}, default="tanh")

    def __call__(self, x):
        for w in self.weights:
            x = getattr(jax.nn, self.activation)(x @ w)
        return x


def model():
    return MLP([jnp.asarray(np.random.randn(128, 128), "float32") / 11 for _ in range(4)])


def inputs(batch_size=8):
    return np.random.randn(batch_size, 128).astype("float32")
