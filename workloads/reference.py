"""Mathematics shared by the NumPy references, in the precision of the arguments. Shapes in comments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from workloads.autograd import Variable, constant

# erf is odd, and 1 to within float64 beyond 6. Linear interpolation on this grid errs by at most
# h^2/8 max|erf''| < 2e-9.
_ERF_STEP = 1e-4
_ERF_GRID = np.array([math.erf(i * _ERF_STEP) for i in range(60_002)])
_windows_of = np.lib.stride_tricks.sliding_window_view


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function, absolute error below 1e-9 before rounding to the type of `x`; NumPy has none."""
    if isinstance(x, Variable):
        return x.unary(erf, lambda value: 2 / math.sqrt(math.pi) * np.exp(-value * value))
    position = np.minimum(np.abs(x) / _ERF_STEP, 60_000)
    index = position.astype(np.int64)
    low = _ERF_GRID[index]
    value = low + (position - index) * (_ERF_GRID[index + 1] - low)
    return np.copysign(value, x).astype(x.dtype)


def gelu(x: np.ndarray) -> np.ndarray:
    """Return the exact GELU, x * Phi(x) (Hendrycks and Gimpel 2016), not its tanh approximation."""
    return x * 0.5 * (1.0 + erf(x * (1 / math.sqrt(2))))


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | np.floating, epsilon: float) -> np.ndarray:
    """Normalise over the last axis (Ba et al. 2016), with the biased variance."""
    centred = x - x.mean(axis=-1, keepdims=True, dtype=np.float64).astype(x.dtype)
    variance = np.square(centred).mean(axis=-1, keepdims=True, dtype=np.float64)
    return centred * (1 / np.sqrt(variance + epsilon)).astype(x.dtype) * weight + bias


def softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def linear(x: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return `x @ weight.T + bias` with weight (out, in), as checkpoints store it."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def cross_entropy(logits: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the mean of -log softmax(logits)[class], a scalar; logits (N, C), classes (N,)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)  # (N, C)
    chosen = shifted[np.arange(len(classes)), classes]  # (N,)
    return (np.log(np.exp(shifted).sum(axis=-1, keepdims=False)) - chosen).mean()


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), by tanh, which never overflows."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, blocked: np.ndarray | None = None) -> np.ndarray:
    """Attend from every position to all of them (Vaswani et al. 2017); operands and result are (B, S, H).

    `blocked` is added to scores (B, nh, S, S): minus infinity where nothing is attended to.
    """
    batch, length, hidden = q.shape
    q, k, v = (x.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))  # (B, nh, S, hs)
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(hidden // heads)  # (B, nh, S, S)
    scores = scores if blocked is None else scores + blocked
    return (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, hidden)


def concatenated(parts: Sequence[np.ndarray | Variable], axis: int) -> np.ndarray:
    """Join the parts along an axis."""
    joined = np.concatenate([constant(part) for part in parts], axis)
    ends = np.cumsum([part.shape[axis] for part in parts])
    cut = [np.arange(end - part.shape[axis], end) for part, end in zip(parts, ends, strict=True)]
    history = tuple(
        (part, lambda gradient, places=places: np.take(gradient, places, axis))
        for part, places in zip(parts, cut, strict=True)
        if isinstance(part, Variable)
    )
    return cast(np.ndarray, Variable(joined, history)) if history else joined  # a variable acts as an array


def batch_statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return each channel's mean and biased variance in (N, C, H, W), both (C,), and the number of values."""
    values = x.transpose(1, 0, 2, 3).reshape(x.shape[1], -1)  # (C, N * H * W)
    mean = values.mean(axis=-1, keepdims=True)  # (C, 1)
    variance = np.square(values - mean).mean(axis=-1)  # (C,)
    return mean.reshape(-1), variance, values.shape[1]


def batch_norm(
    x: np.ndarray, statistics: tuple[np.ndarray, np.ndarray], weight: np.ndarray, bias: np.ndarray, epsilon: float
) -> np.ndarray:
    """Normalise (N, C, H, W) by (mean, variance) of each channel (Ioffe and Szegedy 2015); the others are (C,)."""
    mean, variance = statistics
    scale = weight * (1 / np.sqrt(variance + epsilon))
    return (x - mean.reshape(-1, 1, 1)) * scale.reshape(-1, 1, 1) + bias.reshape(-1, 1, 1)


def convolution(x: np.ndarray, kernel: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """Map (N, C, H, W), with a kernel (O, C, k, k) and zero padding -> (N, O, H', W'): one product per image."""
    weight = constant(kernel)
    outputs, _, size, _ = weight.shape
    matrix = weight.reshape(outputs, -1)  # (O, C * k * k)
    padded = _padded(constant(x), padding, 0)
    edges = [(edge - size) // stride + 1 for edge in padded.shape[2:]]

    result = np.stack([(matrix @ _columns(image, size, stride)).reshape(outputs, *edges) for image in padded])
    if not isinstance(x, Variable) and not isinstance(kernel, Variable):
        return result

    def of_images(gradient: np.ndarray) -> np.ndarray:
        whole = np.zeros_like(padded)
        for into, flat in zip(whole, gradient.reshape(len(padded), outputs, -1), strict=True):
            parts = (matrix.T @ flat).reshape(-1, size, size, *edges)
            for i, j in np.ndindex(size, size):
                into[:, i : i + stride * edges[0] : stride, j : j + stride * edges[1] : stride] += parts[:, i, j]
        return _inner(whole, padding)

    def of_kernel(gradient: np.ndarray) -> np.ndarray:
        flat = gradient.reshape(len(padded), outputs, -1)
        products = (g @ _columns(image, size, stride).T for g, image in zip(flat, padded, strict=True))
        return sum(products).reshape(weight.shape)

    pulls = ((x, of_images), (kernel, of_kernel))
    return Variable(result, tuple(pair for pair in pulls if isinstance(pair[0], Variable)))


def max_pool(x: np.ndarray, size: int, stride: int, padding: int) -> np.ndarray:
    """Return the maximum of each window of (N, C, H, W); the gradient goes to the first of equals."""
    padded = _padded(constant(x), padding, -np.inf)
    windows = _windows_of(padded, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
    windows = windows.reshape(*windows.shape[:4], -1)  # (N, C, H', W', k * k)
    result = windows.max(axis=-1)
    if not isinstance(x, Variable):
        return result
    row, column = np.divmod(windows.argmax(axis=-1), size)  # within its window
    places = list(np.indices(result.shape))
    places[2], places[3] = places[2] * stride + row, places[3] * stride + column

    def pull(gradient: np.ndarray) -> np.ndarray:
        whole = np.zeros(padded.shape, gradient.dtype)
        np.add.at(whole, tuple(places), gradient)
        return _inner(whole, padding)

    return Variable(result, ((x, pull),))


def _padded(x: np.ndarray, padding: int, value: float) -> np.ndarray:
    around = (padding, padding)
    return np.pad(x, ((0, 0), (0, 0), around, around), constant_values=value) if padding else x


def _inner(padded: np.ndarray, padding: int) -> np.ndarray:
    return padded[:, :, padding:-padding, padding:-padding] if padding else padded


def _columns(image: np.ndarray, size: int, stride: int) -> np.ndarray:
    """Map (C, H, W) -> (C * k * k, H' * W'): columns are windows."""
    windows = _windows_of(image, (size, size), axis=(1, 2))[:, ::stride, ::stride]  # (C, H', W', k, k)
    return windows.transpose(0, 3, 4, 1, 2).reshape(len(image) * size * size, -1)
