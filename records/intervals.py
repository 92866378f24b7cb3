"""Intervals over processes that run the same code: their mean, and their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, linear_regression, median

from measurement.statistics import ENOUGH_PROCESSES, Interval, batch_medians, stdev, widening

CONFIDENCE = 0.95
SAME = 1e-9  # on logarithms
CHANCE = 0.005  # probability that scatter alone passes for a change


def quantile(degrees_of_freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the quantile t of Student's distribution, with the share `confidence` between -t and t."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # takes half a second, which most commands avoid

    return float(stdtrit(degrees_of_freedom, (1 + confidence) / 2))


def trend(values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of the least-squares line through three or more values in a row, with its standard error."""
    count, (slope, intercept) = len(values), linear_regression(range(len(values)), values)
    rest = sum((value - intercept - slope * place) ** 2 for place, value in enumerate(values))
    return slope, math.sqrt(rest / (count - 2) / (count * (count**2 - 1) / 12))  # the positions' variance


def correction(processes: int) -> float:
    """Return the factor that widens Student's interval over processes, because their number depends on the interval.

    Processes are added until the interval is narrow enough, so chance agreement ends the run: Student's interval alone
    then covers as little as 90 %. In simulations 1.1 + 0.3 / processes covers 93 to 97 % under every profile's stopping
    rule, and for 3, 5 and 10 processes without it (studies/coverage.py).
    """
    return 1.1 + 0.3 / processes


def student_factor(processes: int) -> float:
    """Return the half-width of the interval over three or more processes, in standard deviations of their medians."""
    return correction(processes) * quantile(processes - 1) / math.sqrt(processes)


def over_processes(processes: Sequence[Sequence[float]]) -> Interval | None:
    """Return the mean of the processes' medians with its 95 % interval; each process has its values in time order.

    For three or more processes it is Student's interval over their medians, widened by `correction`. Kalibera and Jones
    (Rigorous Benchmarking in Reasonable Time, 2013) describe it for a hierarchy of two levels. For one or two processes
    it is the interval within a process, for two widened to include both medians. It does not predict other processes.
    None if neither exists.
    """
    processes = [values for values in processes if values]
    if not processes:
        return None
    count, medians = len(processes), [median(values) for values in processes]
    if count >= ENOUGH_PROCESSES:
        half = student_factor(count) * stdev(medians)
    elif (within := half_width_within(processes)) is not None:
        half = max(within, (max(medians) - min(medians)) / 2)
    else:
        return None
    centre = fmean(medians)
    return Interval(centre, centre - half, centre + half)


def half_width_within(processes: Sequence[Sequence[float]]) -> float | None:
    """Return the half-width of the processes' mean from the scatter within them; None if one has too few values.

    It is computed as in `batch_interval`, with the variance of batches pooled over the processes.
    """
    batches = [batch_medians(values) for values in processes]
    if not all(batches):
        return None
    degrees = sum(len(medians) - 1 for medians in batches)
    variance = sum((len(medians) - 1) * stdev(medians) ** 2 for medians in batches) / degrees
    error = math.sqrt(variance * sum(1 / len(medians) for medians in batches)) / len(processes)
    length = sum(map(len, processes)) / sum(map(len, batches))
    return widening(length) * quantile(degrees) * error


def change_between_halves(samples: Sequence[float], chance: float = CHANCE) -> float:
    """Return the relative difference of the two halves' medians, 0 within scatter, for ten or more samples.

    Two tests use the medians of batches, each with this `chance` that scatter alone passes for a change. The slope of a
    line through the medians detects a trend, and Student's test of the halves detects a step. Both allow for dependent
    batches by the same factor as intervals, `widening`.
    """
    half = len(samples) // 2
    parts = [[math.log(sample) for sample in part] for part in (samples[:half], samples[half:])]
    change = median(parts[1]) - median(parts[0])
    batches = [batch_medians(part) or part for part in parts]
    both = [*batches[0], *batches[1]]
    if max(both) - min(both) < SAME:
        return 0.0
    degrees = len(both) - 2
    variance = sum((len(part) - 1) * stdev(part) ** 2 for part in batches) / degrees
    error = math.sqrt(variance * sum(1 / len(part) for part in batches))
    bound = widening(half / len(batches[0])) * quantile(degrees, 1 - chance)
    step = abs(fmean(batches[1]) - fmean(batches[0])) > bound * error
    slope, slope_error = trend(both)
    return abs(math.expm1(change)) if step or abs(slope) > bound * slope_error else 0.0
