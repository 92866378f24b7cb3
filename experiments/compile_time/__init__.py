"""Cost of compiling in a fresh process: whole models, repeated blocks, and caches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from analysis.rounds import mean
from analysis.starts import Cell, Strategy, total_s
from experiments import rounds
from experiments.evidence import Evidence
from experiments.judge import Estimate, between
from experiments.rounds import Judge, at_least, cell_name
from experiments.spec import Claim, Experiment, Published, Table
from measurement.starts import COMPILE, EAGER, REGIONAL, SHIPPED, WARM
from measurement.statistics import Interval
from records.starts import StartRecord
from reports.numbers import estimate

Figure = Callable[[Cell, str, str], Estimate]
ALIKE = (0.97, 1.03)
STEPS = 1_900  # of the training of physical-ai-studio#477


def strategy(cell: Cell, name: str) -> Strategy | None:
    """Return a strategy of a cell; None where no process of it was right."""
    return next((one for one in cell.strategies if one.name == name and one.records), None)


def pairs(cell: Cell, this: str, other: str) -> list[tuple[StartRecord, StartRecord, StartRecord]]:
    """Return the starts of two strategies and of eager mode in each round that has all three."""
    found = [strategy(cell, name) for name in (this, other)]
    if not all(found):
        return []
    mine, theirs = ({record.round: record for record in one.records} for one in found if one)
    eager = found[0].eager if found[0] else {}
    return [(mine[number], theirs[number], eager[number]) for number in mine if number in theirs and number in eager]


def ratio(cell: Cell, this: str, other: str, of: Callable[[StartRecord, StartRecord], float]) -> Estimate:
    """Return a figure of `this` over that of `other`, paired by round; `of` takes a start and eager mode's."""
    return rounds.paired(
        cell.records,
        pairs(cell, this, other),
        lambda mine, theirs, eager: (of(mine, eager), of(theirs, eager)),
    )


def added_s(start: StartRecord, eager: StartRecord) -> float:
    """Return the seconds that a strategy adds to eager mode's first answer, without imports, as the sources count."""
    mine, theirs = ((one.first_answer_s or 0.0) - (one.imports_s or 0.0) for one in (start, eager))
    return mine - theirs


def cost(cell: Cell, this: str, other: str) -> Estimate:
    """Return the ratio of the seconds that two strategies add."""
    return ratio(cell, this, other, added_s)


def steady(cell: Cell, this: str, other: str) -> Estimate:
    """Return the ratio of times per call after the first answer."""
    return ratio(cell, this, other, lambda start, _: start.steady_ms or 0.0)


def total(cell: Cell, this: str, other: str) -> Estimate:
    """Return the ratio of seconds until `STEPS` calls are answered."""
    return ratio(cell, this, other, lambda start, _: total_s(start, STEPS))


def claim(sentence: str, figure: Figure, this: str, other: str, judge: Judge) -> Claim:
    """Return a claim on a ratio of two strategies, checked on every cell."""
    judged = lambda cell: figure(cell, this, other)  # noqa: E731
    return rounds.claim(sentence, lambda evidence: evidence.starts, judged, judge, (this, other, EAGER))


CLAIMS = (
    claim(
        "Compiling a repeated block once is 7 times faster than compiling the whole (devlog: 67.4 and 9.6 s).",
        cost, COMPILE, REGIONAL, at_least(7),
    ),
    claim("It is 3.5 times faster (accelerate#3529: 3.5 to 5.5).", cost, COMPILE, REGIONAL, at_least(3.5)),
    claim("It is 1.7 times faster (sglang#32696: 1.74).", cost, COMPILE, REGIONAL, at_least(1.7)),
    claim(
        "In the steady state both are equally fast, within 3 % (devlog, sglang#28193).",
        steady, REGIONAL, COMPILE, lambda name, found: between(name, found, *ALIKE, "×"),
    ),
    claim(
        "The blocks' code is slower than the whole's (accelerate#3529: 1.54 times at 1×128).",
        steady, REGIONAL, COMPILE, at_least(1),
    ),
    claim(
        "The blocks' code is faster than the whole's (sglang#32696: 1.81 times).",
        steady, COMPILE, REGIONAL, at_least(1),
    ),
    claim(
        "Loaded cache artifacts leave a quarter of the cost or more (pytorch#172547: 0.78 of 3.11 s).",
        cost, SHIPPED, COMPILE, at_least(0.25),
    ),
    claim("So does a local cache.", cost, WARM, COMPILE, at_least(0.25)),
    claim(
        "Code from a cache is slower than freshly compiled code (torch-xpu-ops#4051: 1.16 times).",
        steady, WARM, COMPILE, at_least(1),
    ),
    claim(
        "1,900 calls take longer compiled than eager (physical-ai-studio#477: 1,022 and 937 s).",
        total, COMPILE, EAGER, at_least(1),
    ),
)  # fmt: skip


def added(one: Strategy) -> Interval | None:
    """Return the mean of the seconds that a strategy adds without imports."""
    return mean([added_s(start, eager) for start, eager in one.pairs])


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return our starts by cell and strategy, and the published rows."""
    rows = [
        (
            cell_name(cell),
            one.name,
            *(estimate(figure, "") if figure else "" for figure in (one.first, one.difference, added(one), one.steady)),
        )
        for cell in evidence.starts
        for one in cell.strategies
    ]
    titles = ("cell", "strategy", "first answer, s", "more than eager, s", "of that not imports, s", "then a call, ms")
    columns = ("source", "what", "eager", "whole", "regional", "other")
    theirs = tuple(tuple(row[name] for name in columns) for row in published)
    ours = [Table("Starts (mean over processes)", titles, tuple(rows))] if rows else []
    return [*ours, Table("Values in the sources", columns, theirs)]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Compile time in a fresh process: whole model, by block, from caches",
    source="PyTorch's devlog of 2026-05-11, accelerate#3529, sglang#28193 and #32696, pytorch#172547, torchtune#2831",
    claims=CLAIMS,
    tables=make_tables,
    edition=("cpu-start-bert", "cpu-start-models", "cpu-start-stack", "gpu-start-torch"),
)
