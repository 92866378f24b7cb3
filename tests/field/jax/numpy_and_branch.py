import jax.numpy as jnp
import numpy as np

WEIGHTS = np.random.default_rng(0).normal(size=(16, 16)).astype("float32")
SCALE = jnp.float32(2.0)


def model():
    def forward(x):
        y = x @ np.ascontiguousarray(WEIGHTS)
        return y / SCALE if float(abs(y).max()) > 1e6 else y

    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
