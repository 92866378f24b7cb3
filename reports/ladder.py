"""A framework's way from eager mode to its last graph: rungs, what each step brings, and what that is in words."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.console import Console
from rich.table import Table as Grid

from measurement.statistics import Interval
from measurement.text import in_markdown, markdown_table
from reports.content import Row, Table, number
from reports.numbers import multiple, ratio, text_of

COLUMNS = (*("rung", "adds", "ms (95 %)", "× the rung before (95 %)", "× the first (95 %)", "product of the steps"),)


@dataclass(frozen=True)
class Rung:
    """A measured mode of the ladder; `adds` is what the measured one before it lacks. `latency` is in ms."""

    mode: str
    adds: str
    median_ms: float
    latency: Interval | None


@dataclass(frozen=True)
class Step:
    """From one measured rung to the next: `ratio` is the time before over the time after, None without an interval."""

    before: Rung
    after: Rung
    ratio: Interval | None


@dataclass(frozen=True)
class Crossed:
    """Two things in both orders: what each brings alone and on top of the other, and how far that differs.

    `interaction` is what the first brings on top of the second over what it brings alone; 1 where they multiply.
    """

    names: tuple[str, str]
    modes: tuple[str, str, str, str]  # with neither, the first, the second, both
    first: tuple[Interval, Interval]  # alone, and on top of the other
    second: tuple[Interval, Interval]
    whole: Interval
    interaction: Interval


@dataclass(frozen=True)
class Ladder:
    """The rungs of one framework at one shape; `since` has each rung's ratio to the first, measured as such.

    `largest` is the step that brings most, and `rivals` are those that the intervals cannot tell from it. `missing`
    are rungs without figures and excluded ones, with the reason.
    """

    framework: str
    title: str
    rungs: tuple[Rung, ...]
    steps: tuple[Step, ...]
    since: tuple[Interval | None, ...]
    largest: Step | None = None
    rivals: tuple[Step, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    crossed: Crossed | None = None
    launches: int = 0

    @cached_property
    def products(self) -> list[float | None]:
        """For each rung what the steps up to it multiply to; None from a step without a ratio on."""
        ratios = [step.ratio.value if step.ratio else math.nan for step in self.steps]
        products = itertools.accumulate(ratios, operator.mul, initial=1.0)
        return [None if math.isnan(value) else value for value in products] if self.rungs else []

    @property
    def product(self) -> float | None:
        """What all steps multiply to."""
        return self.products[-1] if self.steps else None

    @property
    def whole(self) -> Interval | None:
        """The first rung's time over the last one's, measured as such."""
        return self.since[-1] if self.since else None

    @property
    def sentences(self) -> list[str]:
        """What the whole is, which step is the largest, whether the steps account for the whole, what is missing."""
        return [*self._told(), *self._crossed(), *(f"{mode} is missing: {why}" for mode, why in self.missing)]

    def _told(self) -> Iterator[str]:
        if not self.steps:
            return
        first, last = self.rungs[0], self.rungs[-1]
        times = f"{text_of(first.median_ms)} to {text_of(last.median_ms)} ms"
        whole = f", {as_ratio(self.whole)}" if self.whole else ""
        yield f"From {first.mode} to {last.mode}: {times}{whole}."
        yield self._most()
        for step in self.steps:
            if step.ratio and step.ratio.high < 1:
                yield f"{step.after.mode} ({step.after.adds}) makes it slower: {as_ratio(step.ratio)}."
        if self.product is not None and self.whole:
            inside = self.whole.low <= self.product <= self.whole.high
            off = abs(self.product / self.whole.value - 1)
            told = "within" if inside else "outside"
            yield (
                f"The steps multiply to {ratio(self.product)}×, {told} that interval, {off:.1%} from the whole "
                "as it was measured."
            )

    def _most(self) -> str:
        largest = self.largest
        if any(step.ratio is None for step in self.steps):
            return "Which step is the largest is not known: one has no interval."
        if largest is None or largest.ratio is None:
            return "No step is shown to make it faster."
        named = f"{largest.after.mode} ({largest.after.adds}), {as_ratio(largest.ratio)}"
        if self.rivals:
            others = ", ".join(f"{step.after.mode} {as_ratio(step.ratio)}" for step in self.rivals if step.ratio)
            return f"Which step is the largest the intervals cannot tell: {named}, or {others}."
        saved = text_of(largest.before.median_ms - largest.after.median_ms)
        of_it = ""
        if self.whole and self.whole.low > 1 and (share := _share(largest.ratio, self.whole)) <= 1:
            of_it = f", {share:.0%} of the way on a logarithmic scale"
        return f"The largest step is {named}; it saves {saved} ms{of_it}."

    def _crossed(self) -> Iterator[str]:
        if not (crossed := self.crossed):
            return
        one, other = crossed.names
        _, first, second, both = crossed.modes
        of_it = ""
        if crossed.whole.low > 1 and (share := _share(crossed.first[0], crossed.whole)) <= 1:
            of_it = f", {share:.0%} of the way to {both} on a logarithmic scale"
        yield (
            f"{one.capitalize()} alone ({first}) brings {as_ratio(crossed.first[0])}{of_it}; on top of {other} ({both} "
            f"over {second}) {as_ratio(crossed.first[1])}."
        )
        yield (
            f"{other.capitalize()} alone ({second}) bring {as_ratio(crossed.second[0])}; on top of {one} ({both} over "
            f"{first}) {as_ratio(crossed.second[1])}."
        )
        low, high = crossed.interaction.low, crossed.interaction.high
        told = "each brings less where the other is there" if high < 1 else "each brings more where the other is there"
        if low <= 1 <= high:
            told = "that they depend on each other is not shown"
        yield f"Together {as_ratio(crossed.whole)}; {told} (by {as_ratio(crossed.interaction)})."


def _share(part: Interval, whole: Interval) -> float:
    """How much of the way a part of it is, on a logarithmic scale; above 1 where another part goes back."""
    return math.log(part.value) / math.log(whole.value)


def as_ratio(interval: Interval) -> str:
    """A ratio with its interval."""
    return multiple(interval)


def ends(interval: Interval) -> str:
    """The interval's ends."""
    return f"{ratio(interval.low)} to {ratio(interval.high)}×"


