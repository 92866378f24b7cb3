"""Where a framework is known to fall short, as data with reasons: `tests/gaps/<framework>.toml`.

`[[gap]]` gives cells another status than a measured one, `[[difference]]` a graph another program than eager mode's.
`where` has columns of a record, each with a value or a list of values. What has mended itself fails the test too.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent / "gaps"


def status(record: dict) -> str | None:
    """How this cell is known to end; None where it should be measured."""
    return next((entry["status"] for entry in _entries(record, "gap")), None)


def difference(record: dict) -> str | None:
    """How the known difference of this graph's program begins; None where there should be none."""
    return next((entry["begins"] for entry in _entries(record, "difference")), None)


def _entries(record: dict, kind: str) -> list[dict]:
    path = FOLDER / f"{record['framework']}.toml"
    entries = tomllib.loads(path.read_text()).get(kind, []) if path.exists() else []
    return [entry for entry in entries if all(_holds(record, *item) for item in entry["where"].items())]


def _holds(record: dict, column: str, expected: str | list[str]) -> bool:
    return record[column] in (expected if isinstance(expected, list) else [expected])
