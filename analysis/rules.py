"""The rules: from one framework's records of one shape to an answer.

1. A mode counts where it is not excluded (`records.statuses`; excluded modes are named) and its speedup has an
   interval.
2. A mode is *faster* where all of its speedup's interval lies above 1 and its median lies below eager's. Where the two
   disagree, the records contradict each other and give no answer.
3. Of the faster modes the one with the lowest latency is recommended. If the mode that users start with is not shown to
   take longer, that one is.
4. No mode faster: *stay* with eager where all are shown to be slower or no faster than `GAIN`; else *inconclusive*.
5. Where nobody deploys eager mode, modes are compared with each other alone, by latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis import facts
from analysis.points import Point
from analysis.settings import Known, Words, deployed, words_of
from analysis.significance import ratio_of_latencies
from measurement.statistics import INCONCLUSIVE

USE, STAY, ALONE = "use", "stay", "alone"
# A mode whose interval ends below this is no reason to compile.
GAIN = 1.02


@dataclass(frozen=True)
class Choice:
    """Choice of one framework at one shape; `point` is the mode to run.

    Where the answer is to stay or inconclusive, `point` is eager mode and `beside` the closest graph mode. ALONE: the
    framework's modes have no comparison, and `point` is the fastest.
    """

    kind: str
    point: Point
    eager: Point | None
    words: Words
    deployed: bool  # whether anybody deploys its eager mode
    beside: Point | None = None
    default: Point | None = None  # the mode that users start with, where another one is recommended
    contradicting: tuple[Point, ...] = ()  # whose pairs and medians lie on different sides of 1

    @property
    def framework(self) -> str:
        """Return the framework's name."""
        return self.point.record.framework

    @property
    def compared(self) -> Point | None:
        """Return the graph mode whose speedup over eager mode matters; None where nobody deploys eager mode."""
        return (self.point if self.kind == USE else self.beside) if self.deployed else None


def choose(points: Sequence[Point], known: Known) -> Choice | None:
    """Return the choice from the points of one framework at one shape; None where no point counts."""
    counting = sorted((point for point in points if not point.excluded), key=lambda point: point.median_ms)
    if not counting:
        return None
    framework = counting[0].record.framework
    baseline = deployed(framework, known)
    eager = next((point for point in counting if point.eager), None)
    graphs = [point for point in counting if not point.eager]
    best: list[Point] = []
    contradicting: list[Point] = []
    kind, beside = ALONE, None
    if graphs and not baseline:
        kind, best = USE, _best(graphs)
    elif graphs and eager:
        kind, best, contradicting = _against(eager, graphs)
        beside = max(best or graphs, key=lambda point: point.record.speedup_vs_eager or 0.0)
    default = next((p for p in graphs if words_of(p, known).default), None)
    point = eager or counting[0]
    if kind == USE:
        point = default if default in best else best[0]
    elif kind == ALONE:
        point = counting[0]
    return Choice(
        kind,
        point,
        eager,
        words_of(point, known),
        baseline,
        beside if kind in (STAY, INCONCLUSIVE) else None,
        default if kind == USE and default is not point else None,
        tuple(contradicting),
    )


def _against(eager: Point, graphs: list[Point]) -> tuple[str, list[Point], list[Point]]:
    """Apply rules 2 to 4: the kind of answer, the modes to choose from, those whose records contradict each other."""
    contradicting = [point for point in graphs if _contradicts(point, eager)]
    sound = [point for point in graphs if point not in contradicting]
    faster = [
        point
        for point in sound
        if point.record.headline
        and (gain := point.speedup)
        and facts.verdict(gain) == facts.FASTER
        and gain.high >= GAIN
    ]
    if faster:
        return USE, _best(faster), contradicting
    open_ = [p for p in sound if not p.record.headline or p.speedup is None or p.speedup.high >= GAIN]
    return (INCONCLUSIVE if open_ or contradicting else STAY), open_, contradicting


def _contradicts(point: Point, eager: Point) -> bool:
    """Return whether the paired speedup and the ratio of the medians are clearly on different sides of 1."""
    sign = facts.verdict(point.speedup)
    medians = ratio_of_latencies(eager.record, point.record)
    if medians is None or sign not in facts.DIFFERENT:
        return False
    return medians.high < 1 if sign == facts.FASTER else medians.low > 1


def _best(points: list[Point]) -> list[Point]:
    """Return the fastest, then every point whose latency is not shown to be longer."""
    return [rank.point for rank in facts.ranking(points) if not rank.is_slower]
