"""Convolution, pooling and batch norm on images of either layout."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.jax.models.layers import tree
from workloads.images import pixels
from workloads.spec import Arrays

# By layout: what `conv_general_dilated` calls the axes of input, kernel and output; a kernel's axes from (O, I, k, k).
AXES = {"nchw": ("NCHW", "OIHW", "NCHW"), "nhwc": ("NHWC", "HWIO", "NHWC")}
KERNELS = {"nchw": (0, 1, 2, 3), "nhwc": (2, 3, 1, 0)}


def params_of(weights: Arrays, load: Callable, layout: str) -> dict:
    """Return the tree of weights, with kernels in the order of axes that the layout's convolutions take."""
    axes = KERNELS[layout]
    return tree({name: w.transpose(axes) if w.ndim == 4 else w for name, w in weights.items()}, load)


def convolution(layout: str, kernel: jax.Array, x: jax.Array, stride: int, padding: int) -> jax.Array:
    around = [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), around, dimension_numbers=AXES[layout])


def max_pool(layout: str, x: jax.Array, size: int, stride: int, padding: int) -> jax.Array:
    def over_pixels(pixels, others) -> tuple:
        return (others, others, pixels, pixels) if layout == "nchw" else (others, pixels, pixels, others)

    lowest = np.array(-np.inf, x.dtype)  # NumPy's, which is compared without an operator of JAX
    sizes, strides = over_pixels(size, 1), over_pixels(stride, 1)
    return jax.lax.reduce_window(x, lowest, jax.lax.max, sizes, strides, over_pixels((padding, padding), (0, 0)))


def batch_norm(layout: str, p: dict, x: jax.Array, mean: jax.Array, variance: jax.Array, epsilon: float) -> jax.Array:
    """Normalise `x` by the statistics of each channel (C,), in fp32 whatever the dtype, as others' operators do."""
    scale = p["weight"].astype(jnp.float32) * jax.lax.rsqrt(variance.astype(jnp.float32) + epsilon)  # (C,)
    offset = p["bias"].astype(jnp.float32) - mean.astype(jnp.float32) * scale
    if layout == "nchw":
        scale, offset = scale[:, None, None], offset[:, None, None]
    return (x.astype(jnp.float32) * scale + offset).astype(x.dtype)


def batch_statistics(layout: str, x: jax.Array) -> tuple[jax.Array, jax.Array, int]:
    """Return mean and biased variance of each channel, both (C,) in fp32, and of how many values they are."""
    axes = (0, *pixels(layout))
    wide = x.astype(jnp.float32)
    return wide.mean(axes), wide.var(axes), x.size // x.shape[1 if layout == "nchw" else 3]
