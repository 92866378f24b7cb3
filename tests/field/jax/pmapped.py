import jax
import numpy as np


def net(w, x):
    for one in w:
        x = x + jax.nn.gelu(x @ one[0]) @ one[1]
        x = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)
    return x


forward = jax.pmap(net, in_axes=(None, 0))


def model():
    """Return layers under pmap on one device, as code for single-host TPUs has them."""
    return forward, np.random.randn(12, 2, 64, 64).astype("float32") / 8


def inputs(batch_size=16):
    return np.random.randn(1, batch_size, 64).astype("float32")
