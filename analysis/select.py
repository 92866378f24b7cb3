"""Which records a report is about: those asked for, and of a cell measured again the newest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from measurement.cells import matches
from records.record import FIELDS, Record
from records.shapes import Profile

Entry = TypeVar("Entry", Record, Profile)

# Flag -> column, in the order in which they are asked for.
FLAGS = {
    "framework": "framework",
    "workload": "workload",
    "impl": "implementation",
    "mode": "mode",
    "pass": "pass",
    "dtype": "dtype",
    "device": "device",
}

# What two records of a cell have in common, of which the newer one counts.
_same = attrgetter("machine_id", "cell", "weights", "compile_cache")


def fits(value, words: Sequence[str]) -> bool:
    """Return whether a column's value is one of the words; `gpu` means every GPU."""
    return value in words or str(value).partition(":")[0] in words


def values(records: Iterable[Record | Profile], column: str) -> list[str]:
    """Return what a column holds, each value once; kinds of devices beside the devices."""
    values_there = dict.fromkeys(str(_value(record, column)) for record in records)
    if column == "device":
        values_there |= dict.fromkeys(name.partition(":")[0] for name in list(values_there))
    return list(values_there)


def chosen(
    records: Iterable[Entry], words_by_column: Mapping[str, Sequence[str]], text: str | None = None
) -> list[Entry]:
    """Return records with one of the words in every column, and whose cell contains or matches `text`."""
    kept = list(records)
    for column, words in words_by_column.items():
        kept = [record for record in kept if fits(_value(record, column), words)]
    return [record for record in kept if matches(_value(record, "cell"), text)] if text else kept


def _value(entry: Record | Profile, column: str) -> Any:
    return getattr(entry, FIELDS[column]) if isinstance(entry, Record) else entry.get(column)


def newest(records: Iterable[Record]) -> list[Record]:
    """Return one record of each cell, machine, weights and state of the compile cache: the one that was begun last."""
    latest: dict[tuple, Record] = {}
    for record in records:
        key = _same(record)
        if key not in latest or (record.started_at or "") >= (latest[key].started_at or ""):
            latest[key] = record
    return list(latest.values())
