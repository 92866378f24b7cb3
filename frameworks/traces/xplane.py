"""The profiles that XLA and TensorFlow write (`.xplane.pb`), as rows; callers parse the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from frameworks.traces import hlo
from frameworks.traces.events import Event

CALLS = "calls"  # the annotation around the profiled calls
_GPU, _STREAM = "/device:GPU", "Stream"
# TensorFlow's executor names an operator `layer/moments/mean:Mean`, its eager runtime `EagerLocalExecute: Mean`.
_OPERATOR = re.compile(r"^[^:\s]+:(\w+)$")
_EAGER, _KERNEL, _FUNCTION = "EagerLocalExecute: ", "EagerKernelExecute", "__inference_"
NANOSECONDS = 1e-9


@dataclass(frozen=True)
class Row:
    """One event of a profile. `plane` is a device or the host, `line` one of its threads or streams."""

    plane: str
    line: str
    name: str
    start_ns: float
    duration_ns: float
    stats: dict[str, object] = field(default_factory=dict)


def wall_s(rows: Iterable[Row]) -> float:
    """Return the seconds of the annotated calls. Raises ValueError unless they occur exactly once."""
    (whole,) = (row for row in rows if row.name == CALLS and not row.plane.startswith(_GPU))
    return whole.duration_ns * NANOSECONDS


def events(rows: Iterable[Row], modules: dict[str, dict[str, str]]) -> list[Event]:
    """Return kernels of a GPU's streams where the profile has any, else XLA's kernels and TensorFlow's host operators.

    `modules` has the operations inside XLA's fusions (`hlo.read`).
    """
    rows = list(rows)
    kernels = [row for row in rows if row.plane.startswith(_GPU) and row.line.startswith(_STREAM)]
    if kernels:
        return [_event(row, _xla_name(row, modules)) for row in kernels]
    host = [_event(row, _xla_name(row, modules)) for row in rows if "hlo_op" in row.stats]
    named = [(row, _OPERATOR.match(row.name)) for row in rows if not row.name.startswith(_FUNCTION)]
    host += [_event(row, match[1]) for row, match in named if match]
    return host + list(_eager(rows))


def _xla_name(row: Row, modules: dict[str, dict[str, str]]) -> str:
    instruction, module = (str(row.stats.get(name) or "") for name in ("hlo_op", "hlo_module"))
    return hlo.described(row.name, module, instruction, modules) if instruction else row.name


def _eager(rows: list[Row]) -> Iterator[Event]:
    """Yield the kernels of TensorFlow's eager runtime, each under the operator that it was run for."""
    operator: dict[tuple, Row] = {}
    for row in sorted(rows, key=lambda row: (row.start_ns, -row.duration_ns)):
        lane = (row.plane, row.line)
        if row.name.startswith(_EAGER):
            operator[lane] = row
        elif row.name == _KERNEL and lane in operator:
            name = operator[lane].name.removeprefix(_EAGER)
            if not name.startswith(_FUNCTION):  # whose operators have separate rows
                yield _event(row, name)


def _event(row: Row, name: str) -> Event:
    return Event(name, row.start_ns * NANOSECONDS, row.duration_ns * NANOSECONDS, (row.plane, row.line))
