"""How often 95 % intervals over processes hold the truth, by the suite's own functions: `python studies/coverage.py`.

Draws processes with fixed seeds (`tests/doubles/scatter.py`) and prints the share of intervals that hold the true ratio
and their median relative half-width: for a given number of processes, and for the stopping rule of each profile, which
adds processes until the half-width is within its target. `--plain` omits the correction, to show what it is for.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles.scatter import Rounds  # noqa: E402

from measurement.statistics import Interval  # noqa: E402
from records import intervals  # noqa: E402

PROCESSES = (3, 5, 10)
WITHIN, BETWEEN = (0.005, 0.02, 0.1), (0.0, 0.02, 0.1)
CORRELATION, ROUNDS = (0.0, 0.3, 0.6), (6, 12, 30)
# Target of the half-width and most processes, from three on, and deviations of processes as shares of the target.
STOPPING = {"quick": (0.10, 5), "standard": (0.05, 10), "rigorous": (0.02, 20)}
SHARES = (0.1, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)


@dataclass
class Count:
    """Intervals of known truth: whether each holds it, its relative half-width, and from how many processes it is."""

    held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)

    def add(self, interval: Interval | None, truth: float, processes: int) -> None:
        """Count the interval of a ratio."""
        if interval is not None:
            self.held.append(interval.low <= truth <= interval.high)
            self.widths.append(interval.relative_half_width)
            self.processes.append(processes)

    @property
    def coverage(self) -> float:
        """Return the share of intervals that hold the truth."""
        return fmean(self.held)

    def __str__(self) -> str:
        return f"{self.coverage:.3f}  ±{median(self.widths):6.1%}  {fmean(self.processes):4.1f} processes"


def ratio(logarithms: Sequence[Sequence[float]]) -> Interval | None:
    """Return the interval of a ratio from ln ratios by process."""
    interval = intervals.over_launches(logarithms)
    return interval.map(math.exp) if interval else None


def fixed(scatter: Rounds, processes: int, trials: int, seed: int) -> Count:
    """Count intervals over so many processes."""
    count = Count()
    for drawn in scatter.drawn(np.random.default_rng(seed), trials, processes).tolist():
        count.add(ratio(drawn), 1.0, processes)
    return count


def stopped(scatter: Rounds, target: float, most: int, trials: int, seed: int) -> Count:
    """Count intervals over processes that are added, from three on, until the half-width is within the target."""
    count = Count()
    for drawn in scatter.drawn(np.random.default_rng(seed), trials, most).tolist():
        medians = [[median(rounds)] for rounds in drawn]
        for processes in range(3, most + 1):
            interval = ratio(medians[:processes])
            if interval is None or interval.relative_half_width <= target:
                break
        count.add(interval, 1.0, processes)
    return count


def rows(trials: int, seed: int) -> Iterator[tuple[str, Count]]:
    """Yield a line for each setting."""
    seeds = itertools.count(seed)
    for within, between, correlation, rounds in itertools.product(WITHIN, BETWEEN, CORRELATION, ROUNDS):
        scatter = Rounds(within, between, correlation, rounds)
        name = f"within {within:5.1%}, between {between:4.0%}, lag-1 {correlation}, {rounds:2} rounds"
        for processes in PROCESSES:
            yield f"{name}, {processes:2} processes", fixed(scatter, processes, trials, next(seeds))
    for name, (target, most) in STOPPING.items():
        for share in SHARES:
            scatter = Rounds(share * target / 2, share * target, 0.3, 12)
            label = f"{name}: until ±{target:.0%} or {most} processes, between {share:.1f} × target"
            yield label, stopped(scatter, target, most, trials, next(seeds))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000, help="intervals of each setting")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="Student's own intervals")
    options = parser.parse_args()
    if options.plain:
        intervals.correction = lambda processes: 1.0
    print(f"{'':<74} coverage, half-width, processes")
    lowest, highest = 1.0, 0.0
    for name, count in rows(options.trials, options.seed):
        print(f"{name:<74} {count}", flush=True)
        lowest, highest = min(lowest, count.coverage), max(highest, count.coverage)
    print(f"Coverage from {lowest:.3f} to {highest:.3f}.")


if __name__ == "__main__":
    main()
