"""Figures on a terminal: of a finished cell in a line, and a table at the end of a run."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Sequence
from operator import attrgetter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.points import USUAL, natural
from analysis.significance import ratio_of_latencies
from measurement import statistics
from measurement.statistics import sign
from measurement.text import plain, times
from records.record import Record
from records.statuses import CONSTANT, PROGRAM_DIFFERS, ZERO
from reports.numbers import ratio, span, text_of
from reports.remarks import recompilations, unequal_machines

_SHAPE = (
    *("workload", "implementation", "pass_name", "device", "dtype", "threads", "shapes"),
    *("batch_size", "seq_len", "parameters"),
)
_shape = attrgetter(*_SHAPE)
_TITLE = "Latency in ms (median); speedup = eager / graph, with its 95 % interval"  # within 80 columns
_FILE_WIDTH = 120
MOST_SHAPES, MOST_REASONS = 60, 20  # more than this scrolls by unread
_HEADS = ("framework", "mode", "ms", "speedup", "interval")
# What raises these is the machine, not the cell.
_BUSY = ("other_load", "steal", "frequency", "host_slowed", "throttled")
FASTER, SLOWER, FASTEST = "▲", "▼", "*"
WIDTH = 36  # of what `in_a_line` makes, but for a flag and for figures of more digits than usual
STYLES = {FASTER: "green", SLOWER: "red"}
MARKS = {statistics.FASTER: FASTER, statistics.SLOWER: SLOWER}
WARNING = "yellow"
# Flags that speak of the cell itself and not of the machine, which appear where they are raised.
OF_THE_CELL = (
    *("recompiled", PROGRAM_DIFFERS, "threads_exceeded", "roofline_exceeded", "not_compared"),
    *(ZERO, CONSTANT),
)


class PlainConsole(Console):
    """A console that takes every text as it is: no markup, no emoji codes, nothing that a terminal would obey.

    Texts come from frameworks, paths and files; what is to be styled is a `rich.text.Text`.
    """

    def __init__(self, **how):
        super().__init__(markup=False, emoji=False, highlight=False, **how)

    def render_str(self, text: str, **how) -> Text:
        return super().render_str(plain(text), **how)


def console() -> Console:
    """Return a console as wide as the terminal; as COLUMNS, or as the usual table, where the output goes to a file."""
    terminal = PlainConsole()
    if terminal.is_terminal:
        return terminal
    given = os.environ.get("COLUMNS", "")
    return PlainConsole(width=int(given) if given.isdigit() and int(given) else _FILE_WIDTH)


def summary(records: Sequence[Record], console: Console, printed: Collection[str] = ()) -> None:
    """Print the comparison of eager and graph modes, then how many cells ended how; these alone without any figure.

    `printed` are sentences that were printed before.
    """
    if all(record.latency_ms_median is None for record in records):
        console.print(counts(records, printed), highlight=False, markup=False)
        return
    shapes: dict[tuple, list[Record]] = {}
    for record in records:
        shapes.setdefault(_shape(record), []).append(record)
    columns = _columns(records)
    left_out = max(0, len(shapes) - MOST_SHAPES)
    # As on the page; launches side by side are done in another order.
    in_order = sorted(shapes.items(), key=lambda entry: tuple(map(natural, entry[0])))
    shapes = dict(itertools.islice(in_order, MOST_SHAPES))
    shown = list(itertools.chain(*shapes.values()))
    console.print(_TITLE, style="italic", highlight=False)
    _print_rows(columns, shapes, console)
    if left_out:
        console.print(f"{left_out:,} more shapes are in the CSV.", highlight=False)
    console.print(counts(records, printed, shown), highlight=False, markup=False)


def _columns(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return (framework, mode) in the order of first appearance, a framework's eager mode before its others."""
    frameworks = list(dict.fromkeys(record.framework for record in records))
    columns = dict.fromkeys((record.framework, record.mode) for record in records)
    baselines = {(record.framework, record.mode) for record in records if record.is_baseline}
    return sorted(columns, key=lambda column: (frameworks.index(column[0]), column not in baselines))


def fastest(records: Sequence[Record]) -> list[Record]:
    """Return the fastest of a shape, and those that its interval does not distinguish from it.

    None where there is nothing to choose from, or where machines differ.
    """
    measured = [r for r in records if not r.excluded and r.latency_ms_median is not None]
    if len(measured) < 2 or len({record.machine_id for record in measured}) > 1:
        return []
    first = min(measured, key=lambda record: record.median_ms)
    return [record for record in measured if _may_be_as_fast(record, first)]


def _may_be_as_fast(record: Record, first: Record) -> bool:
    ratio = ratio_of_latencies(record, first)
    return record.median_ms <= first.median_ms if ratio is None else ratio.low <= 1


def _print_rows(columns: list[tuple[str, str]], shapes: dict[tuple, list[Record]], console: Console) -> None:
    """Print a line a shape and below it a row a mode, with the same columns under each."""
    rows = {}
    for shape, records in shapes.items():
        first = fastest(records)
        ordered = sorted(records, key=lambda record: columns.index((record.framework, record.mode)))
        rows[shape] = [[Text(plain(r.framework)), Text(plain(r.mode)), *figures(r, r in first)] for r in ordered]
    widths = list(map(len, _HEADS))
    for cells in itertools.chain(*rows.values()):
        for index, text in enumerate(cells):
            widths[index] = max(widths[index], text.cell_len)
    # The mode is folded where there is no room; figures never are.
    widths[1] = max(8, min(widths[1], console.width - sum(widths) + widths[1] - 2 * len(widths)))
    console.print(_grid([[Text(head, style="bold") for head in _HEADS]], widths))
    for shape, table in rows.items():
        console.print(Text("\n" + plain(shape_text(shape)), style="bold"))
        console.print(_grid(table, widths))


