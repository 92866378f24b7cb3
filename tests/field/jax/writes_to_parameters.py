import jax.numpy as jnp
import numpy as np


def forward(params, x):
    """Move a mean in the dict of parameters, and subtract it."""
    params["mean"] = 0.9 * params["mean"] + 0.1 * x.mean(0)
    return jnp.tanh(x @ params["w"]) - params["mean"]


def model():
    return forward, {"w": np.random.randn(8, 8).astype("float32"), "mean": np.zeros(8, "float32"), "rate": 0.5}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
