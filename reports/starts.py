"""Starts of processes in words: a block for a terminal, and a section of a page."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence

from analysis.starts import CALLS, BreakEven, Cell, Choice, Strategy
from measurement.starts import EAGER, PHASES
from measurement.statistics import Interval
from measurement.text import plain, times
from reports.numbers import plus_minus, speedup, text_of

WIDTH = 80
HEADS = ("", "first, s", "over eager", "ms a call", "pays after")
MOST_UNDECIDED = 2


def heading(cell: Cell) -> str:
    """Return what a cell is."""
    one = cell.record
    version = f" {one.framework_version}" if one.framework_version else ""
    rest = cell.name.rpartition("/")[2] or cell.name
    return f"{one.framework}{version} {one.workload} ({rest}), {one.device} {one.dtype}, {times(one.threads, 'thread')}"


def rows(cell: Cell) -> list[tuple[str, ...]]:
    """Return a row for each strategy; one without figures says why."""
    return [row(one) for one in cell.strategies]


def row(one: Strategy) -> tuple[str, ...]:
    """Return its name, time to the first answer, that over eager's, time per call, and when it pays; or why not."""
    if not one.records:
        return one.name, one.reason
    shown = [record.first_answer_s or 0.0 for record in one.records]
    first, steady = one.first, one.steady
    left = _figure(first) if first else text_of(sum(shown) / len(shown))
    calls = [record.steady_ms or 0.0 for record in one.records]
    right = _figure(steady) if steady else text_of(sum(calls) / len(calls))
    is_eager = one.name == EAGER
    gain = "" if is_eager or one.ratio is None else speedup(one.ratio.value, one.ratio)
    return one.name, left, gain, right, "" if is_eager or len(one.pairs) < 3 else pays(one.break_even)


def _figure(interval: Interval) -> str:
    return f"{text_of(interval.value)} {plus_minus(interval)}"


def pays(found: BreakEven | None) -> str:
    """Return from how many calls on a strategy pays."""
    if found is None:
        return "no calls"
    if math.isinf(found.high):
        return "inconclusive"
    return f"{calls_text(found.calls)} calls"


def calls_text(calls: float) -> str:
    """Return a number of calls to two digits."""
    if calls < 100:
        return f"{calls:.0f}"
    digits = 10 ** (math.floor(math.log10(calls)) - 1)
    return f"{round(calls / digits) * digits:,.0f}"


def choices(cell: Cell, calls: Sequence[int] = CALLS, rivals: bool = True) -> str:
    """Return what to take by the number of calls that a process answers; with `rivals` between what is undecided."""
    found = [choice for choice in map(cell.choice, calls) if choice.names]
    parts: list[str] = []
    for names, alike in itertools.groupby(found, key=lambda choice: _named(choice, rivals)):
        first, *rest = (choice.calls for choice in alike)
        numbers = f"{first:,}{f' to {rest[-1]:,}' if rest else ''}"
        parts.append(f"{numbers}{'' if parts else ' call' if numbers == '1' else ' calls'}: {names}")
    return f"For a process that answers {'; '.join(parts)}." if parts else ""


def _named(choice: Choice, rivals: bool) -> str:
    if len(choice.names) == 1:
        return choice.names[0]
    between = ", ".join(choice.names[:MOST_UNDECIDED])
    return (
        f"inconclusive ({between}{', …' if len(choice.names) > MOST_UNDECIDED else ''})" if rivals else "inconclusive"
    )


def block(cell: Cell) -> list[str]:
    """Return at most ten lines of at most 80 columns."""
    table = [HEADS, *rows(cell)]
    full = [texts for texts in table if len(texts) == len(HEADS)]
    widths = [max(len(texts[place]) for texts in full) for place in range(len(HEADS))]
    widths[0] = max(len(texts[0]) for texts in table)
    lines = [textwrap.shorten(plain(heading(cell)), WIDTH, placeholder=" …")]
    for name, *texts in table:
        if len(texts) == len(HEADS) - 1:
            cells = (text.rjust(width) for text, width in zip(texts, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip()[:WIDTH])
        else:
            lines.append(textwrap.shorten(plain(f"{name}: {texts[0]}"), WIDTH, placeholder=" …"))
    advice = choices(cell), choices(cell, rivals=False), choices(cell, CALLS[1:3], rivals=False)
    return [*lines, *filter(None, [next((text for text in advice if len(text) <= WIDTH), "")])]


def phases(one: Strategy) -> list[tuple[str, float]]:
    """Return mean seconds by phase, the longest first, of those that take a hundredth of the whole."""
    found = []
    for name in PHASES:
        values = [record.phases.get(name, 0.0) for record in one.records]
        found.append((name.replace("_", " "), sum(values) / max(1, len(values))))
    whole = sum(seconds for _, seconds in found)
    return sorted(((name, seconds) for name, seconds in found if seconds >= whole / 100), key=lambda one: -one[1])


def blocks(cells: Sequence[Cell]) -> list[str]:
    """Return the lines of all cells, with an empty one between them."""
    lines: list[str] = []
    for cell in cells:
        lines += ["", *block(cell)] if lines else block(cell)
    return lines