def _grid(rows: list[list[Text]], widths: Sequence[int]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for index, width in enumerate(widths):
        table.add_column(width=width, justify="left" if index < 2 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def shape_text(shape: tuple) -> str:
    """Return a shape in words: workload and implementation, sizes, then device, dtype and threads."""
    known = dict(zip(_SHAPE, shape, strict=True))
    sizes = [f"batch {known['batch_size']}"] if known["batch_size"] is not None else []
    sizes += [f"seq {known['seq_len']}"] if known["seq_len"] is not None else []
    others = [part for part in (known["parameters"] or "").split(";") if part]
    threads = times(known["threads"], "thread") if known["threads"] else ""
    unusual = [f" {known[name]}" for name in ("pass_name", "shapes") if known[name] not in (None, USUAL[name])]
    lines = [f"{known['workload']} {known['implementation']}{''.join(unusual)}", ", ".join(sizes + others)]
    return ", ".join([*lines, ", ".join(filter(None, (f"{known['device']} {known['dtype']}", threads)))])


def counts(records: Sequence[Record], printed: Collection[str] = (), shown: Sequence[Record] | None = None) -> str:
    """Count cells by how they ended; say what the marks of `shown` mean (all by default), and why some failed."""
    statuses = Counter(record.status for record in records)
    parts = ", ".join(f"{number} {status}" for status, number in statuses.most_common())
    lines = [f"{times(len(records), 'cell')}: {parts}", _legend(shown or records), *conditions(records)]
    lines += unequal_machines(records)
    raised = Counter(name for record in records for name in (record.flags or "").split(";"))
    lines += [f"{name} ({raised[name]}): docs/columns.md says what it means" for name in OF_THE_CELL if raised[name]]
    for framework in dict.fromkeys(record.framework for record in records):
        own = (record for record in records if record.framework == framework)
        lines += [f"{framework} {sentence}" for sentence in recompilations(own)]
    lines += failures(records)
    return "\n".join(line for line in lines if line and line not in printed)


def failures(records: Sequence[Record]) -> list[str]:
    """List why cells failed, the commonest reason first, with their modes, and their workloads if there are several."""
    alike: dict[tuple, list[Record]] = {}
    for record in records:
        if record.reason:
            ended = "partial" if record.is_measured else record.status
            alike.setdefault((record.framework, ended, record.reason), []).append(record)
    several = len({record.workload for record in records}) > 1
    lines = []
    for (framework, status, why), cells in sorted(alike.items(), key=lambda entry: -len(entry[1]))[:MOST_REASONS]:
        names = [", ".join(dict.fromkeys(map(get, cells))) for get in (attrgetter("mode"), attrgetter("workload"))]
        lines.append(f"{framework} {' of '.join(names if several else names[:1])}: {status}: {why}")
    return lines


def _legend(records: Sequence[Record]) -> str:
    """Return the marks that the table shows."""
    shapes: dict[tuple, list[Record]] = {}
    for record in records:
        shapes.setdefault(_shape(record), []).append(record)
    directions = {direction(record) for record in records if not record.is_baseline}
    parts = [f"{FASTEST} fastest, or not distinguishable from it"] if any(map(fastest, shapes.values())) else []
    parts += [f"{FASTER} faster than eager"] if FASTER in directions else []
    parts += [f"{SLOWER} slower"] if SLOWER in directions else []
    return ", ".join(parts)


def conditions(records: Sequence[Record]) -> list[str]:
    """Return a line on the machine's conditions, and one on figures that are less precise than asked for."""
    measured = [record for record in records if record.is_measured]
    raised = Counter(name for record in measured for name in (record.flags or "").split(";") if name in _BUSY)
    lines = [f"Conditions: {', '.join(f'{name} ({raised[name]})' for name in _BUSY if raised[name])}"] if raised else []
    if wide := sum(not record.on_target for record in measured):
        lines.append(f"{wide} of {len(measured)} miss the profile's half-width; a larger BUDGET narrows them.")
    return lines


def direction(record: Record) -> str:
    """Return faster or slower than eager as far as the interval tells; empty where it tells neither."""
    return "" if record.excluded else MARKS.get(sign(record.speedup), "")


def figures(record: Record, fastest: bool = False) -> list[Text]:
    """Return latency, speedup and interval of a cell as far as it has them, or how it ended."""
    if not record.is_measured:
        return [Text(record.status, style=WARNING)]
    latency = Text(text_of(record.median_ms), style="bold" if fastest else "")
    latency.append(FASTEST if fastest else "")
    if record.is_baseline or record.speedup_vs_eager is None:
        return [latency]
    mark = direction(record)
    speedup = Text(f"{ratio(record.speedup_vs_eager)}×{mark}", style=STYLES.get(mark, ""))
    interval = record.speedup
    return [latency, speedup, *([Text(span(interval.low, interval.high, ratio))] if interval else [])]


def in_a_line(record: Record) -> Text:
    """Return the same in a line, figures under each other, and the first flag that is the cell's own."""
    shown = figures(record)
    if not record.is_measured:
        return shown[0]
    latency, *others = shown
    line = Text(" " * max(0, 8 - len(latency.plain))) + latency.append(" ms", style="")
    line.pad_right(max(0, 12 - len(line.plain)))
    for text, width in zip(others, (9, 13), strict=False):
        line = line + " " + text
        line.pad_right(max(0, width - len(text.plain)))
    flags = [name for name in (record.flags or "").split(";") if name in OF_THE_CELL]
    if flags:
        line = line + Text(f" {flags[0]}", style=WARNING)
    line.rstrip()
    return line
