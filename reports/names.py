"""Short names of cells: what all of them share is said once, what tells them apart stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

from reports.content import times

_SIZES = ("batch_size=", "seq_len=")


def shortened(cells: Iterable[str]) -> tuple[dict[str, str], str]:
    """A short name for each cell by its whole one, and what the cells share.

    `torch/mlp/plain/inference/cpu/fp32/threads=2/batch_size=4,width=8/eager` becomes `torch eager`, where all are of
    that MLP, and `torch eager mlp 4`, where there are other workloads and batches. What all cells of a workload share
    stands with it in the second text.
    """
    parts = {cell: _parts(cell) for cell in cells}
    by_workload: dict[str, list[list[str]]] = defaultdict(list)
    for of_cell in parts.values():
        by_workload[of_cell[2]].append(of_cell)
    shared = {name: set(group[0]).intersection(*group[1:]) for name, group in by_workload.items()}
    everywhere = set.intersection(*shared.values()) if shared else set()
    names = {cell: _named(of_cell, shared[of_cell[2]], len(shared) > 1) for cell, of_cell in parts.items()}
    texts = [_texts(next(iter(parts.values()), []), everywhere)]
    texts += [_texts(group[0], shared[name] - everywhere) for name, group in by_workload.items() if len(shared) > 1]
    if len(set(names.values())) < len(names):  # no names of this suite
        return {cell: cell for cell in parts}, ""
    return names, "; ".join(filter(None, texts))


def in_words(shape: str) -> str:
    """A cell's name without its mode, in words: `torch, mlp, plain, cpu, fp32, 2 threads, batch 4`."""
    return ", ".join(filter(None, (_text(part) for text in shape.split("/") for part in text.split(","))))


def _parts(cell: str) -> list[str]:
    """Framework, mode and workload, then everything else that makes a cell, a parameter a part."""
    framework, *setting, mode = cell.split("/")
    texts = [part for text in setting for part in text.split(",")]
    return [framework, mode, *(texts or [""])]


def _named(parts: list[str], shared: set[str], with_workload: bool) -> str:
    telling = [part for part in parts[3:] if part not in shared]
    size = "×".join(filter(None, map(_size, telling)))
    others = [_text(part) for part in telling if not _size(part)]
    return " ".join(filter(None, [*parts[:2], parts[2] if with_workload else "", *others, size]))


@cache  # a few parts, over and over
def _size(part: str) -> str:
    """`4` of `batch_size=4`; empty for a part that is no size."""
    return part.partition("=")[2] if part.startswith(_SIZES) else ""


def _texts(parts: list[str], shared: set[str]) -> str:
    return ", ".join(filter(None, (_text(part) for part in parts[2:] if part in shared)))


@cache  # a few parts, over and over
def _text(part: str) -> str:
    """`batch_size=4` as `batch 4`; what goes without saying is left out."""
    name, equals, value = part.partition("=")
    if not equals:
        return "" if part == "inference" else part
    words = {"batch_size": f"batch {value}", "seq_len": f"seq {value}"}
    if name == "threads":
        return times(int(value), "thread") if value.isdecimal() else part
    return words.get(name, part)
