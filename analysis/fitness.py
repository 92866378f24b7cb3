"""Questions of a self-check and their criteria: from trials with a known result to checks that hold or fail."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from measurement.flags import THREADS_MARGIN
from measurement.sampling import Clocks, Variant, take_sample
from measurement.statistics import Interval
from records.intervals import CONFIDENCE

WITHIN = 0.02  # how far an A/A ratio may be from 1, and another timer's time from ours
NULL_SHARE = 0.001  # of a sample, that the harness may add
PARENT_CORES = 0.01
MISSES_TOO_OFTEN = 0.01  # the chance of so few intervals with the truth at 95 % coverage
FEW = 20  # trials; with fewer, one more miss counts as chance
FINDS = 0.95  # of the trials with a step slowed by 5 % or more exclude 1


@dataclass(frozen=True)
class Trial:
    """One pair measured alternately: the measured ratio, and the true one."""

    framework: str
    question: str  # again, timer, or the share by which the step was slowed
    truth: float
    found: Interval | None

    @property
    def covers(self) -> bool:
        return self.found is not None and self.found.low <= self.truth <= self.found.high

    @property
    def error(self) -> float:
        """Return the estimate's distance from the truth, as a share of it; infinite where there is no estimate."""
        return abs(self.found.value / self.truth - 1) if self.found else math.inf

    @property
    def found_slower(self) -> bool:
        """Return whether the interval shows that the step is slower than the plain one."""
        return self.found is not None and self.found.high < 1

    def to_json(self) -> dict:
        """Return the trial as JSON-ready data, the interval's parts by name."""
        return asdict(self) | {"found": self.found and self.found._asdict()}


@dataclass(frozen=True)
class Check:
    """One check: its rule, whether it holds, and the values for the question and the answer in reports."""

    framework: str
    rule: str
    holds: bool
    values: Mapping[str, Any] = field(default_factory=dict)


def null_overhead() -> tuple[float, float]:
    """Return the seconds that a sample costs in addition to its calls, and those that the harness adds to each call."""
    clocks, samples = Clocks(), 2000
    variant = Variant("null", step=lambda: None, synchronize=lambda output: None)

    def seconds_each(calls: int) -> float:
        variant.calls_per_sample = calls
        start = clocks.wall()
        for _ in range(samples):
            take_sample(variant, clocks)
        return (clocks.wall() - start) / samples

    one, many = seconds_each(1), seconds_each(101)
    per_call = (many - one) / 100
    return one - per_call, per_call


def clock_step() -> float:
    """Return the smallest step seen between two readings of the clock, in seconds."""
    readings = [time.perf_counter() for _ in range(10_000)]
    return min(b - a for a, b in itertools.pairwise(readings) if b > a)


def machine_checks(sample_seconds: float) -> list[Check]:
    """Return the checks of the machine that need no framework."""
    per_sample, per_call = null_overhead()
    step = clock_step()
    cost = {"per_sample_s": per_sample, "sample_s": sample_seconds, "per_call_s": per_call}
    return [
        Check("", "sample cost", per_sample < NULL_SHARE * sample_seconds, cost),
        Check("", "clock", step < 1e-3 * sample_seconds, {"step_s": step}),
    ]


def parent_check(framework: str, cores: float) -> Check:
    """Check that the process waiting for the worker left the processor to it."""
    return Check(framework, "parent", cores < PARENT_CORES, {"cores": cores})


def threads_check(framework: str, threads: int, cores: Sequence[float]) -> Check:
    """Check that the framework kept to its thread setting. `cores` is CPU time over wall time, per trial."""
    busiest = max(cores)
    return Check(framework, "threads", busiest <= threads + THREADS_MARGIN, {"threads": threads, "cores": busiest})


def pooled_checks(trials: Sequence[Trial]) -> list[Check]:
    """Return the same checks over all frameworks together; none for one framework."""
    if len({trial.framework for trial in trials}) < 2:
        return []
    return trial_checks([replace(trial, framework="all") for trial in trials])


def trial_checks(trials: Sequence[Trial]) -> list[Check]:
    """Return the checks of one framework's trials, one or two per question."""
    checks = []
    for question in dict.fromkeys(trial.question for trial in trials):
        same = [trial for trial in trials if trial.question == question]
        near = [trial.error <= WITHIN for trial in same]
        covering = [trial.covers for trial in same]
        if question == "timer":
            checks.append(_check(same, "timer agrees", near, needed(len(same))))
        elif question == "again":
            checks.append(_check(same, "again agrees", near, needed(len(same))))
            checks.append(_check(same, "again covered", covering, must_cover(len(same))))
        else:
            checks.append(_check(same, "delay covered", covering, must_cover(len(same))))
            if float(question) >= 0.05:
                checks.append(_check(same, "delay found", [trial.found_slower for trial in same], needed(len(same))))
    return checks


def _check(trials: Sequence[Trial], rule: str, holds: Sequence[bool], wanted: int) -> Check:
    """Return the check of one question's trials, of which `wanted` must hold."""
    values: dict[str, Any] = {"question": trials[0].question, "truth": trials[0].truth, "held": sum(holds)}
    values["found"] = [(trial.error, trial.found) for trial in trials if trial.found]
    values["trials"] = len(trials)
    return Check(trials[0].framework, rule, sum(holds) >= wanted, values)


def needed(trials: int) -> int:
    """Return how many of the trials must hold: 95 %, less one among fewer than 20, where a single miss is chance."""
    return math.ceil(FINDS * trials) - (1 < trials < FEW)


def must_cover(trials: int) -> int:
    """Return how many intervals must contain the truth, at least one.

    At 95 % coverage each, fewer do so with a chance of at most 1 %.
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]

    return max(1, next(k for k in range(trials + 1) if bdtr(k, trials, CONFIDENCE) > MISSES_TOO_OFTEN))


def reach(trials: Sequence[Trial]) -> float | None:
    """Return how far intervals reached from the truth, as a share of it; None without trials, or without an interval.

    Take the farther end of each trial's interval, of a step against itself and against itself slowed. The result is
    their 95th percentile (nearest rank), the farthest of fewer than 20. The independent timer's trials do not count: it
    measures by other means.
    """
    asked = [trial for trial in trials if trial.question != "timer"]
    known = [(trial.found, trial.truth) for trial in asked if trial.found]
    if not known or len(known) < len(asked):
        return None
    ends = [max(abs(found.low / truth - 1), abs(found.high / truth - 1)) for found, truth in known]
    return sorted(ends)[math.ceil(FINDS * len(ends)) - 1]


def reaches(trials: Sequence[Trial]) -> dict[str, float | None]:
    """Return the reach of each framework's trials."""
    return {name: reach([t for t in trials if t.framework == name]) for name in {t.framework: 0 for t in trials}}
