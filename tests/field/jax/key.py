import jax
import jax.numpy as jnp
import numpy as np


def forward(params, x, keys):
    """Dropout and noise with keys that come in, and the next key goes out."""
    key, ours = jax.random.split(keys["dropout"])
    keep = jax.random.bernoulli(ours, 0.9, x.shape)
    return jnp.where(keep, x @ params / 0.9, 0.0) + jax.random.normal(keys["noise"], x.shape), key


def model():
    return forward, np.random.randn(16, 16).astype("float32")


def inputs(batch_size=8):
    keys = {"dropout": jax.random.key(7), "noise": jax.random.PRNGKey(8)}
    return {"x": np.random.randn(batch_size, 16).astype("float32"), "keys": keys}
