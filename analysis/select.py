"""The records of a report: those requested, and one of each cell, over all runs that measured it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from analysis.pairs import few_processes, unlike
from analysis.points import grouped
from analysis.significance import over_runs
from measurement.cells import matches
from measurement.statistics import half_width, sign
from records import figures
from records.record import FIELDS, Record
from records.shapes import Profile

Entry = TypeVar("Entry", Record, Profile)

# Flag -> column, in the order of the options.
FLAGS = {
    "framework": "framework",
    "workload": "workload",
    "impl": "implementation",
    "mode": "mode",
    "pass": "pass",
    "dtype": "dtype",
    "device": "device",
}

# Columns that two records of a cell share, of which the newer one is shown.
_same = attrgetter("machine_id", "cell", "weights", "compile_cache")


def fits(value, words: Sequence[str]) -> bool:
    """Return whether a column's value is one of the words; `gpu` means every GPU."""
    return value in words or str(value).partition(":")[0] in words


def values(records: Iterable[Record | Profile], column: str) -> list[str]:
    """Return a column's values, each once; for devices also their kinds."""
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


def combined(records: Iterable[Record]) -> list[Record]:
    """Return one record of each cell, machine, weights and state of the compile cache: the one that was started last.

    Its latency and speedup are over all runs with the newest's versions, model file, conditions (as `make compare`
    requires) and headline state. Their intervals include how runs differ. Runs of fewer than three processes are not
    combined. Everything else is the newest run's, but its break-even, which follows from these figures.
    """
    return [of_cell[0] if len(of_cell) == 1 else _over_runs(of_cell) for of_cell in grouped(records, _same).values()]


def _combinable(record: Record, newest: Record) -> bool:
    same = _state(record) == _state(newest) and unlike(record, newest) is None
    return same and not record.excluded and not few_processes(record)


def _state(record: Record) -> tuple:
    """Return the versions of packages, the model's file and the headline state, which records share to be combined."""
    return record.framework_version, record.versions, _file(record.settings), record.headline


@cache  # a few, over and over
def _file(settings: str | None) -> str | None:
    """Return the digest of the user's model file; None without one."""
    return json.loads(settings).get("file") if settings else None


def _over_runs(of_cell: Sequence[Record]) -> Record:
    *_, newest = sorted(of_cell, key=lambda record: record.started_at or "")
    if newest.excluded or few_processes(newest):
        return newest
    alike = [record for record in of_cell if _combinable(record, newest)]
    if len(alike) == 1:
        return newest
    changes: dict[str, Any] = {"launches": sum(record.processes or 0 for record in alike) or None}
    changes |= dict.fromkeys(("break_even_calls", "break_even_low", "break_even_high"))
    for figure in ("latency", "speedup"):
        found = [(interval, record.processes) for record in alike if (interval := getattr(record, figure))]
        if found:
            interval = over_runs(*zip(*found, strict=True))
            changes |= {**figures.columns(figure, interval), f"{figure}_half_width": half_width(interval)}
            if figure == "speedup":
                changes["sign"] = sign(interval)
    for rate in ("items_per_s", "tokens_per_s"):
        if (value := getattr(newest, rate, None)) and "latency_ms_median" in changes:
            changes[rate] = value * newest.median_ms / changes["latency_ms_median"]
    read = {name: getattr(newest, field) for name, field in FIELDS.items() if hasattr(newest, field)}
    (record,) = Record.from_columns({name: [value] for name, value in (read | changes).items()})
    return record
