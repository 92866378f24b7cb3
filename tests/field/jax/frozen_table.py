import jax.numpy as jnp
import numpy as np

TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(2048, 64)), jnp.float32)
SCALE = jnp.full((64,), 3.0)


def apply(params, ids):
    return (TABLE[ids] * SCALE) @ params["w"]


def model():
    return apply, {"w": np.random.default_rng(1).normal(size=(64, 4)).astype("float32") / 8}


def inputs(batch_size):
    return np.random.randint(0, 2048, batch_size)


def loss(y):
    return (y**2).mean()
