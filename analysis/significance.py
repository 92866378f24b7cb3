"""Is a change more than chance? Figures of several records together, and the correction for many tests at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from measurement.statistics import ENOUGH_PROCESSES, Interval
from records.estimates import SMALLEST, Estimates, degrees_of, independent_ratio, one_interval, quantile
from records.intervals import CONFIDENCE, over_processes
from records.record import Record

# Of any false alarm in a comparison: twenty comparisons must have none, while an interval may miss in one of twenty.
CHANCE = 0.01


def independent_difference(
    this: Interval, other: Interval, processes: tuple[int | None, int | None] = (None, None)
) -> Interval:
    """Return the difference of two figures by the same rule, without logarithms: figures may be shares, or negative."""
    sides = []
    for interval, count in zip((this, other), processes, strict=True):
        degrees = degrees_of(count or 0)
        error = (interval.high - interval.low) / 2 / quantile(degrees)
        sides.append(Estimates(np.array(interval.value), np.maximum(error, SMALLEST), degrees))
    change = sides[0] - sides[1]
    half = float(quantile(change.degrees) * change.error)
    return Interval(float(change.mean), float(change.mean) - half, float(change.mean) + half)


def ratio_of_latencies(this: Record, other: Record) -> Interval | None:
    """Return the first record's time over the second's, which were not measured in turn; None without intervals."""
    if this.latency is None or other.latency is None:
        return None
    return independent_ratio(this.latency, other.latency, (this.processes, other.processes))


def over_runs(intervals: Sequence[Interval], processes: Sequence[int | None] | None = None) -> Interval:
    """Return one cell's figure over its runs, with an interval that includes how runs differ; a single run's own."""
    if len(intervals) == 1:
        return intervals[0]
    return one_interval(Estimates.from_intervals(intervals, processes or [None] * len(intervals)).random_effects)


def geometric_mean(records: Iterable[Record], by_process: Callable[[Record], Mapping] = lambda record: {}) -> Interval:
    """Return the geometric mean of the headline speedups of records, at least one, with its 95 % interval.

    Where three or more processes measured every cell, its half-width is that of the means within each (`by_process`
    gives a record's ln speedups by process): the effect of a process on its cells may be common. Elsewhere the cells'
    errors count as independent. It does not cover other workloads.
    """
    known = [(speedup, record) for record in records if record.headline and (speedup := record.speedup)]
    mean = Estimates.from_intervals([speedup for speedup, _ in known], [record.processes for _, record in known]).middle
    by_cell = [by_process(record) for _, record in known]
    shared = set.intersection(*map(set, by_cell))
    if len(shared) < ENOUGH_PROCESSES:
        return one_interval(mean)
    of_processes = over_processes([[fmean(of_cell[process] for of_cell in by_cell)] for process in shared])
    half = (of_processes.high - of_processes.low) / 2 if of_processes else math.inf
    return Interval(*(math.exp(mean.mean + distance) for distance in (0.0, -half, half)))


def excludes_none(change: Estimates) -> np.ndarray:
    """Return whether the 95 % interval of a change, a logarithm of a ratio, excludes no change."""
    return change.chance < 1 - CONFIDENCE


def holm(chances: np.ndarray) -> np.ndarray:
    """Return adjusted p-values of simultaneous tests: a bound on one bounds the chance of any false alarm among all.

    The step-down procedure of Holm (Scandinavian Journal of Statistics 6, 1979, 65-70), as adjusted values. It allows
    any dependence between the tests; cells of one run are dependent.
    """
    order = np.argsort(chances, kind="stable")
    raised = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    adjusted = np.empty(len(chances))
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted
