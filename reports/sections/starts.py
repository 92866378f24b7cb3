"""A page on starts: total time over calls, and the cost of each strategy until the first answer."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.starts import Cell, Strategy
from measurement.starts import EAGER, WAYS
from reports import rounds as words
from reports import starts
from reports.content import Figure, Panel, Row, Section, Table
from reports.sections import rounds

SENTENCES = (
    "The time of a process runs from exec until its first output exists and agrees with the reference. In each round "
    "every strategy starts once, in random order, and ratios are paired by round.",
    "The total for N calls is the time to the first answer and N - 1 calls at the process's steady latency.",
)
AXES = "vertical: seconds since exec; horizontal: finished calls; both logarithmic, with bands for 95 % intervals"
COLUMNS = (
    "strategy",
    "s to first answer",
    "over eager",
    "ms a call",
    "pays, calls",
    "inconclusive, calls",
    "MB peak",
    "MB artefact",
    "longest",
)


def html(cells: Sequence[Cell], title: str, command: str) -> str:
    """Return the whole page of a run, with a panel for each cell."""
    section = Section.make("starts", "From a fresh process to the first correct answer", SENTENCES, cells, _panel)
    return rounds.html(section, WAYS, list(map(starts.heading, cells)), title, command)


def _panel(cell: Cell) -> Panel:
    drawn = {one.name: rounds.curve(one) for one in cell.strategies if one.records}
    charts, legend = rounds.charts(drawn, WAYS, "Total seconds over calls; the table holds the starts")
    table = Table.make(COLUMNS, [one for one in cell.strategies if one.records], _row)
    return Panel(
        starts.heading(cell), table, charts, tuple(starts.sentences(cell)), legend=legend, axes=AXES if charts else ""
    )


def _row(one: Strategy) -> Row:
    cells = starts.row(one)
    peak = max(max(record.memory_bytes or 0, record.children_bytes or 0) for record in one.records) / 1e6
    size = (one.records[-1].artefact_bytes or 0) / 1e6
    longest = ", ".join(f"{name} {seconds:.2g} s" for name, seconds in starts.phases(one)[:3])
    return Row(
        (
            one.name,
            Figure(cells[1], one.average(lambda record: record.first_answer_s) or 0.0),
            cells[2],
            Figure(cells[3], one.average(lambda record: record.steady_ms) or 0.0),
            cells[4],
            "" if one.name == EAGER else words.ranges(one.undecided),
            Figure(f"{peak:,.0f}", peak),
            Figure(f"{size:,.3g}", size) if size else "",
            longest,
        )
    )
