"""Mathematics shared by the NumPy oracles, in the precision of what goes in. Shapes in comments."""

from __future__ import annotations

import math

import numpy as np

from workloads.autograd import Variable

# erf is odd, and 1 to within float64 beyond 6. Linear interpolation on this grid errs by at most
# h^2/8 max|erf''| < 2e-9.
_ERF_STEP = 1e-4
_ERF_GRID = np.array([math.erf(i * _ERF_STEP) for i in range(60_002)])


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, absolute error below 1e-9 before rounding to the type of `x`. NumPy has none of its own."""
    if isinstance(x, Variable):
        return x.unary(erf, lambda value: 2 / math.sqrt(math.pi) * np.exp(-value * value))
    position = np.minimum(np.abs(x) / _ERF_STEP, 60_000)
    index = position.astype(np.int64)
    low = _ERF_GRID[index]
    value = low + (position - index) * (_ERF_GRID[index + 1] - low)
    return np.copysign(value, x).astype(x.dtype)


def gelu(x: np.ndarray) -> np.ndarray:
    """The exact GELU, x * Phi(x) (Hendrycks and Gimpel 2016), not its tanh approximation."""
    return x * 0.5 * (1.0 + erf(x * (1 / math.sqrt(2))))


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float) -> np.ndarray:
    """Layer normalisation over the last axis (Ba et al. 2016), with the biased variance."""
    centred = x - x.mean(axis=-1, keepdims=True, dtype=np.float64).astype(x.dtype)
    variance = np.square(centred).mean(axis=-1, keepdims=True, dtype=np.float64)
    return centred * (1 / np.sqrt(variance + epsilon)).astype(x.dtype) * weight + bias


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def linear(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    """`x @ weight.T + bias` with weight (out, in), as checkpoints store it."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def cross_entropy(logits: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The mean of -log softmax(logits)[class]; logits (N, C), classes (N,) -> a scalar."""
    shifted = logits - logits.max(axis=-1, keepdims=True)  # (N, C)
    chosen = shifted[np.arange(len(classes)), classes]  # (N,)
    return (np.log(np.exp(shifted).sum(axis=-1, keepdims=False)) - chosen).mean()
