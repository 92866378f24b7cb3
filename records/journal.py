"""Journals of runs that start fresh processes in rounds: a row for each process, as JSON lines and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from measurement import durable
from records import jsonfiles, lines
from records.record import Column

Row = TypeVar("Row")


@dataclass(frozen=True)
class Journal(Generic[Row]):
    """The rows of one kind in a folder, in `<name>.jsonl` and `<name>.csv`.

    `kind` is a dataclass whose fields are columns, or in the lines alone where they declare none. `key` is what a
    process's row has of its own.
    """

    name: str
    kind: type[Row]
    key: Callable[[Row], Hashable]

    @property
    def lines(self) -> str:
        return f"{self.name}.jsonl"

    @property
    def table(self) -> str:
        return f"{self.name}.csv"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the CSV."""
        declared = [one for one in fields(self.kind) if one.metadata]  # type: ignore[arg-type]
        return tuple(
            Column(one.name, str(one.type).partition(" ")[0], one.metadata["unit"], one.metadata["meaning"])
            for one in declared
        )

    def append(self, folder: Path, record: Row) -> None:
        """Add a record, on disk before this returns."""
        lines.append(folder / self.lines, asdict(record), synced=True)  # type: ignore[call-overload]

    def read(self, folder: Path) -> list[Row]:
        """Return the records of a folder, the first of each process; none without a file. Raises Unreadable."""
        names = [one.name for one in fields(self.kind)]  # type: ignore[arg-type]
        found: dict[Hashable, Row] = {}
        for row in jsonfiles.lines(folder / self.lines):
            record = self.kind(**{name: _immutable(row.get(name)) for name in names})
            found.setdefault(self.key(record), record)
        return list(found.values())

    def write_csv(self, folder: Path, records: Iterable[Row]) -> None:
        """Write the records as CSV, at once and whole."""
        names = [column.name for column in self.columns]
        with durable.replacing(folder / self.table) as file:
            table = io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="")
            writer = csv.writer(table)
            writer.writerow(names)
            writer.writerows([_text(getattr(record, name)) for name in names] for record in records)
            table.detach()


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
