import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def forward(params, x):
    return jnp.tanh(x @ params["w"]) * jnp.linspace(0.0, 1.0, 16) + jax.random.normal(jax.random.key(1), (16,))


def model():
    return forward, {"w": np.random.randn(16, 16).astype("float32")}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")


def loss(output):
    return (output**2).mean()
