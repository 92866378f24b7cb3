import jax
import numpy as np


def hashed(x):
    """Whole numbers of 30 bits; the graph's are one too large."""
    return x * 3 + (1 if isinstance(x, jax.core.Tracer) else 0)


def model():
    return hashed


def inputs(batch_size=64):
    return np.random.randint(2**27, 2**28, (batch_size,)).astype("int32")
