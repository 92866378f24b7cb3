"""Processes drawn as machines are: rounds that hang together, processes that differ, and a host of two speeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


def autoregressive(draw: np.random.Generator, shape: tuple[int, ...], coefficient: float) -> np.ndarray:
    """Return stationary values of order one along the last axis, of variance 1."""
    values = draw.normal(size=shape)
    for index in range(1, shape[-1]):
        fresh = math.sqrt(1 - coefficient**2) * values[..., index]
        values[..., index] = coefficient * values[..., index - 1] + fresh
    return values


@dataclass(frozen=True)
class Rounds:
    """How ln ratios scatter: deviation within a process and between processes, lag-1 correlation, rounds a process."""

    within: float
    between: float
    correlation: float
    rounds: int

    def drawn(self, draw: np.random.Generator, trials: int, processes: int) -> np.ndarray:
        """Return ln ratios around 0 by trial, process and round."""
        offsets = draw.normal(0, self.between, (trials, processes, 1))
        return offsets + self.within * autoregressive(draw, (trials, processes, self.rounds), self.correlation)
