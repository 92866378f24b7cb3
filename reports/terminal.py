"""The tables at the end of a run: a row a shape, eager and graph side by side, or a row a mode if too wide."""

from __future__ import annotations

import itertools
from collections import Counter

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from measurement.schema import MEASURED, is_baseline, is_noisy
from reports import facts
from reports.content import text_of
from reports.points import natural

_SHAPE = ("workload", "implementation", "pass", "device", "dtype", "threads", "shapes")
_SHAPE += ("batch_size", "seq_len", "parameters")
_USUAL = ("inference", "static", None)  # which goes without saying
_TITLE = "Latency in ms (median); speedup = eager / graph, with its 95 % interval"
_FILE_WIDTH, _USUAL_WIDTH = 120, 80
MOST_SHAPES = 60  # more than this scrolls by unread
_UNLIMITED = 10_000


def console() -> Console:
    """A console as wide as the terminal, or wide enough for the usual table where the output goes to a file."""
    found = Console()
    return found if found.is_terminal else Console(width=_FILE_WIDTH)


def summary(records: list[dict], console: Console) -> None:
    """Print the comparison of eager and graph modes, then how many cells ended how."""
    shapes: dict[tuple, list[dict]] = {}
    for record in records:
        shapes.setdefault(tuple(map(record.get, _SHAPE)), []).append(record)
    columns = _columns(records)
    left_out = max(0, len(shapes) - MOST_SHAPES)
    # As on the page; launches side by side are done in another order.
    in_order = sorted(shapes.items(), key=lambda entry: tuple(map(natural, entry[0])))
    shapes = dict(itertools.islice(in_order, MOST_SHAPES))
    table = _side_by_side(columns, shapes)
    # Cut to the terminal's width it would lose digits.
    wanted = Measurement.get(console, console.options.update_width(_UNLIMITED), table).maximum
    console.print(table if wanted <= console.width else _row_a_mode(columns, shapes, console.width))
    if left_out:
        console.print(f"{left_out:,} more shapes are in the CSV.", highlight=False)
    console.print(counts(records), highlight=False)


def _columns(records: list[dict]) -> list[tuple[str, str]]:
    """(framework, mode) in the order of first appearance, a framework's eager mode before its others."""
    frameworks = list(dict.fromkeys(record["framework"] for record in records))
    found = dict.fromkeys((record["framework"], record["mode"]) for record in records)
    baselines = {(record["framework"], record["mode"]) for record in records if is_baseline(record)}
    return sorted(found, key=lambda column: (frameworks.index(column[0]), column not in baselines))


def _side_by_side(columns: list[tuple[str, str]], shapes: dict[tuple, list[dict]]) -> Table:
    table = Table(title=_TITLE, title_justify="left", show_lines=True)
    table.add_column("shape", no_wrap=True)
    for framework, mode in columns:
        table.add_column(f"{framework}\n{mode}", justify="right", no_wrap=True)
    for shape, records in shapes.items():
        cells = {(record["framework"], record["mode"]): record for record in records}
        texts = ("\n".join(_figures(cells[key])) if key in cells else "" for key in columns)
        table.add_row(shape_text(shape, "\n"), *texts)
    return table


def _row_a_mode(columns: list[tuple[str, str]], shapes: dict[tuple, list[dict]], width: int) -> Table:
    table = Table(title=_TITLE, title_justify="left")
    for name in ("framework", "mode", "latency", "speedup", "interval"):
        # The first column has the shapes as well, and is folded first; figures never are.
        justify = "left" if name in ("framework", "mode") else "right"
        whole = name != "framework" if width >= _USUAL_WIDTH else name not in ("framework", "mode")
        table.add_column(name, justify=justify, no_wrap=whole, overflow="fold")
    for shape, records in shapes.items():
        table.add_section()
        table.add_row(f"[bold]{shape_text(shape, ', ')}[/bold]")
        for record in sorted(records, key=lambda record: columns.index((record["framework"], record["mode"]))):
            table.add_row(record["framework"], record["mode"], *_figures(record))
    return table


def shape_text(shape: tuple, separator: str) -> str:
    """A shape in words: workload and implementation, sizes, then device, dtype and threads."""
    known = dict(zip(_SHAPE, shape, strict=True))
    sizes = [f"batch {known['batch_size']}"] if known["batch_size"] is not None else []
    sizes += [f"seq {known['seq_len']}"] if known["seq_len"] is not None else []
    others = [part for part in (known["parameters"] or "").split(";") if part]
    threads = f"{known['threads']} thread{'s' if known['threads'] != 1 else ''}"
    unusual = [f" {known[name]}" for name in ("pass", "shapes") if known[name] not in _USUAL]
    lines = [f"{known['workload']} {known['implementation']}{''.join(unusual)}", ", ".join(sizes + others)]
    return separator.join([*lines, f"{known['device']} {known['dtype']}, {threads}"])


def _figures(record: dict) -> list[str]:
    """Latency, speedup and interval of a cell as far as it has them, or how it ended."""
    if record["status"] not in MEASURED:
        return [record["status"]]
    figures = [text_of(record["latency_ms_median"]) + ("~" if is_noisy(record, "latency") else "")]
    if not is_baseline(record) and record.get("speedup_vs_eager") is not None:
        figures.append(f"{_ratio(record['speedup_vs_eager'])}x" + ("~" if is_noisy(record, "ratio") else ""))
        if record.get("speedup_ci_low") is not None:
            figures.append(f"{_ratio(record['speedup_ci_low'])}-{_ratio(record['speedup_ci_high'])}")
    return figures


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else text_of(value)  # 1.50 stands under 1.43


def counts(records: list[dict]) -> str:
    """How many cells ended how, and why those without figures have none."""
    found = Counter(record["status"] for record in records)
    parts = ", ".join(f"{number} {status}" for status, number in found.most_common())
    lines = [f"{len(records)} cells: {parts}"]
    if any(is_noisy(record, figure) for record in records for figure in ("latency", "ratio")):
        lines.append("~ noisy: interval wider than the profile promises; quieten the machine, or PROFILE=standard")
    lines += facts.unequal_machine(records)
    reasons = Counter((r["framework"], r["mode"], r["status"], r["reason"]) for r in records if r.get("reason"))
    lines += [f"{framework} {mode}: {status}: {why}" for (framework, mode, status, why), _ in reasons.most_common(20)]
    return "\n".join(lines)