def table(ladder: Ladder) -> Table:
    """A row a rung."""
    steps: Sequence[Step | None] = (None, *ladder.steps) if ladder.rungs else ()
    rows = []
    for rung, step, since, product in zip(ladder.rungs, steps, ladder.since, ladder.products, strict=True):
        brings, since = step.ratio if step else None, since if step else None
        cells = (
            rung.mode,
            rung.adds,
            number(rung.median_ms, rung.latency),
            number(brings and brings.value, brings, ratio),
            number(since and since.value, since, ratio),
            number(product, show=ratio) if step else "",
        )
        rows.append(Row(cells))
    return Table(COLUMNS, tuple(rows), len(rows))


def show(ladders: Sequence[Ladder], console: Console) -> None:
    """Print every ladder: its rungs, then what they say."""
    for ladder in ladders:
        console.print(f"\n{ladder.title}", style="bold")
        grid = Grid(padding=(0, 1))
        for name in ("rung", "adds", "ms", "× before", "× first", "product"):
            grid.add_column(name, justify="left" if name in ("rung", "adds") else "right", no_wrap=name != "adds")
        for row in table(ladder).rows:
            mode, adds, *figures = (cell if isinstance(cell, str) else cell.text for cell in row.cells)
            grid.add_row(mode, adds, *(figure.replace(" (", "\n(") for figure in figures))
        console.print(grid)
        for sentence in ladder.sentences:
            console.print(sentence, highlight=False)


def lines(ladders: Sequence[Ladder], most: int) -> list[str]:
    """The first ladders in Markdown: what they say, and the rungs of as many as fit into so many lines."""
    written: list[str] = []
    for ladder in ladders:
        of_ladder = [f"- **{in_markdown(ladder.title)}**: {in_markdown(' '.join(ladder.sentences[:3]))}"]
        ratios = ["", *(f"{ratio(step.ratio.value)}×" if step.ratio else "" for step in ladder.steps)]
        rows = [(rung.mode, text_of(rung.median_ms), each) for rung, each in zip(ladder.rungs, ratios, strict=True)]
        of_ladder += ["", *markdown_table(("rung", "ms", "× the rung before"), rows, (1, 2))]
        if len(written) + len(of_ladder) > most:
            break
        written += ["", *of_ladder] if written else of_ladder
    return written
