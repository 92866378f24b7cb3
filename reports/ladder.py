"""A framework's way from eager mode to its last graph: rungs, what each step brings, and what that is in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table as Grid

from analysis.ladders import Ladder, Step
from measurement.statistics import Interval
from measurement.text import in_markdown, markdown_table
from reports.content import Row, Table, number
from reports.numbers import multiple, ratio, text_of

COLUMNS = (*("rung", "adds", "ms (95 %)", "× the rung before (95 %)", "× the first (95 %)", "product of the steps"),)


def sentences(ladder: Ladder) -> list[str]:
    """Return what the whole is, which step is the largest, whether the steps account for the whole, what is missing."""
    return [*_steps(ladder), *_crossed(ladder), *(f"{mode} is missing: {why}" for mode, why in ladder.missing)]


def _steps(ladder: Ladder) -> Iterator[str]:
    if not ladder.steps:
        return
    first, last = ladder.rungs[0], ladder.rungs[-1]
    times = f"{text_of(first.median_ms)} to {text_of(last.median_ms)} ms"
    whole = f", {multiple(ladder.whole)}" if ladder.whole else ""
    yield f"From {first.mode} to {last.mode}: {times}{whole}."
    yield _most(ladder)
    for step in ladder.steps:
        if step.ratio and step.ratio.high < 1:
            yield f"{step.after.mode} ({step.after.adds}) makes it slower: {multiple(step.ratio)}."
    if ladder.product is not None and ladder.whole:
        inside = ladder.whole.low <= ladder.product <= ladder.whole.high
        off = abs(ladder.product / ladder.whole.value - 1)
        told = "within" if inside else "outside"
        yield (
            f"The steps multiply to {ratio(ladder.product)}×, {told} that interval, {off:.1%} from the whole "
            "as it was measured."
        )


def _most(ladder: Ladder) -> str:
    largest = ladder.largest
    if any(step.ratio is None for step in ladder.steps):
        return "Which step is the largest is not known: one has no interval."
    if largest is None or largest.ratio is None:
        return "No step is shown to make it faster."
    named = f"{largest.after.mode} ({largest.after.adds}), {multiple(largest.ratio)}"
    if ladder.rivals:
        others = ", ".join(f"{step.after.mode} {multiple(step.ratio)}" for step in ladder.rivals if step.ratio)
        return f"Which step is the largest is inconclusive: {named}, or {others}."
    saved = text_of(largest.before.median_ms - largest.after.median_ms)
    of_it = ""
    if ladder.whole and ladder.whole.low > 1 and (share := _share(largest.ratio, ladder.whole)) <= 1:
        of_it = f", {share:.0%} of the way on a logarithmic scale"
    return f"The largest step is {named}; it saves {saved} ms{of_it}."


def _crossed(ladder: Ladder) -> Iterator[str]:
    if not (crossed := ladder.crossed):
        return
    one, other = crossed.names
    _, first, second, both = crossed.modes
    of_it = ""
    if crossed.whole.low > 1 and (share := _share(crossed.first[0], crossed.whole)) <= 1:
        of_it = f", {share:.0%} of the way to {both} on a logarithmic scale"
    yield (
        f"{one.capitalize()} alone ({first}) brings {multiple(crossed.first[0])}{of_it}; on top of {other} ({both} "
        f"over {second}) {multiple(crossed.first[1])}."
    )
    yield (
        f"{other.capitalize()} alone ({second}) bring {multiple(crossed.second[0])}; on top of {one} ({both} over "
        f"{first}) {multiple(crossed.second[1])}."
    )
    low, high = crossed.interaction.low, crossed.interaction.high
    told = "each brings less where the other is there" if high < 1 else "each brings more where the other is there"
    if low <= 1 <= high:
        told = "that they depend on each other is not shown"
    yield f"Together {multiple(crossed.whole)}; {told} (by {multiple(crossed.interaction)})."


def _share(part: Interval, whole: Interval) -> float:
    """Return how much of the way a part of it is, on a logarithmic scale; above 1 where another part goes back."""
    return math.log(part.value) / math.log(whole.value)


def table(ladder: Ladder) -> Table:
    """Return a row a rung."""
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
        for sentence in sentences(ladder):
            console.print(sentence, highlight=False)


def lines(ladders: Sequence[Ladder], most: int) -> list[str]:
    """Return the first ladders in Markdown: what they say, and the rungs of as many as fit into so many lines."""
    written: list[str] = []
    for ladder in ladders:
        of_ladder = [f"- **{in_markdown(ladder.title)}**: {in_markdown(' '.join(sentences(ladder)[:3]))}"]
        ratios = ["", *(f"{ratio(step.ratio.value)}×" if step.ratio else "" for step in ladder.steps)]
        rows = [(rung.mode, text_of(rung.median_ms), each) for rung, each in zip(ladder.rungs, ratios, strict=True)]
        of_ladder += ["", *markdown_table(("rung", "ms", "× the rung before"), rows, (1, 2))]
        if len(written) + len(of_ladder) > most:
            break
        written += ["", *of_ladder] if written else of_ladder
    return written
