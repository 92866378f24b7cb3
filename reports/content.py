"""Parts of a report, independent of its format: sections of sentences, and panels of a chart with its table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.table import Table as Grid

from measurement.statistics import Interval
from measurement.text import plain
from reports.numbers import estimate, text_of

# Nobody reads more than this, and browsers draw it slowly; cuts are reported, and the CSV has all.
MOST_PANELS, MOST_ROWS, MOST_ROWS_OF_A_TABLE, MOST_CHARTS = 30, 1500, 200, 12


class Figure(NamedTuple):
    """A number as it is shown, with the value behind it."""

    text: str
    value: float


@dataclass(frozen=True)
class Row:
    """Cells of a table, and the values by which the row can be filtered."""

    cells: tuple[str | Figure, ...]
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows under titles; `total` is how many rows there were before the table was cut."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    total: int

    @classmethod
    def make(
        cls, columns: Iterable[str], things: Sequence[Any], row: Callable[[Any], Row] = lambda thing: thing
    ) -> Table:
        """Return a table of the first items, a row each."""
        return cls(tuple(columns), tuple(map(row, things[:MOST_ROWS_OF_A_TABLE])), len(things))

    def filled(self) -> Table:
        """Return the table without empty columns."""
        kept = [n for n in range(len(self.columns)) if any(row.cells[n] for row in self.rows)]
        rows = tuple(Row(tuple(row.cells[n] for n in kept), row.tags) for row in self.rows)
        return Table(tuple(self.columns[n] for n in kept), rows, self.total)

    @property
    def texts(self) -> list[list[str]]:
        """Return its cells as text, by row."""
        return [[cell if isinstance(cell, str) else cell.text for cell in row.cells] for row in self.rows]

    @property
    def left_out(self) -> int:
        """Return how many rows are cut."""
        return self.total - len(self.rows)

    def is_number(self, index: int) -> bool:
        """Return whether a column holds numbers."""
        return any(isinstance(row.cells[index], Figure) for row in self.rows)


@dataclass(frozen=True)
class Item:
    """One framework at a glance: the recommendation, as code where it can be typed, and its figures."""

    framework: str
    todo: str
    is_code: bool
    figures: str
    kind: str = ""  # use, stay or inconclusive


@dataclass(frozen=True)
class Card:
    """The answer at one shape: an item for each framework, the fastest first, and lines that hold for all."""

    items: tuple[Item, ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A picture as HTML with SVG inside; `description` describes it in words.

    `tags` name its shape, where a panel has a picture for each; a card stands above it, `notes` below.
    """

    drawing: str
    description: str
    tags: dict[str, str] = field(default_factory=dict)
    card: Card | None = None
    notes: tuple[str, ...] = ()
    first: bool = False  # whether a panel shows it until another is chosen


@dataclass(frozen=True)
class Panel:
    """Part of a section on one setting: sentences, pictures, and a table of the same numbers.

    The page selects panels by `setting`; a panel without one is always shown. `charts` are alternatives, one per shape.
    """

    title: str
    table: Table | None = None
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    setting: str = ""
    legend: str = ""  # of all its charts
    axes: str = ""  # of all its charts, in words


@dataclass(frozen=True)
class Section:
    """A part of the report. `panels` are those that are shown, of `total`."""

    key: str
    title: str
    sentences: tuple[str, ...]
    panels: tuple[Panel, ...] = ()
    total: int = 0

    @classmethod
    def make(cls, key: str, title: str, sentences: Iterable[str], groups: Sequence[Any], make: Callable) -> Section:
        """Return a section with one panel for each of `groups`, made by `make`, up to the maximum length."""
        panels: list[Panel] = []
        rows = 0
        for group in groups:
            if len(panels) == MOST_PANELS or rows >= MOST_ROWS:
                break
            panels.append(make(group))
            rows += len(panels[-1].table.rows) if panels[-1].table else 1
        return cls(key, title, tuple(sentences), tuple(panels), len(groups))

    @property
    def left_out(self) -> int:
        """Return how many panels are not shown."""
        return max(0, self.total - len(self.panels))


def number(
    value: float | None, interval: Interval | None = None, show: Callable[[float], str] = text_of
) -> str | Figure:
    """Return a figure with its interval, where it has one; a missing one is empty."""
    return "" if value is None else Figure(estimate(interval, show=show) or show(value), value)


def grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    dropped: Iterable[int] = (),
    left: Iterable[int] = (0,),
    styles: Sequence[str | None] = (),
) -> Grid:
    """Return a table for a terminal; where it is too wide, omit columns in the order of `dropped`, but no digits."""
    sizes = [max(cell_len(text) for text in (name, *column)) for name, *column in zip(columns, *rows, strict=True)]
    kept = list(range(len(columns)))
    for place in dropped:
        if sum(sizes[n] for n in kept) + 2 * (len(kept) - 1) > width:
            kept.remove(place)
    table = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for n in kept:
        first = n == kept[0]
        table.add_column(columns[n], justify="left" if n in left else "right", no_wrap=not first, overflow="fold")
    for row, style in itertools.zip_longest(rows, styles):
        table.add_row(*(plain(row[n]) for n in kept), style=style)
    return table
