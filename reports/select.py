"""Which records a report is about: those asked for, and of a cell measured again the newest."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from measurement.schema import Record

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
_SAME = ("machine_id", "cell", "weights", "compile_cache")


def fits(value, words: Sequence[str]) -> bool:
    """Whether a column's value is one of the words; `gpu` means every GPU."""
    return value in words or str(value).partition(":")[0] in words


def values(records: Iterable[Record], column: str) -> list[str]:
    """Return what a column holds, each value once; kinds of devices beside the devices."""
    values_there = dict.fromkeys(str(record.get(column)) for record in records)
    if column == "device":
        values_there |= dict.fromkeys(name.partition(":")[0] for name in list(values_there))
    return list(values_there)


def chosen(
    records: Iterable[Record], words_by_column: Mapping[str, Sequence[str]], text: str | None = None
) -> list[Record]:
    """Records with one of the words in every column of `words_by_column`, and whose cell contains or matches `text`."""
    kept = list(records)
    for column, words in words_by_column.items():
        kept = [record for record in kept if fits(record.get(column), words)]
    return [record for record in kept if matches(record["cell"], text)] if text else kept


def filtered(columns: Mapping[str, list], text: str | None = None) -> Mapping[str, list]:
    """Columns of records, of those whose cell contains or matches `text`."""
    if not text:
        return columns
    kept = [matches(cell, text) for cell in columns["cell"]]
    return {name: list(compress(column, kept)) for name, column in columns.items()}


def matches(cell: str, pattern: str) -> bool:
    """Whether a cell's name contains `pattern`, or matches it as a shell wildcard."""
    return fnmatch.fnmatch(cell, pattern) if any(c in pattern for c in "*?[") else pattern in cell


def newest(records: Iterable[Record]) -> list[Record]:
    """One record of each cell, machine, weights and state of the compile cache: the one that was begun last."""
    latest: dict[tuple, Record] = {}
    for record in records:
        key = tuple(map(record.get, _SAME))
        if key not in latest or (record.get("started_at") or "") >= (latest[key].get("started_at") or ""):
            latest[key] = record
    return list(latest.values())
