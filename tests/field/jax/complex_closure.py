import jax.numpy as jnp
import numpy as np

DRAWN = np.random.default_rng(0)
SPECTRAL = jnp.asarray(DRAWN.normal(size=9) + 1j * DRAWN.normal(size=9), "complex64")
W = jnp.asarray(DRAWN.normal(size=(16, 4)), "float32")


def forward(x):
    return jnp.fft.irfft(jnp.fft.rfft(x) * SPECTRAL, n=16) @ W


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")


def loss(output):
    return (output**2).mean()
