"""What two sides differ by whose processes took turns: launch beside launch, by their samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, stdev

import numpy as np

from analysis.changes import LIMIT, Moves, in_order
from analysis.comparison import Comparison
from analysis.pairs import Pair, joined
from analysis.significance import SMALLEST, Estimates, quantile
from measurement import host
from measurement.statistics import ENOUGH_LAUNCHES
from records.intervals import half_width_within
from records.record import Record

Launches = dict[int, list[float]]  # ln of seconds per call in the rounds that count, by launch


def launches_of(samples: Iterable[Mapping]) -> dict[str, Launches]:
    """A run's samples by cell and launch; of a launch that was measured again the later."""
    cells: dict[str, Launches] = defaultdict(dict)
    for entry in samples:
        seconds, loop = entry["seconds_per_call"], entry.get("host_loop_s") or ()
        if entry.get("launch") is not None and seconds:
            rounds = host.kept(loop, len(seconds))
            cells[entry["cell"]][entry["launch"]] = [math.log(seconds[index]) for index in rounds]
    return cells


def difference(a: Launches, b: Launches) -> tuple[float, float, int] | None:
    """The mean of ln(B / A) over launches that both have, its standard error, and how many; None with under two.

    The error is never smaller than what the scatter within the launches allows, as in `over_launches`.
    """
    both = sorted(a.keys() & b.keys())
    if len(both) < 2:
        return None
    differences = [median(b[launch]) - median(a[launch]) for launch in both]
    within = [half_width_within([side[launch] for launch in both]) or 0.0 for side in (a, b)]
    between = stdev(differences) / math.sqrt(len(both))
    return fmean(differences), max(between, math.hypot(*within) / float(quantile(np.array(len(both) - 1)))), len(both)


def compare(
    a: Sequence[Record],
    b: Sequence[Record],
    samples: Sequence[Mapping[str, Launches]],
    limit: float = LIMIT,
) -> Comparison:
    """Compare two sides by their records and both sides' samples."""
    both = joined(a, b)
    differences = [difference(*(side.get(pair.cell, {}) for side in samples)) for pair in both.pairs]
    means, errors, counts = np.array([one or (0.0, 1.0, 2) for one in differences], float).reshape(-1, 3).T
    change = Estimates(means, np.maximum(errors, SMALLEST), counts - 1)
    why = tuple(map(_open, both.pairs, differences))
    cells = [*Moves(both.pairs, change, why, taken_in_turn=True).judged(limit), *both.others]
    return Comparison(in_order(cells), both.in_both, limit, in_turn=True)


def _open(pair: Pair, estimate: tuple | None) -> str:
    """Return why processes that ran in turn decide nothing; empty if they do."""
    count = estimate[2] if estimate else 0
    if count < ENOUGH_LAUNCHES:
        return f"A and B share only {count} processes; at least three are needed"
    return ""
