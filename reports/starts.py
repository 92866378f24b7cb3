"""Starts of processes in words: a block for a terminal, and a section of a page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from analysis.starts import CALLS, Cell, Range, Strategy
from measurement.starts import EAGER, PHASES, WARM, WAYS
from measurement.statistics import ENOUGH_PROCESSES
from reports import rounds
from reports.numbers import speedup, text_of, with_width

HEADS = ("", "first, s", "times eager's", "ms a call", "pays, calls")
MOST_UNDECIDED = 2


def heading(cell: Cell) -> str:
    """Return a heading that names the cell."""
    return rounds.title(cell.record)


def rows(cell: Cell) -> list[tuple[str, ...]]:
    """Return a row for each strategy with figures."""
    return [row(one) for one in cell.strategies if one.records]


def row(one: Strategy) -> tuple[str, ...]:
    """Return its name, time to the first answer, that over eager's, time per call, and when it pays."""
    first = with_width(one.first, one.average(lambda record: record.first_answer_s))
    steady = with_width(one.steady, one.average(lambda record: record.steady_ms))
    is_eager = one.name == EAGER
    gain = "" if is_eager or one.ratio is None else speedup(one.ratio.value, one.ratio)
    return one.name, first, gain, steady, "" if is_eager else pays(one)


def pays(one: Strategy) -> str:
    """Return the calls at which a strategy is shown to pay, or up to or from which it is shown not to.

    It is empty with fewer than three pairs.
    """
    if len(one.pairs) < ENOUGH_PROCESSES or one.pays:
        return ranges(one.pays)
    if not one.undecided:
        return "none"
    first, last = one.undecided[-1]
    if not math.isinf(last):
        return f"none from {calls_text(last)}"
    return "inconclusive" if first == 1 else f"none up to {calls_text(first)}"


def ranges(found: Sequence[Range]) -> str:
    """Return ranges of calls: `from 2,000`, `up to 38,000`, `60 to 700` or `all`."""
    return ", ".join(map(_range, found))


def _range(found: Range) -> str:
    low, high = found
    if math.isinf(high):
        return "all" if low == 1 else f"from {calls_text(low)}"
    return f"{'up' if low == 1 else calls_text(low)} to {calls_text(high)}"


def calls_text(calls: float) -> str:
    """Return a number of calls to two digits."""
    if calls < 100:
        return f"{calls:.0f}"
    digits = 10 ** (math.floor(math.log10(calls)) - 1)
    return f"{round(calls / digits) * digits:,.0f}"


def choices(cell: Cell) -> str:
    """Return the recommended strategy by the number of calls that a process answers.

    Where intervals do not separate strategies, it names two.
    """
    found = [(number, _named(names)) for number in CALLS if (names := cell.choice(number))]
    parts: list[str] = []
    for names, alike in itertools.groupby(found, key=lambda one: one[1]):
        first, *rest = (number for number, _ in alike)
        numbers = f"{first:,}{f' to {rest[-1]:,}' if rest else ''}"
        parts.append(f"{numbers}{'' if parts else ' call' if numbers == '1' else ' calls'}: {names}")
    return f"For a process that answers {'; '.join(parts)}." if parts else ""


def _named(names: Sequence[str]) -> str:
    if len(names) <= MOST_UNDECIDED:
        return " or ".join(sorted(names, key=[*WAYS].index))
    return f"inconclusive ({', '.join(names[:MOST_UNDECIDED])}, …)"


def warm(cell: Cell) -> str:
    """Return how much longer a start takes with a warm cache than in eager mode, by phase; nothing without both."""
    for one in cell.strategies:
        more = [(own.first_answer_s or 0.0) - (eager.first_answer_s or 0.0) for own, eager in one.pairs]
        if one.name == WARM and sum(more) > 0:
            parts = ", ".join(f"{name} {text_of(seconds)} s" for name, seconds in beyond_eager(one)[:3])
            return f"{WARM} beyond eager: {text_of(sum(more) / len(more))} s, of which {parts}."
    return ""


def notes(cell: Cell) -> list[str]:
    """Return a line for each strategy of which processes failed, and one on slow hosts."""
    failed = [f"{one.name}: {one.reason}" for one in cell.strategies if one.reason]
    return [*failed, *rounds.conditions(cell.records)]


def sentences(cell: Cell) -> list[str]:
    """Return the recommendation, the cost of a warm cache, and the notes."""
    return [*filter(None, (choices(cell), warm(cell))), *notes(cell)]


WORDS = rounds.Words(HEADS, heading, rows, sentences)


def phases(one: Strategy) -> list[tuple[str, float]]:
    """Return mean seconds by phase, the longest first, of those that take a hundredth of the whole."""
    return _longest([record.phases for record in one.records])


def beyond_eager(one: Strategy) -> list[tuple[str, float]]:
    """Return the same for the time that a strategy takes beyond eager mode in the same rounds."""
    return _longest(
        [{name: own.phases.get(name, 0.0) - eager.phases.get(name, 0.0) for name in PHASES} for own, eager in one.pairs]
    )


def _longest(processes: Sequence[Mapping[str, float]]) -> list[tuple[str, float]]:
    found = [
        (name.replace("_", " "), sum(each.get(name, 0.0) for each in processes) / max(1, len(processes)))
        for name in PHASES
    ]
    whole = sum(seconds for _, seconds in found)
    return sorted(
        ((name, seconds) for name, seconds in found if seconds > max(0.0, whole) / 100), key=lambda one: -one[1]
    )
