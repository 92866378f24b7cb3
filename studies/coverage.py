"""How often 95 % intervals over processes hold the truth, by the suite's own functions: `python studies/coverage.py`.

Draws processes with fixed seeds (`tests/doubles/scatter.py`) and prints the share of intervals that hold the true ratio
and their median relative half-width: for a given number of processes; for the stopping rule of each profile, which adds
processes until the half-width is within its target; for ratios of figures that were measured apart; for several runs
of one cell; and for geometric means. `--plain` omits the correction, to show what it is for.
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
from types import SimpleNamespace

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles.reported import record  # noqa: E402
from doubles.scatter import Host, Process, Rounds  # noqa: E402

from analysis.significance import geometric_mean, independent_ratio, over_runs  # noqa: E402
from execution import stopping  # noqa: E402
from measurement import host  # noqa: E402
from measurement.profiles import PROFILES  # noqa: E402
from measurement.statistics import Interval  # noqa: E402
from records import assemble, intervals  # noqa: E402
from records.record import Record  # noqa: E402

PROCESSES = (3, 5, 10)
WITHIN, BETWEEN = (0.005, 0.02, 0.1), (0.0, 0.02, 0.1)
CORRELATION, ROUNDS = (0.0, 0.3, 0.6), (6, 12, 30)
# Target of the half-width and most processes, from three on.
STOPPING = {name: (profile.target_half_width, profile.maximum_processes) for name, profile in PROFILES.items()}
SIDES = ((3, 3), (3, 10), (10, 10))
MINIMUM_ROUNDS = 10  # good ones of a process
ONE_RUN = " 1 runs"
RUNS, BETWEEN_RUNS = (1, 2, 3, 5, 10), (0.0, 0.02, 0.05)
# Deviations of processes as shares of the target.
SHARES = (0.1, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)


@dataclass
class Count:
    """Intervals of known truth: whether each holds it, its relative half-width, and from how many processes it is."""

    held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    open: int = 0  # cells without a headline, for a host that was slow

    def add(self, interval: Interval, truth: float, processes: int) -> None:
        """Count the interval of a ratio."""
        self.held.append(interval.low <= truth <= interval.high)
        self.widths.append(interval.relative_half_width)
        self.processes.append(processes)

    @property
    def coverage(self) -> float:
        """Return the share of intervals that hold the truth."""
        return fmean(self.held) if self.held else math.nan

    def __str__(self) -> str:
        if not self.held:
            return "no headline"
        without = f", {self.open / (self.open + len(self.held)):.0%} without a headline" if self.open else ""
        return f"{self.coverage:.3f}  ±{median(self.widths):6.1%}  {fmean(self.processes):4.1f} processes{without}"


def known(logarithms: Sequence[Sequence[float]]) -> Interval:
    """Return the interval of a ratio from ln ratios by process, three or more."""
    interval = intervals.over_processes(logarithms)
    assert interval is not None
    return interval.map(math.exp)


def fixed(scatter: Rounds, processes: int, trials: int, seed: int) -> Count:
    """Count intervals over so many processes."""
    count = Count()
    for drawn in scatter.drawn(np.random.default_rng(seed), trials, processes).tolist():
        count.add(known(drawn), 1.0, processes)
    return count


def stopped(scatter: Rounds, target: float, most: int, trials: int, seed: int) -> Count:
    """Count intervals over processes that are added, from three on, until the target is met or out of reach."""
    count = Count()
    for drawn in scatter.drawn(np.random.default_rng(seed), trials, most).tolist():
        medians = [[median(rounds)] for rounds in drawn]
        for processes in range(3, most + 1):
            interval = known(medians[:processes])
            width = interval.relative_half_width
            if width <= target or not stopping.can_narrow(width, processes, most, target):
                break
        count.add(interval, 1.0, processes)
    return count


def two_sides(processes: tuple[int, int], deviations: tuple[float, float], trials: int, seed: int) -> Count:
    """Count ratios of two figures that were measured apart, over so many processes that deviate by so much each."""
    draw, count = np.random.default_rng(seed), Count()
    sides = [
        Rounds(deviation / 2, deviation, 0.3, 6).drawn(draw, trials, number).tolist()
        for number, deviation in zip(processes, deviations, strict=True)
    ]
    for one, other in zip(*sides, strict=True):
        count.add(independent_ratio(known(one), known(other), processes), 1.0, sum(processes))
    return count


def several_runs(runs: int, processes: int, deviation: float, trials: int, seed: int) -> Count:
    """Count intervals over runs of three or more processes; runs deviate so much, their processes by 4 %."""
    draw, count = np.random.default_rng(seed), Count()
    levels = draw.normal(0, deviation, (trials, runs, 1, 1))
    drawn = Rounds(0.02, 0.04, 0.3, 6).drawn(draw, trials * runs, processes).reshape(trials, runs, processes, -1)
    for run_by_run in (levels + drawn).tolist():
        count.add(over_runs(list(map(known, run_by_run)), [processes] * runs), 1.0, runs * processes)
    return count


def slow_host(
    of: Host, most: int, target: float, trials: int, seed: int, full_s: float | None = None, gpu: str = ""
) -> Count:
    """Count intervals from samples of a host that is slow at times, as workers take them and records judge them.

    `full_s` is the loop at full speed where the machine is known. Cells flagged `host_slowed` give no headline.
    With `gpu`, calls of eager mode wait for the host, and a graph's do not. The true ratio is then the one on the
    core of the run's fastest process (`gpu="fastest"`), or on a core at full speed (`gpu="full"`).
    """
    draw, count = np.random.default_rng(seed), Count()
    for _ in range(trials):
        known_s, sides = full_s, (SimpleNamespace(reports=[]), SimpleNamespace(reports=[]))
        slowness = math.inf
        for launch, process in enumerate(of.drawn(draw, most, 3 * MINIMUM_ROUNDS)):
            rounds, known_s = _rounds_taken(process, known_s)
            slowness = min(slowness, process.slowness)
            both = (process.eager, process.eager_loops, 1.0), (process.graph, process.graph_loops, 0.1)
            for side, (samples, loops, host_share) in zip(sides, both, strict=True):
                taken = {
                    "samples": samples[:rounds],
                    "host_loop_s": loops[:rounds],
                    "full_speed_s": known_s,
                    "host_s": host_share * median(samples) if gpu else None,
                    "device_s": 1e-3 if gpu else None,
                }
                side.reports.append(SimpleNamespace(**taken, process=launch, worker=""))
            interval, slowed = assemble.speedup(sides[1], sides[0]), assemble.paired(sides[1], sides[0])[1]
            if launch >= 2 and interval and not slowed and interval.relative_half_width <= target:
                break
        if slowed or interval is None:
            count.open += 1
        else:
            count.add(interval, 4.0 * (slowness if gpu == "fastest" else 1.0), launch + 1)
    return count


def _rounds_taken(process: Process, full_s: float | None) -> tuple[int, float | None]:
    """Return after how many rounds a worker stops, with enough good ones or without time, and the full speed known."""
    for rounds in range(MINIMUM_ROUNDS, len(process.eager) + 1):
        known_s = host.full_seconds(process.loops[: 2 * rounds + 1], full_s)
        turns = (host.good_turns(loops, rounds, known_s) for loops in (process.eager_loops, process.graph_loops))
        if sum(map(all, zip(*turns, strict=True))) >= MINIMUM_ROUNDS:
            break
    return rounds, known_s


def means(processes: int, likeness: float, trials: int, seed: int) -> Count:
    """Count geometric means over eight cells that share processes, whose medians correlate so much between cells."""
    draw, count = np.random.default_rng(seed), Count()
    common = math.sqrt(likeness) * draw.normal(size=(trials, 1, processes))
    own = math.sqrt(1 - likeness) * draw.normal(size=(trials, 8, processes))
    for cells in (0.05 * (common + own)).tolist():
        records = {_record([[value] for value in cell]): dict(enumerate(cell)) for cell in cells}
        count.add(geometric_mean(records, records.get), 1.0, processes)
    return count


def _record(logarithms: list[list[float]]) -> Record:
    speedup = known(logarithms)
    names = ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high")
    return record("alpha", "graph", launches=len(logarithms), **dict(zip(names, speedup, strict=True)))


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
    for processes, deviations in itertools.product(SIDES, ((0.03, 0.03), (0.03, 0.1), (0.1, 0.03))):
        between = " and ".join(f"{deviation:.0%}" for deviation in deviations)
        label = f"measured apart, {processes[0]} and {processes[1]} processes, between {between}"
        yield label, two_sides(processes, deviations, trials, next(seeds))
    for deviation, number, runs in itertools.product(BETWEEN_RUNS, (3, 6), RUNS):
        label = f"{runs:2} runs of {number} processes, runs deviate by {deviation:.0%}"
        yield label, several_runs(runs, number, deviation, trials, next(seeds))
    for share, spell, known_s in itertools.product((0.1, 0.3, 0.5), (2, 10, 60), (None, 3.1e-4)):
        known = "known machine" if known_s else "first run on a machine"
        for processes, target in ((3, 0.0), (5, 0.0), (10, 0.0), (10, 0.05)):
            label = f"slow {share:.0%} in spells of {spell:2} turns, {known}, {processes:2} processes" + " or ±5 %" * (
                target > 0
            )
            yield label, slow_host(Host(share, spell), processes, target, trials // 10, next(seeds), known_s)
    for share, clock, truth in itertools.product((0.1, 0.5), (0.0, 0.05, 0.1), ("fastest", "full")):
        for processes, target in ((3, 0.0), (5, 0.0), (10, 0.0), (10, 0.05)):
            until = " or ±5 %" * (target > 0)
            label = f"GPU, slow {share:.0%}, clocks {clock:.0%}, {processes:2} processes{until}, {truth} core"
            yield (
                label,
                slow_host(Host(share, 10, clock=clock), processes, target, trials // 10, next(seeds), gpu=truth),
            )
    for processes, likeness in itertools.product(PROCESSES, (0.0, 0.6, 0.8)):
        label = f"geometric mean of 8 cells, {processes} processes, correlation {likeness}"
        yield label, means(processes, likeness, trials // 4, next(seeds))


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
    found = []
    for name, count in rows(options.trials, options.seed):
        print(f"{name:<74} {count}", flush=True)
        if not name.startswith(ONE_RUN):
            found.append(count.coverage)
    print(f"Coverage from {min(found):.3f} to {max(found):.3f}, except of one run: it cannot know how runs deviate.")


if __name__ == "__main__":
    main()
