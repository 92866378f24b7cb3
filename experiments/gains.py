"""Tables of published times, eager and compiled: their rows as records, and the figures shown with ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments import tables
from experiments.evidence import Evidence, Records, published, shape_of, speedup_of
from experiments.judge import between, inconclusive
from experiments.spec import PUBLISHED, Answer, Published, Table, all_of
from records.record import Record
from reports import numbers

# Tolerance of a published ratio, for another GPU of the same kind; of a gain, relative to its distance from 1.
ABOUT, OF_GAIN = 0.05, 0.2


def about(times: float) -> tuple[float, float]:
    """Return the limits between which a figure is about the published."""
    return times * (1 - ABOUT), times * (1 + ABOUT)


def about_gain(times: float) -> tuple[float, float]:
    """Return the limits between which a ratio's gain, its distance from 1, is about the published."""
    return 1 + (times - 1) * (1 - OF_GAIN), 1 + (times - 1) * (1 + OF_GAIN)


def published_records(rows: Published) -> list[Record]:
    """Return an eager and a compiled record of each row; without intervals in the sources ratios have no width.

    Columns are `hardware`, `workload`, `batch_size`, `pass`, `parameters`, `eager_ms` and `compiled_ms`.
    """
    records = []
    for row in rows:
        shared: dict[str, Any] = {name: row[name] for name in ("workload", "pass", "parameters")}
        shared |= {"device_name": row["hardware"], "batch_size": int(row["batch_size"])}
        eager, compiled = float(row["eager_ms"]), float(row["compiled_ms"])
        records.append(published(shared | {"mode": "eager", "latency_ms_median": eager}))
        records.append(published(shared | {"mode": "inductor", "latency_ms_median": compiled}, eager / compiled))
    return records


def times_as_fast(low: float, high: float, **criteria) -> Callable[[Evidence], Answer]:
    """Return a check that graphs are from `low` to `high` times as fast as eager wherever `criteria` was measured."""

    def check(evidence: Evidence) -> Answer:
        matching = list(evidence.records.graph.where(**criteria).included)
        if not matching:
            return inconclusive(f"no graph of {', '.join(map(_either, criteria.values()))} was measured")
        return all_of(
            between(f"{named(record)}:", speedup_of(record) or tables.omitted(record), low, high, "×")
            for record in matching
        )

    return check


def _either(wanted: Any) -> str:
    return " or ".join(map(str, wanted)) if isinstance(wanted, tuple) else str(wanted)


def named(record: Record) -> str:
    """Return the workload, its shape, layout and checkpointing, for texts."""
    parts = record.workload, shape_of(record), *map(record.parameter, ("layout", "checkpoint"))
    return " ".join(str(part) for part in parts if part)


def named_with_dtype(record: Record) -> str:
    """Return the same with the dtype."""
    return " ".join(filter(None, (named(record), record.dtype)))


def make_tables(
    evidence: Evidence,
    published: Published,
    axes: Sequence[str],
    as_records: Callable[[Published], list[Record]] = published_records,
) -> list[Table]:
    """Return latencies, and how many times as fast as eager the graphs are, by `axes`.

    `as_records` makes records of published rows that have other columns than `published_records` takes.
    """
    made = []
    theirs = Records(as_records(published))
    for device in dict.fromkeys(record.device_kind for record in evidence.records):
        groups = {PUBLISHED: theirs.on(device), **tables.by_framework(Evidence(evidence.records.on(device)))}
        graphs = {heading: records.graph for heading, records in groups.items()}
        made.append(tables.by_shape(f"Latency in ms (median), {device}", axes, groups, tables.latency))
        made.append(tables.by_shape(f"Times as fast as eager, {device}", axes, graphs, ratio))
    return made


def ratio(record: Record) -> str:
    """Return how many times as fast as eager, with its interval, or why there is no such figure."""
    return tables.omitted(record) or numbers.estimate(speedup_of(record), show=numbers.ratio)
