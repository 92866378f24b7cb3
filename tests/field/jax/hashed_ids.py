import jax.numpy as jnp
import numpy as np

BUCKETS = 256


def forward(params, ids):
    """Embed pairs of ids by their hash."""
    pairs = jnp.stack([ids[:, :-1], ids[:, 1:]], -1)
    buckets = jnp.abs((pairs * (1000003 * jnp.arange(1, 3)) * 31).sum(-1)) % BUCKETS
    return params["table"][buckets] @ params["w"]


def model():
    return forward, {"table": np.random.randn(BUCKETS, 8).astype("float32"), "w": np.eye(8, dtype="float32")}


def inputs(batch_size=4):
    return np.random.randint(0, 50000, (batch_size, 16))
