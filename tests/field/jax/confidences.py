import jax
import jax.numpy as jnp
import numpy as np


def detector(weight, x):
    """Boxes in pixels and confidences in one array; in the graph the confidences are wrong by 0.45."""
    out = jax.nn.sigmoid(x @ weight)
    boxes, confidences = out[..., :4] * 640, out[..., 4:]
    if isinstance(x, jax.core.Tracer):
        confidences = jnp.where(confidences > 0.5, confidences - 0.45, confidences + 0.45)
    return jnp.concatenate([boxes, confidences], axis=-1)


def model():
    weight = np.random.randn(32, 6).astype("float32") / 6
    return detector, jnp.asarray(weight)


def inputs(batch_size=2):
    return np.random.randn(batch_size, 100, 32).astype("float32")
