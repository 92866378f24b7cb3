import jax.numpy as jnp
import numpy as np


class Rotary:
    def __call__(self, params, x):
        """Keep the angles of the last length in a global and in attributes of the class, which the first call makes."""
        global ANGLES
        cls = type(self)
        if getattr(cls, "length", None) != x.shape[1]:
            cls.length = x.shape[1]
            cls.cos = jnp.cos(jnp.arange(x.shape[1])[:, None] / 10.0)
            ANGLES = jnp.sin(jnp.arange(x.shape[1])[:, None] / 10.0)
        return (x * cls.cos + x[..., ::-1] * ANGLES) @ params


def model():
    return Rotary(), np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, np.random.choice([4, 6]), 8).astype("float32")
