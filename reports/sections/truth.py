"""Which mode is nearer the truth: the errors of eager and of every graph mode against one reference in float64."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from measurement.text import times
from reports.content import Panel, Row, Section, Table, number
from reports.facts import Pair
from reports.material import Material

REFERENCES = ("numpy", "its own eager mode in float64")
# Errors of rounding that differ by less than this are alike.
ALIKE = 1.25
SENTENCE = (
    "Does compiling change the numbers? Errors of the outputs against one reference in float64, as shares of the "
    f"outputs' root mean square, medians over cells; within {ALIKE - 1:.0%} of each other they are called alike."
)
COLUMNS = (
    "framework",
    "mode",
    "dtype",
    "workload",
    "cells",
    "error of eager",
    "error of the graph",
    "nearer the truth",
)


def section(material: Material) -> Section | None:
    """One table, a row for each graph mode, dtype and workload; none where no error against the oracle is known."""
    groups: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    for pair in material.pairs:
        if all(_is_known(point) for point in (pair.eager, pair.graph)):
            point = pair.graph
            groups[point["framework"], point["mode"], point["dtype"], point["workload"]].append(pair)
    if not groups:
        return None
    table = Table.make(COLUMNS, [_row(key, pairs) for key, pairs in groups.items()])
    return Section("truth", "Accuracy", (SENTENCE, _summary(groups)), (Panel("Errors", table),), 1)


def _is_known(point) -> bool:
    return point["parity_rel_rms_err"] is not None and point["parity_reference"] in REFERENCES


def _errors(pairs: list[Pair]) -> tuple[float, float]:
    """Median error of eager, and of the graph."""
    eager, graph = ([getattr(pair, who)["parity_rel_rms_err"] for pair in pairs] for who in ("eager", "graph"))
    return median(eager), median(graph)


def _nearer(eager: float, graph: float) -> str:
    if graph * ALIKE < eager:
        return "graph"
    return "eager" if eager * ALIKE < graph else "alike"


def _row(key: tuple[str, ...], pairs: list[Pair]) -> Row:
    eager, graph = _errors(pairs)
    figures = (number(len(pairs)), number(eager), number(graph), _nearer(eager, graph))
    return Row((*key, *figures))


def _summary(groups: dict[tuple[str, ...], list[Pair]]) -> str:
    answers = [_nearer(*_errors(pairs)) for pairs in groups.values()]
    return (
        f"Of {times(len(answers), 'row')}, the graph is nearer in {answers.count('graph')}, eager in "
        f"{answers.count('eager')}, and in {answers.count('alike')} they are alike."
    )
