import jax
import jax.numpy as jnp
import numpy as np


def step(params, x, cache):
    """Write to the cache, and return logits alone."""
    cache["k"] = jax.lax.dynamic_update_slice(cache["k"], (x @ params["k"])[:, None], (0, 3, 0))
    scores = jax.nn.softmax(jnp.einsum("bd,btd->bt", x @ params["q"], cache["k"]) / 4)
    return jnp.einsum("bt,btd->bd", scores, cache["k"])


def model():
    return step, {name: np.random.randn(16, 16).astype("float32") / 4 for name in ("k", "q")}


def inputs(batch_size=2):
    x, keys = np.random.randn(batch_size, 16), np.random.randn(batch_size, 8, 16)
    return {"x": x.astype("float32"), "cache": {"k": keys.astype("float32")}}
