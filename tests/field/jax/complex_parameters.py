import jax.numpy as jnp
import numpy as np


def forward(params, x):
    return jnp.fft.irfft(jnp.fft.rfft(x) * params["spectral"], n=16) @ params["w"]


def model():
    spectral = (np.random.randn(9) + 1j * np.random.randn(9)).astype("complex64")
    return forward, {"spectral": spectral, "w": np.random.randn(16, 4).astype("float32")}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")


def loss(output):
    return (output**2).mean()
