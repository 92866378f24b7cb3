"""A framework's way from eager mode to its last graph: rungs, the gain of each step, and both in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from analysis.ladders import Crossed, Ladder, Step
from analysis.settings import Shape
from measurement.text import in_markdown, markdown_table, times
from reports.content import Row, Table, grid, number
from reports.numbers import multiple, ratio, text_of

COLUMNS = ("rung", "adds", "ms (95 %)", "× before (95 %)", "× first (95 %)", "product")


def title(ladder: Ladder) -> str:
    """Return the framework, workload, shape, device and threads."""
    record = ladder.first
    parts = [record.framework, f"{record.workload} {record.implementation}", Shape.from_record(record).text]
    parts += [str(record.pass_name)] if record.pass_name != "inference" else []
    if record.batch_size is not None:
        parts += record.other_parameters
    parts += [f"{record.device} {record.dtype}", *([times(record.threads, "thread")] if record.threads else [])]
    return ", ".join(parts)


def sentences(ladder: Ladder) -> list[str]:
    """Return sentences on the total, the largest step, the combination of two crossed rungs, and missing rungs."""
    said = [_sum_up(ladder), _most(ladder)] if ladder.steps else []
    said += [_crossed(ladder.crossed)] if ladder.crossed else []
    return [*said, *(f"{mode} is missing: {why}" for mode, why in ladder.missing)]


def _sum_up(ladder: Ladder) -> str:
    first, last = ladder.rungs[0], ladder.rungs[-1]
    both = f"{text_of(first.median_ms)} to {text_of(last.median_ms)} ms"
    whole = f", {multiple(ladder.end_to_end)}" if ladder.end_to_end else ""
    return f"From {first.mode} to {last.mode}: {both}{whole}."


def _most(ladder: Ladder) -> str:
    largest = ladder.largest
    if any(step.ratio is None for step in ladder.steps):
        return "The largest step is unknown, because one step has no interval."
    if largest is None or largest.ratio is None:
        return "No step is shown to bring a speedup."
    named = f"{largest.after.mode} ({largest.after.adds}), {multiple(largest.ratio)}"
    if ladder.rivals:
        others = ", ".join(f"{step.after.mode} {multiple(step.ratio)}" for step in ladder.rivals if step.ratio)
        return f"The largest step cannot be determined: {named}, or {others}."
    return f"The largest step is {named}; it saves {text_of(largest.before.median_ms - largest.after.median_ms)} ms."


def _crossed(crossed: Crossed) -> str:
    """Return the effects of two rungs alone and together, and whether each is smaller with the other."""
    low, high = crossed.interaction.low, crossed.interaction.high
    together = "each brings less with the other" if high < 1 else "each brings more with the other"
    if low <= 1 <= high:
        together = "no interaction is shown"
    alone = " and ".join(
        f"{name} alone ({mode}) {multiple(part[0])}"
        for name, mode, part in zip(crossed.names, crossed.modes[1:], (crossed.first, crossed.second), strict=False)
    )
    return f"{alone[:1].upper()}{alone[1:]}, together {multiple(crossed.whole)}; {together}."


def table(ladder: Ladder) -> Table:
    """Return a row per rung."""
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
    """Print every ladder: its rungs, then sentences on them."""
    for ladder in ladders:
        console.print(f"\n{title(ladder)}", style="bold")
        content = table(ladder)
        # A rung's addition is dropped first, then redundant columns; digits and names of modes never are.
        console.print(grid(content.columns, content.texts, console.width, dropped=(1, 5, 4), left=(0, 1)))
        for sentence in sentences(ladder):
            console.print(sentence)


def lines(ladders: Sequence[Ladder], most: int) -> list[str]:
    """Return the first ladders in Markdown: sentences, and the rungs of as many as fit into so many lines."""
    written: list[str] = []
    for ladder in ladders:
        of_ladder = [f"- **{in_markdown(title(ladder))}**: {in_markdown(' '.join(sentences(ladder)[:3]))}"]
        ratios = ["", *(f"{ratio(step.ratio.value)}×" if step.ratio else "" for step in ladder.steps)]
        rows = [(rung.mode, text_of(rung.median_ms), each) for rung, each in zip(ladder.rungs, ratios, strict=True)]
        of_ladder += ["", *markdown_table(("rung", "ms", "× the rung before"), rows, (1, 2))]
        if len(written) + len(of_ladder) > most:
            break
        written += ["", *of_ladder] if written else of_ladder
    return written
