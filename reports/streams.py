"""Streams in words: a block for a terminal, and the sentence with the recommendation."""

from __future__ import annotations

import math
from functools import partial

from analysis.streams import Arm, Cell
from measurement.streams import COLD, EAGER, STRATEGIES
from measurement.text import listed, percent
from reports import rounds
from reports.numbers import estimate, text_of, with_width

MOST_ROWS = 10  # of the table, its heading included
LEAST_CUT = 0.005  # share of calls that a heading names
NEW_SHAPES = 0.1  # share of eager mode's time from which a sentence names it
HEADS = ("", "cold s", "warm s", "p50 ms", "p99 ms", "longest s", "compiled", "eager from")


def heading(cell: Cell) -> str:
    """Return a heading that names the cell and its lengths."""
    one = cell.record
    cut = f", {percent(one.clipped)} of calls cut" if one.clipped >= LEAST_CUT else ""
    calls = f"{cell.number:,} calls" if cell.number else "calls"
    return f"{rounds.title(one)}: {calls} of {one.lengths}{cut}"


def strategies(cell: Cell) -> list[str]:
    """Return the strategies that have figures, eager mode first and then the fastest; the table has room for nine."""
    means: dict[str, float] = {}
    for arm in cell.arms:
        if arm.records:
            means.setdefault(arm.name, arm.average(lambda record: record.total_s) or 0.0)
    names = sorted(means, key=lambda name: (name != EAGER, means[name]))
    return names[: MOST_ROWS - 1]


def rows(cell: Cell) -> list[tuple[str, ...]]:
    """Return a row for each strategy with figures."""
    return [row(cell, name) for name in strategies(cell)]


def row(cell: Cell, name: str) -> tuple[str, ...]:
    """Return a strategy's figures: with cold caches, or else with warm ones."""
    arms = {arm.caches: arm for arm in cell.arms if arm.name == name and arm.records}
    one = arms.get(COLD) or next(iter(arms.values()))
    compiled = text_of(one.average(lambda record: record.compilations)) + ("!" if one.miscounted else "")
    return (
        name,
        total(arms.get("cold")),
        total(arms.get("warm")),
        text_of(one.average(lambda record: record.p50_ms)),
        text_of(one.average(lambda record: record.p99_ms)),
        text_of((one.average(lambda record: record.longest_ms) or 0.0) / 1000),
        compiled,
        f"call {one.fell_back}" if one.fell_back else "",
    )


def total(arm: Arm | None) -> str:
    """Return the seconds of a whole stream; with its half-width from three processes on."""
    if arm is None:
        return ""
    return with_width(arm.total, arm.average(lambda record: record.total_s))


def recommendation(cell: Cell, caches: str) -> str:
    """Return one sentence with the recommendation; empty with fewer than three processes."""
    number = cell.number
    names = cell.choice(caches, number) if number else ()
    if not names:
        return ""
    begin = f"With {caches} caches"
    if len(names) > 1:
        return f"{begin}: inconclusive between {listed(names)}."
    arms = {arm.name: arm for arm in cell.with_caches(caches)}
    best, eager = arms[names[0]], arms.get(EAGER)
    if best.name == EAGER:
        others = [arm.name for arm in cell.compared(caches) if arm.name != EAGER]
        less = f", less than {listed(others)}" if others else ""
        return f"{begin} stay with eager: {estimate(best.total)} s for the stream{less}."
    summary = STRATEGIES[best.name].summary
    base = f", eager {estimate(eager.total)} s" if eager and eager.total else ""
    return f"{begin} use {best.name} ({summary}): {estimate(best.total)} s for the stream{base}."


def choices(cell: Cell, caches: str) -> str:
    """Return the recommended strategy by the number of calls."""
    return rounds.choices(f"With {caches} caches, for", partial(cell.choice, caches), [*STRATEGIES])


def notes(cell: Cell) -> list[str]:
    """Return the limits of strategies, where they fell back to eager mode, and slow hosts, a line each."""
    new = [_new_shapes(arm) for arm in cell.arms if arm.name == EAGER and arm.caches == cell.arms[0].caches]
    found = {}
    for arm in cell.arms:
        if arm.fell_back and not arm.reason:
            found[arm.name] = f"{arm.name} runs eager mode's code for new lengths from call {arm.fell_back} on."
        elif said := rounds.said(arm):
            found[arm.name] = " ".join(said)
    return [*filter(None, new), *found.values(), *rounds.conditions(cell.records)]


def _new_shapes(eager: Arm) -> str:
    """Return the share of time that eager mode takes for the first calls of shapes; empty where that is little."""
    share = eager.average(
        lambda one: None if one.new_shapes_s is None else one.new_shapes_s / (one.total_s or math.inf)
    )
    if share is None or share < NEW_SHAPES:
        return ""
    shapes = eager.average(lambda record: record.shapes) or 0
    found = f"The first calls of {shapes - 1:.0f} new shapes cost eager mode {percent(share)} of its time."
    for policy in eager.policies_on_new_shapes:
        found += f" {policy.of_new_shapes}; POLICY={policy.name}={policy.others[0]} avoids it."
    return found


def sentences(cell: Cell) -> list[str]:
    """Return recommendations for each kind of caches, and the notes."""
    kinds = dict.fromkeys(arm.caches for arm in cell.arms)
    found = (say(cell, kind) for kind in kinds for say in (recommendation, choices))
    return [*filter(None, found), *notes(cell)]


WORDS = rounds.Words(HEADS, heading, rows, sentences)
