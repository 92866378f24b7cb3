import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.norm, self.linear = nnx.LayerNorm(16, rngs=rngs), nnx.Linear(16, 16, rngs=rngs)

    def __call__(self, x):
        return x + jax.nn.gelu(self.linear(self.norm(x)))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.blocks = nnx.vmap(Block)(rngs.fork(split=3))

    def __call__(self, x):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def run(block, x):
            return block(x)

        return run(self.blocks, jnp.transpose(x))


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(16, batch_size).astype("float32")
