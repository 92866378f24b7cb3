"""Published figures on energy: how it follows time, and how much of it graphs save."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

from experiments import gains, tables
from experiments.evidence import Evidence, Records
from experiments.judge import above, inconclusive
from experiments.spec import ALL, Answer, Claim, Experiment, Published, Table, Verdict, all_of
from measurement.statistics import Interval
from records.record import Record
from reports import numbers

ALIKE = 0.95  # a lower rank correlation of energy and time is not the published 0.99
SAVED = 0.73  # the published share of eager mode's energy
REPLAYED = ("inductor-reduce-overhead", "cuda-graph")
FEWEST = 5  # shapes that a correlation needs


def correlation(records: Records) -> Interval | None:
    """Return Spearman's correlation of a call's energy and time over shapes, with its 95 % interval.

    None below `FEWEST` shapes. A shape counts once, by the geometric means of its cells, which are not independent.
    Time is that of the windows of energy, on hosts that slow no cell. The interval is that of Bonett and Wright (2000),
    Psychometrika 65, 23-28. Equal ranks, which have no interval, count as half an exchange of two neighbours.
    """
    from scipy.stats import norm, spearmanr  # type: ignore[import-untyped]

    shapes: dict[str, list[tuple[float, float]]] = {}
    for one in records.included:
        if one.energy and one.power_w and not one.slowed and not one.energy_unchecked:
            cell = (one.energy.value, one.energy.value / one.power_w)
            shapes.setdefault(f"{gains.named(one)} {one.pass_name}", []).append(cell)
    pairs = [tuple(map(geometric_mean, zip(*cells, strict=True))) for cells in shapes.values()]
    if len(pairs) < FEWEST:
        return None
    rho = float(spearmanr(*zip(*pairs, strict=True)).statistic)
    if math.isnan(rho):  # all times or energies are equal
        return None
    most = 1 - 6 / (len(pairs) ** 3 - len(pairs))
    rho = max(-most, min(rho, most))
    reach = float(norm.ppf(0.975)) * math.sqrt((1 + rho**2 / 2) / (len(pairs) - 3))
    return Interval(rho, math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach))


def follows_time(evidence: Evidence) -> Answer:
    """Judge whether energy and time rank each machine's shapes alike."""
    known = [found for one in evidence.records.by_machine() if (found := correlation(one))]
    if not known:
        return inconclusive(f"no machine measured the energy of {FEWEST} shapes")
    return all_of(above("ρ", found, ALIKE) for found in known)


def saves_most(evidence: Evidence) -> Answer:
    """Judge whether replayed graphs save the published share in any cell; a slowed or unchecked one might be it.

    Intervals are those of 95 % for all cells together (Bonferroni), since the largest saving decides.
    """
    cells = [one for one in evidence.records.where(mode=REPLAYED).included if one.energy_saving]
    answers = [
        above(f"{gains.named(one)} {one.mode}:", omitted(one) or jointly(one, len(cells)), 1 / (1 - SAVED), "×")
        for one in cells
    ]
    verdicts = {answer.verdict for answer in answers}
    decided = Verdict.FAILS if verdicts == {Verdict.FAILS} else Verdict.OPEN
    return replace(all_of(answers), verdict=Verdict.HOLDS if Verdict.HOLDS in verdicts else decided)


def jointly(record: Record, count: int) -> Interval | None:
    """Return a cell's saving with an interval that holds together with those of `count` cells."""
    from scipy.stats import t

    if record.energy_saving is None:
        return None
    freedom = max((record.processes or 0) - 1, 1)
    wider = float(t.ppf(1 - 0.025 / count, freedom) / t.ppf(0.975, freedom))
    value, low, high = record.energy_saving
    return Interval(value, value * (low / value) ** wider, value * (high / value) ** wider)


CLAIMS = (
    Claim("Energy and time of a call rank cells alike (ρ = 0.99).", follows_time, ALL, ("gpu",)),
    Claim("Replayed graphs take up to 73 % less energy.", saves_most, ALL, ("gpu",)),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return the published figures, and by shape a call's energy, the factor saved and the power over eager's."""
    axes = ("workload", "batch_size")
    ours = tables.by_framework(evidence)
    graphs = {name: records.graph for name, records in ours.items()}
    rows = tuple((row["source"], row["hardware"], row["figure"], row["value"]) for row in published)
    return [
        Table("As published", ("source", "hardware", "figure", "value"), rows),
        tables.by_shape("Energy of a call in J", axes, ours, _joules),
        tables.by_shape("Eager mode's energy over the graph's", axes, graphs, _factor(lambda one: one.energy_saving)),
        tables.by_shape("Power over eager mode's", axes, graphs, _factor(lambda one: one.power_ratio)),
    ]


def omitted(record: Record) -> str | None:
    """Return why a cell's energy relative to eager mode's is no evidence; None if it is."""
    return tables.omitted(record) or (numbers.UNCHECKED if record.energy_unchecked else None)


def _joules(record: Record) -> str:
    if record.excluded or record.slowed:
        return record.excluded or numbers.SLOWED
    return numbers.UNCHECKED if record.energy_unchecked else numbers.estimate(record.energy)


def _factor(figure: Callable[[Record], Interval | None]) -> Callable[[Record], str]:
    """Return a function that shows a figure over eager mode's, or why there is none."""
    return lambda record: omitted(record) or numbers.estimate(figure(record), show=numbers.ratio)


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Energy of a call: how it follows time, and how much graphs save",
    source="arXiv 2402.13640 and 2504.17674",
    claims=CLAIMS,
    tables=make_tables,
    edition=("gpu-energy",),
)
