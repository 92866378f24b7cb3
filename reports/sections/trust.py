"""Whether the figures of a shape may be trusted: what was checked, and what speaks against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis.points import Point
from measurement.statistics import ENOUGH_LAUNCHES
from measurement.text import times
from reports.content import Card


def card(points: Sequence[Point]) -> Card:
    """Return whether the figures of one shape may be trusted, with what was checked and what speaks against them."""
    compared = sum(point.record.parity_reference is not None for point in points)
    unsure = sum(point.record.status != "ok" for point in points)
    fewest = min((point.record.launches or 1 for point in points), default=1)
    machines = len({point.record.machine for point in points})
    excluded = Counter(point.excluded for point in points if point.excluded)
    alone = sum(not point.eager and point.record.speedup_vs_eager is None for point in points)
    unknown = sum(point.record.program == "unknown" for point in points)
    processes = "one process" if fewest == 1 else f"{fewest} processes or more"
    lines = [f"{unsure} of {len(points)} figures are noisy or disturbed" if unsure else "no figure is noisy"]
    lines += [f"{compared} of {len(points)} outputs compared with a reference{', all agree' if compared else ''}"]
    lines += [f"{processes} each, {'one machine' if machines == 1 else f'{machines} machines'}"]
    against = [f"{count} excluded: {reason}" for reason, count in excluded.items()]
    against += [f"{times(alone, 'graph')} not timed in turn with eager mode"] if alone else []
    against += [f"the program of {times(unknown, 'graph')} is not known"] if unknown else []
    sure = not unsure and not against and machines == 1 and fewest >= ENOUGH_LAUNCHES
    answer, kind = ("Yes", "good") if sure else ("With care", "unsure")
    return Card("Can I trust it?", answer, (*lines, *against), kind)
