import jax.numpy as jnp
import numpy as np

WINDOW = np.hanning(18)[1:-1].astype("float32")
GAINS = np.linspace(1, 2, 4).astype("float32")


def forward(params, x):
    """Prepare a window in NumPy, and read a table's values in Python."""
    window = WINDOW / WINDOW.sum()
    for number in range(len(GAINS)):
        x = x * GAINS[number] if isinstance(GAINS, np.ndarray) else jnp.sin(x)
    return (x * window) @ params


def model():
    return forward, np.random.randn(16, 4).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
