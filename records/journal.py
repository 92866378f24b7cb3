"""Journals of runs that start fresh processes in rounds: a record for each process, as JSON lines and as CSV."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from records import jsonfiles, recordfile
from records.process import ProcessRecord
from records.record import Column

Row = TypeVar("Row", bound=ProcessRecord)


@dataclass(frozen=True)
class Journal(Generic[Row]):
    """The records of one kind in a folder, in `<name>.jsonl` and `<name>.csv`."""

    name: str
    kind: type[Row]

    @property
    def lines(self) -> str:
        return f"{self.name}.jsonl"

    @property
    def table(self) -> str:
        return f"{self.name}.csv"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the CSV."""
        declared = [one for one in fields(self.kind) if one.metadata]
        return tuple(
            Column(one.name, str(one.type).partition(" ")[0], one.metadata["unit"], one.metadata["meaning"])
            for one in declared
        )

    def append(self, folder: Path, record: Row) -> None:
        """Add a record; it is on disk when this returns."""
        jsonfiles.append(folder / self.lines, asdict(record), synced=True)

    def read(self, folder: Path) -> list[Row]:
        """Return the records of a folder, the first of each process; none without a file. Raises Unreadable."""
        names = [one.name for one in fields(self.kind)]
        found: dict[Hashable, Row] = {}
        for row in jsonfiles.lines(folder / self.lines):
            record = self.kind(**{name: _immutable(row.get(name)) for name in names})
            found.setdefault((record.cell, *record.arm, record.round), record)
        return list(found.values())

    def write_csv(self, folder: Path, records: Iterable[Row]) -> None:
        """Write the records as CSV, atomically."""
        names = [column.name for column in self.columns]
        rows = ([getattr(record, name) for name in names] for record in records)
        recordfile.write_table(names, rows, folder / self.table)


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
