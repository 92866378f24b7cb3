"""Short names of cells: shared parts are named once, and distinguishing ones stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property

from measurement.text import times

_SIZES = ("batch_size=", "seq_len=")
_TELLING = ("padded", "explicit", "fused")  # values that need no parameter name before them


class Names:
    """Short names of cells, by their full ones, each in two parts: `mode` and `shape`.

    `torch/mlp/plain/inference/cpu/fp32/threads=2/batch_size=4,width=8/eager` becomes `torch eager` where all cells have
    that MLP. It becomes `torch eager`, `mlp batch 4` where there are other workloads and batches. With `whole`,
    workload, batch and sequence length are in every shape. `shared` has the common properties of all cells, and those
    of each workload's cells, in words.
    """

    def __init__(self, cells: Iterable[str], whole: bool = False):
        parts = {cell: _parts(cell) for cell in cells}
        groups: dict[str, list[list[str]]] = defaultdict(list)
        for of_cell in parts.values():
            groups[of_cell[2]].append(of_cell)
        alike = {name: set(group[0]).intersection(*group[1:]) for name, group in groups.items()}
        if whole:
            alike = {name: {part for part in same if not part.startswith(_SIZES)} for name, same in alike.items()}
        several = whole or len(groups) > 1
        self._modes = {cell: " ".join(of_cell[:2]) for cell, of_cell in parts.items()}
        self._shapes = {cell: _shape(of_cell, alike[of_cell[2]], several) for cell, of_cell in parts.items()}
        everywhere = set.intersection(*alike.values()) if alike else set()
        first = next(iter(parts.values()), [])
        texts = [_texts(first[3:] if several else first[2:], everywhere)]
        if len(groups) > 1:
            by_workload = {name: _texts(group[0][3:], alike[name] - everywhere) for name, group in groups.items()}
            texts += [f"{name}, {text}" for name, text in by_workload.items() if text]
        self.shared = "; ".join(filter(None, texts))
        if len({self[cell] for cell in parts}) < len(parts):  # no names of this suite
            self._modes, self._shapes, self.shared = {cell: cell for cell in parts}, {}, ""

    def __getitem__(self, cell: str) -> str:
        """Return `torch eager mlp batch 4`."""
        return " ".join(filter(None, (self.mode(cell), self.shape(cell))))

    def mode(self, cell: str) -> str:
        """Return `torch inductor`; the whole name where it is none of the cells."""
        return self._modes.get(cell, cell)

    def shape(self, cell: str) -> str:
        """Return `bert-base 1×128`, with whatever else differs among the cells of the workload."""
        return self._shapes.get(cell, "")

    @cached_property
    def widths(self) -> tuple[int, int]:
        """Return the widths of the widest mode and of the widest shape."""
        return max(map(len, self._modes.values()), default=0), max(map(len, self._shapes.values()), default=0)


def in_words(shape: str) -> str:
    """Return a cell's name without its mode, in words: `torch, mlp, plain, cpu, fp32, 2 threads, batch 4`."""
    return ", ".join(filter(None, (_text(part) for part in shape.split("/") for part in part.split(","))))


def _parts(cell: str) -> list[str]:
    """Return framework, mode and workload, then all else that identifies a cell, a part per parameter."""
    framework, *setting, mode = cell.split("/")
    texts = [part for text in setting for part in text.split(",")]
    return [framework, mode, *(texts or [""])]


def _shape(parts: list[str], alike: set[str], with_workload: bool) -> str:
    telling = [part for part in parts[3:] if part not in alike]
    sizes = [part for part in telling if _size(part)]
    size = "×".join(map(_size, sizes)) if len(sizes) > 1 else "".join(map(_text, sizes))
    others = [_short(part) for part in telling if not _size(part)]
    return " ".join(filter(None, [parts[2] if with_workload else "", size, *others]))


@cache  # few parts, many calls; so below
def _size(part: str) -> str:
    """Return `4` of `batch_size=4`; empty for a part that is no size."""
    return part.partition("=")[2] if part.startswith(_SIZES) else ""


def _texts(parts: list[str], among: set[str]) -> str:
    return ", ".join(filter(None, (_text(part) for part in parts if part in among)))


@cache
def _short(part: str) -> str:
    """Return `padded` of `mask=padded`; of other parts the words."""
    value = part.partition("=")[2]
    return value if value in _TELLING else _text(part)


@cache
def _text(part: str) -> str:
    """Return `batch_size=4` as `batch 4`; usual values are omitted."""
    name, equals, value = part.partition("=")
    if not equals:
        return "" if part == "inference" else part
    words = {"batch_size": f"batch {value}", "seq_len": f"seq {value}", "shapes": f"{value} shapes"}
    if name == "threads":
        return times(int(value), "thread") if value.isdecimal() else part
    return words.get(name, part)
