"""Values that the columns of a record may hold: the bounds of numbers, and the shape of JSON in a text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from measurement import checked
from measurement.checked import Misfit
from measurement.statistics import FASTER, INCONCLUSIVE, SLOWER
from records.record import COLUMNS, Column, Row
from records.statuses import MEASURED, STATUSES


@dataclass(frozen=True)
class Settings:
    """Entries of the column `settings` that readers use."""

    policies: dict[str, Any] | None = None


_TYPES: dict[str, set[type]] = {"str": {str}, "int": {int}, "float": {float, int}, "bool": {bool}}
_TITLES = {"str": "text", "int": "int", "float": "number", "bool": "bool"}
_LARGEST = {"int": checked.LARGEST_INTEGER - 1, "float": 1e300}
# No measurement makes these zero or negative; reports take their logarithms and quotients.
_POSITIVE = re.compile(
    r"latency_(call_|sync_)?ms_(median|ci_\w+|mean|min|p\d+)|speedup_(vs_eager|ci_\w+)"
    r"|host(_loop)?_ms_median|host_loop_ms_full"
    r"|first_call(_loaded)?_s"
)
_LEAST, _MOST = 1e-12, 1e15
# Sizes and counts that reports divide by, or put on a logarithmic axis.
_COUNTED = {"batch_size", "seq_len", "threads", "launches"}
_MOST_COUNTED = 1_000_000_000
_CELL = re.compile(r"[^/]+/.*[^/]", re.DOTALL)  # framework/…/mode
SIGNS = (FASTER, SLOWER, INCONCLUSIVE)
_PLACES = tuple[tuple[str, str], ...]
_SHAPES: dict[str, Any] = {
    "versions": dict[str, str],
    "settings": Settings,
    "graph_break_places": _PLACES,
    "recompiled_places": _PLACES,
}


def bounds(column: Column) -> tuple[float, float]:
    """Return the least and the largest number that a column may hold."""
    if _POSITIVE.fullmatch(column.name):
        return _LEAST, _MOST
    if column.name in _COUNTED:
        return 1, _MOST_COUNTED
    if column.name in ("build_s", "load_s", "compiler_start_s"):
        return 0, _MOST
    return -_LARGEST[column.kind], _LARGEST[column.kind]


def misfit(column: Column, value: Any) -> str | None:
    """Return why a value does not fit ("no int"); None if the column may hold it or it is None."""
    if value is None:
        return None
    if type(value) not in _TYPES[column.kind]:
        return f"no {_TITLES[column.kind]}"
    if column.kind in _LARGEST:
        return _misfit_of_number(column, value)
    if column.name == "cell" and not _CELL.fullmatch(value):
        return "no name of a cell"
    if column.name in _SHAPES and value:
        return _misfit_of_json(column.name, value)
    return None


def _misfit_of_number(column: Column, value: float) -> str | None:
    least, most = bounds(column)
    if least <= value <= most:
        return None
    if value != value or abs(value) > _LARGEST[column.kind]:
        return f"no {_TITLES[column.kind]}"
    return f"not from {least:g} to {most:g}"


def _misfit_of_json(name: str, text: str) -> str | None:
    try:
        checked.value(_SHAPES[name], json.loads(text), name)
    except Misfit as problem:
        return f"no JSON of this column: {problem}"
    except (ValueError, RecursionError):
        return "no JSON"
    return None


def first_misfit(column: Column, values: Sequence) -> int | None:
    """Return the index of the first value that a column may not hold, or None."""
    if set(map(type, values)) <= {*_TYPES[column.kind], type(None)} and not _out_of_bounds(column, values):
        return None
    return next(place for place, value in enumerate(values) if misfit(column, value))


def _out_of_bounds(column: Column, values: Sequence) -> bool:
    """Return whether a column of the right types holds a misfit; fast enough for many records."""
    if column.name in _SHAPES or column.name == "cell":
        return any(misfit(column, value) for value in set(values))
    if column.kind not in _LARGEST:
        return False
    present = [value for value in values if value is not None]
    least, most = bounds(column)
    # min and max may miss a NaN; the sum does not.
    return bool(present) and not (least <= min(present) and max(present) <= most and not math.isnan(sum(present)))


def problem(record: Row) -> str | None:
    """Return a sentence on why a record does not fit the schema, or None."""
    if record.get("status") not in STATUSES:
        return f"unknown status {record.get('status')!r}"
    if record.get("sign") not in (None, *SIGNS):
        return f"unknown sign {record['sign']!r}"
    for column in COLUMNS:
        if why := misfit(column, record.get(column.name)):
            return f"{column.name} holds {record[column.name]!r}, which is {why}; leave unknown values empty"
    if record["status"] not in MEASURED and not record.get("reason"):
        return f"status {record['status']} needs a reason"
    return None
