"""The table at the end of a run: a row a shape, eager and graph side by side per framework."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from measurement.schema import MEASURED

_SHAPE = ("workload", "implementation", "pass", "device", "dtype", "threads", "batch_size", "seq_len", "parameters")


def summary(records: list[dict], console: Console) -> None:
    """Print the comparison of eager and graph modes, then how many cells ended how."""
    for table in tables(records):
        console.print(table)
    console.print(counts(records))


def tables(records: list[dict]) -> list[Table]:
    """One table for every set of shapes that were run in the same frameworks and modes."""
    shapes: dict[tuple, dict[tuple[str, str], dict]] = {}
    for record in records:
        shape = tuple(record.get(name) for name in _SHAPE)
        shapes.setdefault(shape, {})[record["framework"], record["mode"]] = record
    alike: dict[tuple, list[tuple]] = {}
    for shape, cells in shapes.items():
        alike.setdefault(tuple(cells), []).append(shape)
    return [_table(columns, [(shape, shapes[shape]) for shape in members]) for columns, members in alike.items()]


def _table(columns: tuple[tuple[str, str], ...], rows: list[tuple[tuple, dict]]) -> Table:
    table = Table(title="Latency in ms (median); speedup = eager / graph, with 95 % interval", title_justify="left")
    table.add_column("shape", no_wrap=True)
    for framework, mode in columns:
        table.add_column(f"{framework}\n{mode}", justify="right", no_wrap=True)
    for shape, cells in rows:
        table.add_row(shape_text(dict(zip(_SHAPE, shape, strict=True))), *(cell_text(cells[key]) for key in columns))
    return table


def shape_text(shape: dict) -> str:
    """A shape in words, e.g. `bert-base library, batch 1, seq 128` and the rest below it."""
    first = f"{shape['workload']} {shape['implementation']}"
    size = f"batch {shape['batch_size']}" + (f", seq {shape['seq_len']}" if shape["seq_len"] is not None else "")
    threads = f"{shape['threads']} thread{'s' if shape['threads'] != 1 else ''}"
    return f"{first}\n{size}\n{shape['device']} {shape['dtype']}, {threads}"


def cell_text(record: dict) -> str:
    """A cell's figures, or how it ended."""
    if record["status"] not in MEASURED:
        return record["status"]
    text = f"{_digits(record['latency_ms_median'])}" + (" ~" if record["status"] == "noisy" else "")
    if record["mode"] == "eager":
        return text
    if record.get("speedup_vs_eager") is None:
        return text
    text += f"\n{record['speedup_vs_eager']:.2f}x"
    if record.get("speedup_ci_low") is not None:
        text += f"\n{record['speedup_ci_low']:.2f}-{record['speedup_ci_high']:.2f}"
    return text


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def counts(records: list[dict]) -> str:
    """How many cells ended how."""
    found = Counter(record["status"] for record in records)
    parts = ", ".join(f"{number} {status}" for status, number in found.most_common())
    note = " (~ marks noisy: interval wider than the profile's target)" if "noisy" in found else ""
    return f"{len(records)} cells: {parts}{note}"
