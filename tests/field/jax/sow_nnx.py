import jax.numpy as jnp
import numpy as np
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(64, 64, rngs=rngs)

    def __call__(self, x):
        y = jnp.tanh(self.dense(x))
        self.sow(nnx.Intermediate, "hidden", y)
        return y @ self.dense.kernel[...]


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
