import jax
import numpy as np
from flax import linen


class Net(linen.Module):
    @linen.compact
    def __call__(self, x, train=False):
        return linen.Dense(8)(linen.Dropout(0.5, deterministic=not train)(linen.Dense(32)(x)))


def model():
    return Net()


def inputs(batch_size=4):
    key = jax.random.key(np.random.randint(1000))
    return {"x": np.random.randn(batch_size, 16).astype("float32"), "train": True, "rngs": {"dropout": key}}
