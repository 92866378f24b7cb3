import equinox as eqx
import jax
import numpy as np


@eqx.filter_jit
def forward(mlp, x):
    return jax.vmap(mlp)(x)


def model():
    return forward, eqx.nn.MLP(16, 8, 64, 2, key=jax.random.key(0))


def inputs(batch_size=8):
    return np.random.randn(batch_size, 16).astype("float32")
