"""Tables of an experiment: shapes down, frameworks and modes across, with the published figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.evidence import Evidence, Records, gain_of, value
from experiments.spec import Table
from records.record import Record
from reports.numbers import SLOWED, estimate, marked, text_of


def latency(record: Record) -> str:
    """Return the median latency in milliseconds, marked if a slow host limits it, or why it is excluded."""
    return record.excluded or marked(text_of(record.latency_ms_median), record.slowed)


def rate(record: Record) -> str:
    """Return items per second, marked if a slow host limits them, or why the record is excluded."""
    return record.excluded or marked(text_of(record.items_per_s), record.slowed)


def column(name: str) -> Callable[[Record], str]:
    """Return a function that shows a column of records, to three digits; of excluded ones the reason."""

    def show(record: Record) -> str:
        return record.excluded or text_of(value(record, name))

    return show


def omitted(record: Record) -> str | None:
    """Return why a table shows no speedup of a cell; None if it does."""
    return record.excluded or (None if record.headline else SLOWED)


def gain(record: Record) -> str:
    """Return the gain over eager in percent with its interval, or why there is no such figure."""
    return omitted(record) or estimate(gain_of(record))


def by_shape(
    title: str,
    axes: Sequence[str],
    groups: dict[str, Records],
    show: Callable[[Record], str],
) -> Table:
    """Return one row for each combination of `axes` that any of `groups` has; a column for each mode of each group.

    `groups` maps a heading (`as published`, a framework's name) to records that differ in `axes`, mode and machine
    only; where several measured the same, each has its figure, after the beginning of its machine's name, or the
    device of a published one.
    """
    columns = [
        (heading, mode)
        for heading, records in groups.items()
        for mode in dict.fromkeys(record.mode for record in records)
    ]
    everything = [record for records in groups.values() for record in records]
    keys = sorted({tuple(value(record, axis) for axis in axes) for record in everything}, key=_key)
    rows = []
    for key in keys:
        values = dict(zip(axes, key, strict=True))
        shown = [list(groups[heading].where(mode=mode, **values)) for heading, mode in columns]
        rows.append((*("" if part is None else str(part) for part in key), *(_shown(found, show) for found in shown)))
    return Table(title, (*axes, *(f"{heading} {mode}" for heading, mode in columns)), tuple(rows))


def _shown(found: list[Record], show: Callable[[Record], str]) -> str:
    """Return the figures of a shape and mode as text: of one record the figure alone."""
    if len(found) < 2:
        return "".join(map(show, found))
    named = (((one.machine_id or "")[:4] or one.device_name, show(one)) for one in found)
    return "; ".join(f"{name}: {figure}" for name, figure in named if figure)


def _key(key: tuple) -> tuple:
    return tuple((part is None, part) for part in key)


def by_framework(evidence: Evidence) -> dict[str, Records]:
    """Return the records of each framework, in the order of first appearance."""
    names = dict.fromkeys(record.framework for record in evidence.records)
    return {name: evidence.records.where(framework=name) for name in names}
