"""Predicates that answer from intervals: a claim holds only where the interval shows it.

Every function takes estimates with their 95 % intervals and returns an answer with the numbers behind it, and with the
accepted range. For two figures the interval of their difference decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from analysis.significance import independent_difference, independent_ratio
from experiments.evidence import Records, apart, latency_of, value
from experiments.spec import Answer, Verdict, all_of
from measurement.statistics import Interval
from records.record import Record
from reports.numbers import SLOWED, span, text_of
from reports.numbers import estimate as with_interval

# Process CPU time over wall time has no interval; between these, part of the work used a second thread.
ONE_CORE, TWO_CORES = 1.25, 1.5
# Where other processes kept more than this busy, a second core may not have been available.
OTHERS = 0.25
# Why figures of several machines are not compared.
APART = "measured on several machines, whose figures are not compared"


class Assumed(Interval):
    """A figure of a profile: its spread is assumed, since one run of a few calls has no interval."""

    spread: str

    @classmethod
    def around(cls, value: float, half: float, spread: str) -> Assumed:
        """Return a figure from `half` below to `half` above its value; `spread` is this as text, such as `±20 %`."""
        figure = cls(value, value - half, value + half)
        figure.spread = spread
        return figure


Estimate = Interval | str | None  # if there is none, the reason, or None without an interval
Figure = Callable[[Record], Interval | None]
Processes = tuple[int | None, int | None]  # behind two figures; None where not known


def inconclusive(why: str) -> Answer:
    """Return an answer for missing numbers."""
    return Answer(Verdict.OPEN, why, measured=False)


def _missing(name: str, why: str | None) -> Answer:
    return Answer(Verdict.OPEN, f"{name} …: {why}") if why else inconclusive(f"no interval: {name} …")


def above(name: str, estimate: Estimate, limit: float, unit: str = "") -> Answer:
    """Check that `estimate` is above `limit`."""
    accepted = f"above {text_of(limit)}"
    return _judged(name, estimate, unit, accepted, lambda it: it.low > limit, lambda it: it.high <= limit)


def below(name: str, estimate: Estimate, limit: float, unit: str = "") -> Answer:
    """Check that `estimate` is below `limit`."""
    accepted = f"below {text_of(limit)}"
    return _judged(name, estimate, unit, accepted, lambda it: it.high < limit, lambda it: it.low >= limit)


def between(name: str, estimate: Estimate, low: float, high: float, unit: str = "") -> Answer:
    """Check that `estimate` lies from `low` to `high`: holds if all its interval does, fails if nothing of it does."""
    inside, outside = lambda it: low <= it.low and it.high <= high, lambda it: it.high < low or it.low > high
    return _judged(name, estimate, unit, span(low, high), inside, outside)


Rule = Callable[[Interval], bool]


def _judged(name: str, estimate: Estimate, unit: str, accepted: str, holds: Rule, fails: Rule) -> Answer:
    if not isinstance(estimate, Interval):
        return replace(_missing(name, estimate), accepted=accepted)
    verdict = Verdict.HOLDS if holds(estimate) else Verdict.FAILS if fails(estimate) else Verdict.OPEN
    return Answer(verdict, f"{name} {_shown(estimate, unit)}", accepted=accepted)


def _shown(estimate: Interval, unit: str) -> str:
    if isinstance(estimate, Assumed):
        return f"{text_of(estimate.value)}{unit}, assumed {estimate.spread}"
    return with_interval(estimate, unit)


def greater(
    name: str,
    this: Interval | None,
    other_name: str,
    other: Interval | None,
    unit: str = "",
    processes: Processes = (None, None),
) -> Answer:
    """Check that `this` is greater than `other`."""
    if this is None or other is None:
        return inconclusive(f"{name} against {other_name}: no interval")
    change = independent_difference(this, other, processes)
    verdict = Verdict.HOLDS if change.low > 0 else Verdict.FAILS if change.high < 0 else Verdict.OPEN
    return Answer(verdict, f"{name} {_shown(this, unit)} against {other_name} {_shown(other, unit)}")


def of_several(name: str, *records: Record) -> Answer | None:
    """Return the answer where several machines measured the compared records; None where one did."""
    return _missing(name, APART) if apart(*records) else None


def greater_of(figure: Figure, name: str, this: Record, other_name: str, other: Record, unit: str = "") -> Answer:
    """Check that the figure of `this` is greater than that of `other`."""
    if several := of_several(f"{name} against {other_name}", this, other):
        return several
    return greater(name, figure(this), other_name, figure(other), unit, (this.processes, other.processes))


def grows(name: str, points: Sequence[tuple[str, Interval | None]], unit: str = "") -> Answer:
    """Check that a figure grows along `points`, (label, estimate) in order.

    Holds if the last is above the first and no step is shown to fall; fails if a step is shown to fall.
    """
    known = [(label, estimate) for label, estimate in points if estimate is not None]
    if len(known) < 2:
        return inconclusive(f"{name}: fewer than two points with an interval")
    numbers = f"{name}: " + ", ".join(f"{label} {with_interval(estimate, unit)}" for label, estimate in known)
    estimates = [estimate for _, estimate in known]
    if any(independent_difference(later, earlier).high < 0 for earlier, later in pairwise(estimates)):
        return Answer(Verdict.FAILS, numbers)
    grown = independent_difference(estimates[-1], estimates[0]).low > 0
    return Answer(Verdict.HOLDS if grown else Verdict.OPEN, numbers)


def shrinks(name: str, points: Sequence[tuple[str, Interval | None]], unit: str = "") -> Answer:
    """Check that a figure shrinks along `points`: the reverse of `grows`."""
    turned = [
        (label, estimate and Interval(-estimate.value, -estimate.high, -estimate.low)) for label, estimate in points
    ]
    return Answer(grows(name, turned, unit).verdict, grows(name, points, unit).numbers)


def series_along(records: Records, along: str) -> list[list[Record]]:
    """Return the series for a trend along a column, in its order: two values or more of a machine, else of all."""
    machines = [of_machine.sorted_by(along) for of_machine in records.by_machine() if len(of_machine) > 1]
    return machines or [records.sorted_by(along)] * (len(records) > 1)


def trend_of(judged: Callable, figure: Figure, name: str, records: Sequence[Record], along: str, unit: str) -> Answer:
    """Return the answer of `grows` or `shrinks` on a figure of records that are ordered along a column."""
    if several := of_several(name, *records):
        return several
    if any(record.slowed for record in records):
        return _missing(name, SLOWED)
    label = along.split("_")[0]
    return judged(name, [(f"{label} {value(record, along)}", figure(record)) for record in records], unit)


@dataclass(frozen=True)
class Cores:
    """Number of cores that a cell kept busy, and that other processes meanwhile kept from it."""

    label: str
    busy: float
    others: float = 0.0

    def answer(self, holds: bool, fails: bool, accepted: str) -> Answer:
        verdict = Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN
        note = f" (others {self.others:.2f})" if self.others > OTHERS else ""
        return Answer(verdict, f"{self.label} {self.busy:.2f} cores{note}", accepted=accepted)

    @property
    def used_one_core(self) -> bool:
        """Return whether it used one core although it could have had another."""
        return self.busy < ONE_CORE and self.others <= OTHERS


def used_one_core(points: Iterable[Cores]) -> Answer:
    """Check that everything kept one core busy, by process CPU time over wall time."""
    return all_of(point.answer(point.used_one_core, point.busy > TWO_CORES, f"below {ONE_CORE}") for point in points)


def used_more_cores(points: Iterable[Cores]) -> Answer:
    """Check that everything kept more than one core busy."""
    return all_of(point.answer(point.busy > TWO_CORES, point.used_one_core, f"above {TWO_CORES}") for point in points)


def ratio_of(this: Record | None, other: Record | None, figure: Figure = latency_of) -> Estimate:
    """Return the ratio of a figure of two records of one machine, by default their latency, not measured in pairs."""
    if this is None or other is None:
        return None
    if apart(this, other):
        return APART
    if this.slowed or other.slowed:
        return SLOWED
    mine, theirs = figure(this), figure(other)
    if mine is None or theirs is None:
        return None
    return independent_ratio(mine, theirs, (this.processes, other.processes))
