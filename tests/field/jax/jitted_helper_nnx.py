import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

MASK = jnp.asarray(np.tril(np.ones((64, 64))), "float32")


@jax.jit
def masked(x):
    return jnp.tanh(x @ MASK)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.dense, self.doubled = nnx.Linear(64, 64, rngs=rngs), jax.jit(lambda x: x * 2)

    def __call__(self, x):
        return self.doubled(masked(self.dense(x)))


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
