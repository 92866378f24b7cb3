import jax.numpy as jnp
import numpy as np
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        if not hasattr(self, "mask"):
            self.mask = nnx.Variable(jnp.tril(jnp.ones((8, 8))))
        return self.a(x) @ self.mask[...]


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
