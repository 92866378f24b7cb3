"""Published figures on energy: how it follows time, and how much of it graphs save."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from experiments import tables
from experiments.evidence import Evidence, Records
from experiments.judge import above, between, inconclusive
from experiments.spec import ALL, Answer, Claim, Experiment, Published, Table, all_of
from measurement.statistics import Interval
from records.record import Record
from reports import numbers

ALIKE = 0.95  # a lower rank correlation of energy and time is not the published 0.99
SAVED = 0.73  # the published share of eager mode's energy
SAME = 0.05  # tolerance of equal power
FEWEST = 5  # cells that a correlation needs


def correlation(records: Records) -> Interval | None:
    """Return Spearman's correlation of a call's energy and time over cells, with its 95 % interval; None below five.

    The interval is that of Bonett and Wright (2000), Psychometrika 65, 23-28.
    """
    from scipy.stats import norm, spearmanr  # type: ignore[import-untyped]

    pairs = [(one.energy.value, one.median_ms) for one in records.included if one.energy]
    if len(pairs) < FEWEST:
        return None
    rho = float(spearmanr(*zip(*pairs, strict=True)).statistic)
    if math.isnan(rho):  # all times or energies are equal
        return None
    if abs(rho) > 1 - 1e-9:
        return Interval(rho, rho, rho)
    reach = float(norm.ppf(0.975)) * math.sqrt((1 + rho**2 / 2) / (len(pairs) - 3))
    return Interval(rho, math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach))


def follows_time(evidence: Evidence) -> Answer:
    """Judge whether energy and time rank each machine's cells alike."""
    known = [found for one in evidence.records.by_machine() if (found := correlation(one))]
    if not known:
        return inconclusive(f"no machine measured the energy of {FEWEST} cells")
    return all_of(above("ρ", found, ALIKE) for found in known)


def saves_most(evidence: Evidence) -> Answer:
    """Judge whether a mode saves the published share, by its cell that saves most."""
    savings = [one.energy_saving for one in _graphs(evidence) if one.energy_saving]
    if not savings:
        return inconclusive("no saving of energy was measured at the host's full speed")
    most = max(savings, key=lambda one: one.value)
    return above("eager mode's energy over the graph's, at most", most, 1 / (1 - SAVED), "×")


def falls_with_time(evidence: Evidence) -> Answer:
    """Judge whether graphs draw eager mode's power, so that energy falls by the factor of time."""
    known = [one for one in _graphs(evidence) if one.power_ratio]
    if not known:
        return inconclusive("no power was measured at the host's full speed")
    return all_of(
        between(f"{one.workload} batch {one.batch_size}: power over eager's", one.power_ratio, 1 - SAME, 1 + SAME, "×")
        for one in known
    )


def _graphs(evidence: Evidence) -> list[Record]:
    """Return graphs whose eager mode no slow host lengthened."""
    return [one for one in evidence.records.graph if one.headline]


CLAIMS = (
    Claim("Energy and time of a call rank cells alike (ρ = 0.99).", follows_time, ALL, ("gpu",)),
    Claim("Energy falls by the same factor as time.", falls_with_time, "graph", ("gpu",)),
    Claim("Replayed graphs take up to 73 % less energy.", saves_most, "graph", ("gpu",)),
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


def _joules(record: Record) -> str:
    return record.excluded or (numbers.SLOWED if record.slowed else numbers.estimate(record.energy))


def _factor(figure: Callable[[Record], Interval | None]) -> Callable[[Record], str]:
    """Return a function that shows a figure over eager mode's, or why there is none."""
    return lambda record: tables.omitted(record) or numbers.estimate(figure(record), show=numbers.ratio)


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Energy of a call: how it follows time, and how much graphs save",
    source="arXiv 2402.13640 and 2504.17674",
    claims=CLAIMS,
    tables=make_tables,
    edition=("gpu-energy",),
)
