"""Cells over many runs, for the terminal, Markdown and a page: a line each, and its steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.console import Console, JustifyMethod
from rich.table import Table as Grid

from measurement.statistics import Interval
from measurement.text import times
from reports.content import Figure, Panel, Row, Section, Table
from reports.names import Names
from reports.numbers import text_of, with_width

TITLE = "How it went"
METHOD = (
    "A step is a change of 2 % or more where binary segmentation splits a series. Student's t-test uses the larger "
    "scatter of processes or of runs, with Bonferroni's correction for all splits and lines. A step that all "
    "modes of a shape share may be the machine's."
)
MOST_RUNS = 12  # that have a column
LEAST = 1.25  # the factor that the height of a series spans at least, or scatter would fill it


@dataclass(frozen=True)
class Moment:
    """A run on the axis: its name, place and start, versions by framework, the suite's revision."""

    name: str
    place: str
    began: str
    versions: dict[str, str]
    revision: str


@dataclass(frozen=True)
class Mark:
    """A step at a run: the ratio of the levels after and before; whether all modes of the shape made it."""

    at: int
    ratio: Interval
    shared: bool


@dataclass(frozen=True)
class Line:
    """One cell: latency (ms) in each run, None where it has none; its steps; its machine, if several."""

    cell: str
    latency: tuple[Interval | None, ...]
    steps: tuple[Mark, ...]
    machine: str = ""

    @property
    def ends(self) -> str:
        """Return its first and its last latency."""
        known = [interval.value for interval in self.latency if interval]
        return f"{text_of(known[0])} → {text_of(known[-1])}"

    @property
    def bars(self) -> str:
        """Return its latency over the runs, as characters."""
        return bars([interval and interval.value for interval in self.latency])


@dataclass(frozen=True)
class History:
    """All lines, over these runs in the order in which they were made."""

    moments: tuple[Moment, ...]
    lines: tuple[Line, ...]
    cautions: tuple[str, ...] = ()

    @cached_property
    def labels(self) -> list[str]:
        """Return the labels of the axis: the date, then differences of versions and revision between the runs."""
        names = dict.fromkeys(name for moment in self.moments for name in moment.versions)
        varying = [name for name in names if len({moment.versions.get(name) for moment in self.moments}) > 1]
        revisions = len({moment.revision for moment in self.moments}) > 1
        labels = []
        for moment in self.moments:
            versions = [f"{name} {moment.versions[name]}" for name in varying if name in moment.versions]
            parts = [moment.began[:10], *versions, moment.revision if revisions else ""]
            labels.append(" ".join(filter(None, parts)) or moment.name)
        if len(set(labels)) == len(labels):
            return labels
        return [f"{label} {moment.began[11:16]}" for label, moment in zip(labels, self.moments, strict=True)]

    @cached_property
    def names(self) -> Names:
        """Return short names of the cells."""
        return Names(dict.fromkeys(line.cell for line in self.lines))

    def name(self, line: Line) -> str:
        return self.names[line.cell] + (f" ({line.machine})" if line.machine else "")


def answer(history: History) -> str:
    """Return how many lines stepped, and how."""
    steps = [mark for line in history.lines for mark in line.steps if not mark.shared]
    shared = sum(mark.shared for line in history.lines for mark in line.steps)
    slower = sum(mark.ratio.value > 1 for mark in steps)
    parts = [f"{times(len(history.lines), 'cell')} over {times(len(history.moments), 'run')}"]
    parts += [f"{times(slower, 'step')} up (slower)", f"{times(len(steps) - slower, 'step')} down (faster)"]
    return ", ".join([*parts, *([f"{shared} that all modes share"] if shared else [])])


def step(mark: Mark, run: str) -> str:
    """Return `slower, 5: +8.1 % (7.6 to 8.6)` of the fifth run; `run` names it."""
    kind = "all modes" if mark.shared else "slower" if mark.ratio.value > 1 else "faster"
    change, low, high = (100 * (ratio - 1) for ratio in mark.ratio)
    return f"{kind}, {run}: {change:+.1f} % ({low:+.1f} to {high:+.1f})"


def show(history: History, console: Console) -> None:
    """Print a line per cell: its first and its last latency, the range between, and its steps."""
    for caution in history.cautions:
        console.print(caution, style="yellow")
    for number, (label, moment) in enumerate(zip(history.labels, history.moments, strict=True), 1):
        console.print(f"{number}: {label}: {moment.name}", soft_wrap=True)
    grid = Grid(title=history.names.shared or None, title_justify="left")
    for title in ("cell", "ms", "over the runs", "steps"):
        justify: JustifyMethod = "right" if title == "ms" else "left"
        grid.add_column(title, justify=justify, overflow="fold", no_wrap=title in ("ms", "over the runs"))
    for line in history.lines:
        slower = [mark.ratio.value > 1 for mark in line.steps if not mark.shared]
        style = "red" if any(slower) else "green" if slower else None
        steps = "\n".join(step(mark, str(mark.at + 1)).partition(" (")[0] for mark in line.steps)
        grid.add_row(history.name(line), line.ends, line.bars, steps, style=style)
    console.print(grid)
    console.print(METHOD, style="dim")
    console.print(answer(history) + ".", style="bold")


def bars(values: Sequence[float | None]) -> str:
    """Return a series as characters, the lowest and the highest at both ends; a gap where it has none."""
    known = [value for value in values if value]
    low, high = min(known), max(known)
    steps = "▁▂▃▄▅▆▇█"
    scale = (len(steps) - 1) / math.log(max(high / low, LEAST))
    return "".join(steps[round(math.log(value / low) * scale)] if value else " " for value in values)


def section(history: History, title: str = TITLE, key: str = "history") -> Section:
    """Return the history as a part of a page, under this title; `key` is its address within the page."""
    sentences = (*history.cautions, *([f"All cells: {history.names.shared}."] if history.names.shared else ()), METHOD)
    runs = [Row((label, moment.name)) for label, moment in zip(history.labels, history.moments, strict=True)]
    panels = Panel("Cells", table(history)), Panel("Runs", Table.make(("time and differences", "run"), runs))
    return Section(key, f"{title}: {answer(history)}", sentences, panels, len(panels))


def table(history: History) -> Table:
    """Return a row per cell: its steps, and latency with the half-width of its interval in the latest runs."""
    measured = [n for n in range(len(history.moments)) if any(line.latency[n] for line in history.lines)]
    latest = measured[-MOST_RUNS:]
    columns = ("cell", "ms", "over the runs", "steps", *(f"{history.labels[n]}, ms" for n in latest))

    def row(line: Line) -> Row:
        steps = "; ".join(step(mark, history.labels[mark.at]) for mark in line.steps)
        return Row((history.name(line), line.ends, line.bars, steps, *(_figure(line.latency[n]) for n in latest)))

    return Table.make(columns, history.lines, row).filled()


def _figure(interval: Interval | None) -> Figure | str:
    if interval is None:
        return ""
    return Figure(with_width(interval), interval.value)
