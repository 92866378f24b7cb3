"""User models with what must be found of them, as data: `tests/field/<framework>.toml` and the files in that folder.

A `[[row]]` has a `file`, which rows may share, and says in `what` why it is there. Optional are:

- `thread`, an address where users met the kind;
- `options`, flags of `bench`, beside those that the table begins with;
- `modes` that must have a record, if not those that the table begins with, eager mode first.

`expected.<mode>` has columns of the mode's record, `expected.all` those of every mode, `expected.graphs` of graphs:

- `status` "measured" is that of a measured and correct cell, and expected where none is given; "!ok" is any other;
- text is a phrase that the column must hold, or must not hold after "!"; a list holds several; "" is an empty column;
- a number is equal, and text such as ">0" is a bound.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workloads.user_model import named

FOLDER = Path(__file__).parent / "field"
# A mode that captures as another one does and compiles nothing: what is expected of it where nothing else is said.
STANDS_FOR = {"dynamo": "inductor"}


@dataclass(frozen=True)
class Row:
    """One entry of a table."""

    framework: str
    file: str
    what: str
    modes: Sequence[str]
    expected: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    thread: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return FOLDER / self.framework / self.file

    def of(self, mode: str) -> dict[str, Any]:
        """What the record of a mode must hold."""
        own = self.expected.get(mode, self.expected.get(STANDS_FOR.get(mode, ""), {}))
        graphs = {} if mode == self.modes[0] else self.expected.get("graphs", {})
        return {"status": "measured", "flags": "!partial", **self.expected.get("all", {}), **graphs, **own}

    def unlike(self, record: Mapping[str, Any]) -> list[str]:
        """Return what of a record is not as expected, a phrase a column, and then why the cell failed."""
        expected = self.of(record["mode"])
        phrases = [
            f"{column} {record.get(column)!r} is not {wanted!r}"
            for column, wanted in expected.items()
            if not _holds(column, record.get(column), wanted)
        ]
        failure = record.get("stderr_tail") or (record.get("reason") if record["status"] != "ok" else None)
        return [*phrases, failure] if phrases and failure else phrases


def rows(framework: str) -> list[Row]:
    """Return a framework's table, in its order."""
    path = FOLDER / f"{framework}.toml"
    table = tomllib.loads(path.read_text())
    usual = {"framework": framework, "modes": table["modes"]}
    of_all = table.get("options", {})
    return [Row(**{**usual, **entry, "options": of_all | entry.get("options", {})}) for entry in table["row"]]


def frameworks() -> list[str]:
    """Return the frameworks that have a table."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def records(rows: Sequence[Row], folder: Path) -> dict[str, list[dict]]:
    """Return the records of a run's folder by the path of the row's file."""
    sources = named(str(row.path) for row in rows)
    found: dict[str, list[dict]] = {}
    path = folder / "records.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        found.setdefault(sources[record["workload"]], []).append(record)
    return found


def _holds(column: str, found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return all(_holds(column, found, one) for one in wanted)
    if wanted == "":
        return found in (None, "")
    if not isinstance(wanted, str):
        return found == wanted
    if column == "status":
        return found != wanted[1:] if wanted[0] == "!" else found == ("ok" if wanted == "measured" else wanted)
    if wanted[0] in "<>":
        return found is not None and (found > float(wanted[1:]) if wanted[0] == ">" else found < float(wanted[1:]))
    if wanted[0] == "!":
        return wanted[1:] not in str(found or "")
    return wanted in str(found or "")
