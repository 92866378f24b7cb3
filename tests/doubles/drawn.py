"""Runs drawn from a hierarchy of run, launch and round, which scatter as the samples of measured runs."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from doubles.reported import record

from analysis import changes, paired
from analysis.comparison import Comparison
from analysis.paired import ByProcess
from measurement.statistics import ACROSS_PROCESSES, Interval, log_ratios
from records.intervals import over_processes
from records.record import Record

SCATTER = Path(__file__).with_suffix(".json")
LIKENESS = 0.5  # of neighbouring rounds (lag-1 correlation): 0.46 to 0.49 in recorded series
SHAPES = ((1, 128), (1, 512), (4, 128), (4, 512))


@dataclass(frozen=True)
class Scatter:
    """How a pair of eager mode and a graph scatters, on logarithms: covariance of launches, deviation of rounds."""

    launches: tuple[tuple[float, float], tuple[float, float]]
    rounds: tuple[float, float]


def measured(folder: str) -> list[Scatter]:
    """Return the scatter of each graph of a measured run and its eager mode, from medians of launches."""
    graphs = json.loads(SCATTER.read_text())[folder]
    return [Scatter(tuple(map(tuple, graph["launches"])), tuple(graph["rounds"])) for graph in graphs]


def told(scatter: Sequence[Scatter]) -> dict[str, float]:
    """Medians over the pairs of the deviations between launches (eager, graph, their ratio) and between rounds."""
    between = np.array([one.launches for one in scatter])
    ratio = between[:, 0, 0] + between[:, 1, 1] - 2 * between[:, 0, 1]
    return {
        "eager": float(np.median(np.sqrt(between[:, 0, 0]))),
        "graph": float(np.median(np.sqrt(between[:, 1, 1]))),
        "ratio": float(np.median(np.sqrt(np.maximum(ratio, 0)))),
        "round": float(np.median([one.rounds for one in scatter])),
    }


@dataclass(frozen=True)
class Drawn:
    """A run's records, and its samples as `make ab` reads them."""

    records: list[Record]
    samples: dict[str, ByProcess]


def run(
    draw: np.random.Generator,
    scatter: Sequence[Scatter],
    launches: int,
    rounds: int,
    factors: tuple[float, float] = (1.0, 1.0),
    drift: float = 0.0,
    machine: Iterable[float] | None = None,
) -> Drawn:
    """Four shapes in eager mode and a graph, which scatter as the first of `scatter`; `factors` slow each mode.

    `drift` is the deviation of what the whole run has in common, on logarithms; `machine` instead what each launch has
    of the machine, which a side that takes turns with this one has too.
    """
    common = draw.normal(0, drift)
    of_machine = list(machine) if machine is not None else [0.0] * launches
    rows, samples = [], defaultdict(dict)
    for shape, one in zip(SHAPES, itertools.cycle(scatter)):
        effects = draw.normal(size=(launches, 2)) @ _root(one.launches).T
        modes = []
        for side, (level, factor, deviation) in enumerate(zip((0.02, 0.015), factors, one.rounds, strict=True)):
            centres = math.log(level * factor) + common + np.array(of_machine) + effects[:, side]
            modes.append([(centre + _rounds(draw, deviation, rounds)).tolist() for centre in centres])
        for name, series in zip(("eager", "graph"), modes, strict=True):
            rows.append(_record(name, shape, series, modes[0]))
            samples[rows[-1].cell] = dict(enumerate(series))
    return Drawn(rows, dict(samples))


def _root(covariance: Sequence[Sequence[float]]) -> np.ndarray:
    """Cholesky's factor of a matrix of two rows, also where it is singular."""
    (first, both), (_, second) = covariance
    deviation = math.sqrt(first)
    shared = both / deviation if deviation else 0.0
    return np.array([[deviation, 0.0], [shared, math.sqrt(max(second - shared**2, 0.0))]])


def _rounds(draw: np.random.Generator, deviation: float, count: int) -> np.ndarray:
    """Autoregressive values of order one with this standard deviation."""
    values = draw.normal(0, deviation, count)
    for index in range(1, count):
        values[index] = LIKENESS * values[index - 1] + math.sqrt(1 - LIKENESS**2) * values[index]
    return values


def _record(mode: str, shape: tuple[int, int], series: list[list[float]], eager: list[list[float]]) -> Record:
    """What the suite makes of a cell's launches."""
    latency = over_processes(series).map(lambda value: 1e3 * math.exp(value))
    ratio = over_processes([log_ratios(np.exp(e), np.exp(g)) for e, g in zip(eager, series, strict=True)]).map(math.exp)
    ratio = ratio if mode != "eager" else Interval(1.0, None, None)
    names = ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high")
    names += ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high")
    figures = dict(zip(names, (*latency, *ratio), strict=True))
    return record("alpha", mode, *shape[:1], 128) | figures | {
        "cell": f"alpha/bert/plain/inference/cpu/fp32/threads=2/batch_size={shape[0]},seq_len={shape[1]}/{mode}",
        "launches": len(series), "interval_scope": ACROSS_PROCESSES, "host_loop_ms_median": 0.3,
    }  # fmt: skip


def compared(a: Drawn, b: Drawn) -> Comparison:
    """As `make compare` does."""
    return changes.compare(a.records, b.records)


def compared_in_turn(a: Drawn, b: Drawn) -> Comparison:
    """As `make ab` does."""
    return paired.compare(a.records, b.records, [a.samples, b.samples])
