"""Processes drawn as machines are: rounds that hang together, processes that differ, and a host of two speeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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


SUBSTEPS = 4  # of a turn, between which the host may change


@dataclass(frozen=True)
class Host:
    """A host whose core is slow for a share of the time, in spells of so many turns; eager mode takes twice as long.

    `clock` is the deviation of the core's speed between processes, which is at most the full speed.
    """

    slow_share: float
    spell: float
    within: float = 0.02
    between: float = 0.02
    clock: float = 0.0

    def drawn(self, draw: np.random.Generator, processes: int, rounds: int) -> list[Process]:
        """Return processes in which eager mode takes 4 ms and a graph 1 ms on a core at full speed."""
        slow = self._states(draw, processes, 2 * rounds * SUBSTEPS + 1)
        loops = 3e-4 * np.where(slow[:, ::SUBSTEPS], 1.9, 1.0)
        clocks = np.exp(self.clock * np.abs(draw.normal(size=(processes, 1))))
        loops = loops * clocks * np.exp(0.03 * np.abs(draw.normal(size=loops.shape)))
        shares = slow[:, :-1].reshape(processes, rounds, 2, SUBSTEPS).mean(-1)
        controls = np.maximum(loops[:, :-1], loops[:, 1:]).reshape(processes, rounds, 2)
        flipped = draw.random((processes, rounds, 1)) < 0.5  # which mode comes first
        shares, controls = (np.where(flipped, part[..., ::-1], part) for part in (shares, controls))
        rounds_of = autoregressive(draw, (2, processes, rounds), 0.3) * self.within
        offsets = draw.normal(0, self.between, (processes, 1))
        eager = 4e-3 * np.exp(offsets + rounds_of[0]) * (1 + shares[..., 0]) * clocks
        graph = 1e-3 * np.exp(rounds_of[1])
        return [
            Process(*(part.tolist() for part in parts))
            for parts in zip(eager, graph, controls[..., 0], controls[..., 1], loops, clocks[:, 0], strict=True)
        ]

    def _states(self, draw: np.random.Generator, processes: int, steps: int) -> np.ndarray:
        """Return whether the core is slow, by process and step."""
        leave = 1 / (self.spell * SUBSTEPS)
        enter = leave * self.slow_share / (1 - self.slow_share)
        slow, chances = np.empty((processes, steps), bool), draw.random((processes, steps))
        slow[:, 0] = chances[:, 0] < self.slow_share
        for step in range(1, steps):
            slow[:, step] = np.where(slow[:, step - 1], chances[:, step] >= leave, chances[:, step] < enter)
        return slow


class Process(NamedTuple):
    """Seconds of each turn of two modes, the slower of the host's loops around each, all loops, the core's slowness.

    `slowness` is the core's time over that at full speed, outside slow spells.
    """

    eager: list[float]
    graph: list[float]
    eager_loops: list[float]
    graph_loops: list[float]
    loops: list[float]
    slowness: float
