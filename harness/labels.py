"""Short names of cells for people who watch: what all cells of a run share is said once, the rest in few characters."""

from __future__ import annotations

from collections.abc import Sequence

from measurement.cells import PEAK_PREFIX, Cell
from reports.content import times

_AXES = ("workload", "implementation", "pass_name", "device", "dtype", "threads", "shapes")
_USUAL = {"pass_name": "inference", "shapes": "static"}  # which goes without saying


class Labels:
    """The names of a plan's cells, as short as they can be told apart by."""

    def __init__(self, cells: Sequence[Cell]):
        self._cells = {cell.id: cell for cell in cells}
        self._varying = {name for name in _AXES if len({getattr(cell, name) for cell in cells}) > 1} | {"workload"}
        self._told = {name for name in self._varying if _varies_within_a_workload(cells, name)}
        values: dict[str, set] = {}
        for cell in cells:
            for name, value in cell.parameters:
                values.setdefault(name, set()).add(value)
        self._parameters = {name for name, distinct in values.items() if len(distinct) > 1} - {"batch_size", "seq_len"}

    @property
    def shared(self) -> str:
        """What all cells have in common, in words: `library, cpu fp32, 2 threads, mask=none`."""
        if not self._cells:
            return ""
        first = next(iter(self._cells.values()))
        same = {name: str(getattr(first, name)) for name in _AXES if name not in self._varying}
        told = [value for name, value in same.items() if name != "threads" and value != _USUAL.get(name)]
        told += [times(first.threads, "thread")] if "threads" in same else []
        everywhere = [set(cell.parameters) for cell in self._cells.values()]
        size = ("batch_size", "seq_len")
        told += [
            f"{n}={v}" for n, v in first.parameters if n not in size and all((n, v) in pairs for pairs in everywhere)
        ]
        return ", ".join(told)

    def mode(self, cell_id: str) -> str:
        """`torch inductor`; the id itself where it is none of the plan's cells."""
        cell = self._cells.get(cell_id)
        return f"{cell.framework} {cell.mode}" if cell else cell_id

    def shape(self, cell_id: str) -> str:
        """`bert-base 1×128`, with whatever else differs among the plan's cells."""
        cell = self._cells.get(cell_id)
        if cell is None:
            return ""
        batch, length = cell.parameter("batch_size"), cell.parameter("seq_len")
        size = f"{batch}×{length}" if length is not None else f"batch {batch}" if batch is not None else ""
        words = [cell.workload, size]
        words += [str(getattr(cell, name)) for name in _AXES[1:5] if name in self._told]
        words += [times(cell.threads, "thread")] if "threads" in self._told else []
        words += [cell.shapes] if "shapes" in self._told else []
        words += [_value(name, value) for name, value in cell.parameters if name in self._parameters]
        return " ".join(filter(None, words))

    def widths(self) -> tuple[int, int]:
        """Of the widest mode and of the widest shape."""
        ids = list(self._cells)
        return max(map(len, map(self.mode, ids)), default=0), max(map(len, map(self.shape, ids)), default=0)

    def names(self, cell_id: str) -> str:
        """`torch inductor · bert-base 1×128`; of a peak benchmark whose it is."""
        if cell_id.startswith(PEAK_PREFIX):
            return f"{cell_id.removeprefix(PEAK_PREFIX).partition('/')[0]} · peaks of the machine"
        return " · ".join(filter(None, (self.mode(cell_id), self.shape(cell_id))))


def shortened(text: str, width: int) -> str:
    """The text in so many columns, padded, or cut in its middle: names are told apart by both their ends."""
    if len(text) <= width:
        return text.ljust(width)
    head = max(width * 3 // 5, 0)
    tail = max(width - head - 1, 0)
    return f"{text[:head]}…{text[len(text) - tail :]}"[: max(width, 0)]


def _varies_within_a_workload(cells: Sequence[Cell], axis: str) -> bool:
    """Whether a workload's name alone leaves open what the axis' value is, as it does where one has two of them."""
    values: dict[str, set] = {}
    for cell in cells:
        values.setdefault(cell.workload, set()).add(getattr(cell, axis))
    return any(len(distinct) > 1 for distinct in values.values())


def _value(name: str, value: int | str) -> str:
    """`width=64`, `mask=none`, but `padded` and `explicit`, which say of themselves what they are a value of."""
    return value if value in ("padded", "explicit", "fused") else f"{name}={value}"
