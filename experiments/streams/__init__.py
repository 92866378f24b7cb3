"""Gain of compiling where the length changes every call: shapes compiled one by one, dynamic, padded, recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from analysis.streams import Arm, Cell
from experiments import rounds
from experiments.evidence import Evidence
from experiments.judge import Estimate
from experiments.rounds import at_least, cell_name
from experiments.spec import Claim, Experiment, Published, Table
from measurement.starts import EAGER
from measurement.streams import COLD
from records.streams import StreamRecord
from reports.numbers import estimate, text_of

GPU = ("gpu",)  # whose graphs are recorded
REDUCED, PADDED = "automatic-cuda-graphs", "longest-cuda-graphs"  # mode="reduce-overhead", plain and padded


Figure = Callable[[Cell, str, str], Estimate]
Column = Callable[[StreamRecord], float | None]


def arm(cell: Cell, name: str) -> Arm | None:
    """Return a strategy with cold caches; None where no process of it was right."""
    return next((one for one in cell.with_caches(COLD) if one.name == name and one.records), None)


def pairs(cell: Cell, this: str, other: str) -> list[tuple[StreamRecord, StreamRecord]]:
    """Return the streams of two strategies in each round that has both."""
    mine, theirs = arm(cell, this), arm(cell, other)
    known = {record.round: record for record in theirs.records} if theirs else {}
    return [(record, known[record.round]) for record in (mine.records if mine else ()) if record.round in known]


def timed(cell: Cell, this: str, other: str, of: Column) -> Estimate:
    """Return a time of `this` over that of `other`, but the reason where one fell back to eager mode or failed."""
    compared = {one.name for one in cell.compared(COLD)}
    if fell := [name for name in (this, other) if name not in compared]:
        return f"{fell[0]} fell back to eager mode or failed"
    return rounds.paired(cell.records, pairs(cell, this, other), lambda *both: tuple(of(one) or 0.0 for one in both))


def total(cell: Cell, this: str, other: str) -> Estimate:
    """Return the ratio of total times."""
    return timed(cell, this, other, lambda record: record.total_s)


def usual(cell: Cell, this: str, other: str) -> Estimate:
    """Return the ratio of median calls, which wait for no compiler."""
    return timed(cell, this, other, lambda record: record.p50_ms)


def graphs(cell: Cell, this: str, other: str) -> Estimate:
    """Return the ratio of compilations, which depend on no host's speed."""
    counts = ((mine.compilations or 0.0, theirs.compilations or 0.0) for mine, theirs in pairs(cell, this, other))
    return rounds.ratio(counts)


def claim(sentence: str, figure: Figure, this: str, other: str, devices: tuple[str, ...] = ("cpu", "gpu")) -> Claim:
    """Return a claim on torch that a ratio is above 1 in every cell."""
    judged = lambda cell: figure(cell, this, other)  # noqa: E731
    cells = lambda evidence: [cell for cell in evidence.streams if cell.record.framework == "torch"]  # noqa: E731
    return rounds.claim(sentence, cells, judged, at_least(1), (this, other), devices)


CLAIMS = (
    claim(
        "With a CUDA graph for each size a call takes longer than eager (pytorch#188150: 25 and 22 s a step).",
        usual,
        REDUCED,
        EAGER,
        GPU,
    ),
    claim("Padded to a fixed length, CUDA graphs are faster than eager (pytorch#188150).", usual, EAGER, PADDED, GPU),
    claim("Without CUDA graphs compiling brings less than that (pytorch#188150).", usual, "automatic", PADDED, GPU),
    claim(
        "Padded to the longest, a call takes longer than unpadded (open-instruct#1445: 2.48 times a step).",
        usual,
        "longest",
        "automatic",
    ),
    claim(
        "Padding saves compilations (open-instruct#1445: 48 instead of 396).",
        graphs,
        "automatic",
        "longest",
    ),
    claim(
        "Buckets with CUDA graphs serve the usual call faster than dynamic shapes (fairchem#2161).",
        usual,
        "dynamic",
        "powers-of-two-cuda-graphs",
        GPU,
    ),
    claim(
        "Fewer recorded sizes take less time (vLLM: 67, later 35): powers of two against multiples of 64.",
        total,
        "multiples-of-64-cuda-graphs",
        "powers-of-two-cuda-graphs",
        GPU,
    ),
    claim(
        "Padding to the model's longest input is slower than not compiling (sentence-transformers).",
        usual,
        "longest",
        EAGER,
    ),
    claim(
        "dynamic=True compiles less often than a graph for each length (sentence-transformers).",
        graphs,
        "static",
        "dynamic",
    ),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return our streams by cell and strategy, and the published rows."""
    rows = [
        (
            cell_name(cell),
            one.name,
            estimate(one.total, "") if one.total else "",
            *(_mean(one, figure) for figure in FIGURES),
        )
        for cell in evidence.streams
        for one in cell.with_caches(COLD)
        if one.records
    ]
    titles = ("cell", "strategy", "whole stream, s", "median call, ms", "longest call, ms", "compiled", "recorded")
    columns = ("source", "what", "eager", "compiled", "padded", "other")
    theirs = tuple(tuple(row[name] for name in columns) for row in published)
    ours = [Table("Streams with cold caches (mean over processes)", titles, tuple(rows))] if rows else []
    return [*ours, Table("Values in the sources", columns, theirs)]


FIGURES: tuple[Callable[[StreamRecord], float | None], ...] = (
    lambda record: record.p50_ms,
    lambda record: record.longest_ms,
    lambda record: record.compilations,
    lambda record: record.recorded,
)


def _mean(one: Arm, figure: Callable[[StreamRecord], float | None]) -> str:
    found = one.average(figure)
    return "" if found is None else text_of(found)


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Streams of lengths",
    source="pytorch#188150, open-instruct#1445, fairchem#2161, vLLM, sentence-transformers",
    claims=CLAIMS,
    tables=make_tables,
    edition=("cpu-stream", "gpu-stream"),
)
