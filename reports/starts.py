"""Starts of processes in words: a block for a terminal, and a section of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.starts import Cell, Strategy
from measurement.starts import EAGER, PHASES, WARM, WAYS
from reports import rounds
from reports.numbers import speedup, text_of, with_width

HEADS = ("", "first, s", "times eager's", "ms a call", "pays, calls")


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
    return one.name, first, gain, steady, "" if is_eager else rounds.pays(one)


def choices(cell: Cell) -> str:
    """Return the recommended strategy by the number of calls that a process answers."""
    return rounds.choices("For a process that answers", cell.choice, [*WAYS])


def warm(cell: Cell) -> str:
    """Return how much longer a start takes with a warm cache than in eager mode, by phase; nothing without both."""
    for one in cell.strategies:
        more = [(own.first_answer_s or 0.0) - (eager.first_answer_s or 0.0) for own, eager in one.pairs]
        if one.name == WARM and sum(more) > 0:
            parts = ", ".join(f"{name} {text_of(seconds)} s" for name, seconds in beyond_eager(one)[:3])
            return f"{WARM} beyond eager: {text_of(sum(more) / len(more))} s, of which {parts}."
    return ""


def notes(cell: Cell) -> list[str]:
    """Return a line for each strategy of which processes failed or have flags on graphs, and one on slow hosts."""
    return [*(text for one in cell.strategies for text in rounds.said(one)), *rounds.conditions(cell.records)]


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
