"""Cells that became slower or faster from one run to another, and apparent changes: docs/reports.md has the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analysis.comparison import FASTER, NOT_COMPARABLE, SAME, SLOWER, Compared, Comparison, Reason
from analysis.pairs import Pair, few_processes, joined
from analysis.significance import CHANCE, Estimates, excludes_none, holm, quantile
from measurement.statistics import INCONCLUSIVE, Interval
from records.record import Record

# Largest difference of processes that run the same code, by the self-checks in docs/methodology.md.
SAME_WITHIN = 0.02
LIMIT = 0.05  # by which B may be slower
# A change of all modes of a shape counts as the machine's, unless it exceeds the drift of an undisturbed machine at a
# steady clock (the host's loop, the GPU's multiprocessors).
MOST_DRIFT, SAME_CLOCK_WITHIN = 0.25, 0.05
# The loop runs on one thread, so it misses some losses of several threads on a CPU. Runs of the same code differ by up
# to 1.71 at a steady loop (results/selfcheck). A process that takes half of one thread's core doubles their time.
MOST_DRIFT_OF_THREADS = 1.0
_PARTS = ("mean", "error", "degrees")


def compare(a: Sequence[Record], b: Sequence[Record], limit: float = LIMIT) -> Comparison:
    """Compare the records of two runs, read with `pairs.COLUMNS_READ`, by the names of their cells."""
    both = joined(a, b)
    moves = Moves(both.pairs, latency(both.pairs, 1) - latency(both.pairs, 0), tuple(map(_open, both.pairs)))
    cells = [*moves.judged(limit), *both.others]
    return Comparison(in_order(cells), both.in_both, limit)


def in_order(cells: Sequence[Compared]) -> tuple[Compared, ...]:
    """Return the cells, the slowest first, then faster, inconclusive, not comparable, and unchanged ones."""
    place = {SLOWER: 0, FASTER: 1, INCONCLUSIVE: 2, NOT_COMPARABLE: 3, SAME: 4}
    return tuple(sorted(cells, key=lambda c: (place[c.verdict], -c.ratio.value if c.ratio else 0.0, c.cell)))


def latency(pairs: Sequence[Pair], side: int) -> Estimates:
    """Return the logarithms of one side's latencies."""
    return Estimates.from_intervals(
        [pair.latencies[side] for pair in pairs], [pair.records[side].processes for pair in pairs]
    )


def _open(pair: Pair) -> Reason | None:
    """Return why the times of a cell decide nothing; None where they may."""
    for side, (record, letter) in enumerate(zip(pair.records, "AB", strict=True)):
        if few_processes(record):
            return Reason("few processes", (letter,))
        if not record.headline and pair.host_decides(side):
            return Reason("host slowed", (letter,))
    return None


@dataclass(frozen=True)
class Moves:
    """Change of each pair, as a logarithm, and why some stay open in any case.

    With `taken_in_turn` both sides' processes alternated: the machine affects both alike, and causes no change.
    """

    pairs: Sequence[Pair]
    change: Estimates
    open: Sequence[Reason | None]
    taken_in_turn: bool = False

    @cached_property
    def moved(self) -> np.ndarray:
        """Return which cells differ by more than chance, and in their estimate by more than `SAME_WITHIN`."""
        tested = np.array([not why for why in self.open], bool)
        chances = np.ones(len(self.pairs))
        chances[tested] = holm(self.change.chance[tested])
        return (chances < CHANCE) & (np.abs(self.change.mean) > np.log1p(SAME_WITHIN))

    @cached_property
    def beside_eager(self) -> dict[int, Estimates]:
        """Return by place the ratio of speedups over eager mode, A's over B's, where both are known.

        It is the change of the mode relative to eager mode's change.
        """
        both = [[record.speedup for record in pair.records] for pair in self.pairs]
        known = {n: (ours, theirs) for n, (ours, theirs) in enumerate(both) if ours and theirs}
        processes = [[self.pairs[n].records[side].processes for n in known] for side in (0, 1)]
        a, b = (
            Estimates.from_intervals([of_pair[side] for of_pair in known.values()], processes[side]) for side in (0, 1)
        )
        return dict(zip(known, _each(a - b), strict=True))

    def judged(self, limit: float) -> list[Compared]:
        """Return the verdict on every pair."""
        of_machine = {} if self.taken_in_turn else self.machines
        intervals, beside = _intervals(self.change), {}
        if self.beside_eager:
            known = list(self.beside_eager.values())
            together = Estimates(*(np.array([getattr(one, name) for one in known]) for name in _PARTS))
            beside = dict(zip(self.beside_eager, _intervals(together), strict=True))
        cells = []
        for n, pair in enumerate(self.pairs):
            ratio = intervals[n]
            verdict, why = self._verdict(n, ratio, limit, of_machine)
            times_ms = pair.latencies[0].value, pair.latencies[1].value
            cells.append(Compared(pair.cell, times_ms, ratio, verdict, why, beside_eager=beside.get(n)))
        return cells

    def _verdict(
        self, n: int, ratio: Interval, limit: float, of_machine: Mapping[int, Reason]
    ) -> tuple[str, Reason | None]:
        if self.open[n]:
            return INCONCLUSIVE, self.open[n]
        if self.moved[n]:
            if n in of_machine:
                return INCONCLUSIVE, of_machine[n]
            return (SLOWER if ratio.value > 1 else FASTER), None
        bound = 1 + max(limit, SAME_WITHIN)
        if 1 / bound <= ratio.low and ratio.high <= bound:
            return SAME, None
        return INCONCLUSIVE, Reason("not ruled out", (100 * (bound - 1),), self.pairs[n].conditions)

    @cached_property
    def machines(self) -> dict[int, Reason]:
        """Return by place the changes that the machine may have caused, with the reason.

        No other mode shows that the machine was unchanged.
        """
        moved = np.flatnonzero(self.moved).tolist()
        beside = [self._beyond_company(n) for n in moved]
        single = {place: float(apart.chance) * many for place, (apart, many, _) in enumerate(beside) if apart}
        chances = dict(zip(single, holm(np.array(list(single.values()))), strict=True))
        reasons = {}
        for place, (n, (apart, _, why)) in enumerate(zip(moved, beside, strict=True)):
            alone = apart is not None and chances[place] < CHANCE
            if apart is not None and alone:
                alone = float(apart.mean) * np.sign(self.change.mean[n]) > np.log1p(SAME_WITHIN)
            if not alone and not self._beyond_drift(n):
                reasons[n] = why
        return reasons

    @cached_property
    def _groups(self) -> dict[str, list[int]]:
        groups = defaultdict(list)
        for n, pair in enumerate(self.pairs):
            if not self.open[n]:
                groups[pair.group].append(n)
        return groups

    @cached_property
    def _devices(self) -> dict[str | None, np.ndarray]:
        """Return the pairs of each device that can be decided."""
        devices = defaultdict(list)
        for n, pair in enumerate(self.pairs):
            if not self.open[n]:
                devices[pair.records[0].device].append(n)
        return {device: np.array(members) for device, members in devices.items()}

    def _beyond_company(self, n: int) -> tuple[Estimates | None, int, Reason]:
        """Return the change of a cell beyond a mode of its shape that shows it best; without one, beyond other shapes.

        None where the cell itself changed least, or no other cell exists. Second is the number of modes from which this
        one was chosen; the test's chance is multiplied by it (Bonferroni). Third is the reason why the machine may have
        changed. Where the host's speed explains the change, only modes that wait for the host show anything else.
        """
        company = [other for other in self._groups[self.pairs[n].group] if other != n]
        factor = self._of_host(n)
        if factor is not None:
            company = [other for other in company if self.pairs[other].waits_for_host]
        elif not company:
            return self._beyond_others(n)
        sign, mean = np.sign(self.change.mean[n]), self.change.mean
        beyond = [self._apart(n, other) for other in company if sign * mean[other] < sign * mean[n]]
        alike = [other for other in company if self._shown[other] and sign * mean[other] > 0]
        if factor is not None:
            why = Reason("host changed", (factor,))
        elif alike:
            nearest = min(alike, key=lambda other: abs(mean[other] - mean[n]))
            why = Reason("mode moved too", (self.pairs[nearest].mode, float(np.exp(mean[nearest]))))
        else:
            why = Reason("no mode is precise")
        return min(beyond, key=lambda one: float(one.chance), default=None), len(company), why

    @cached_property
    def _shown(self) -> np.ndarray:
        return excludes_none(self.change)

    def _of_host(self, n: int) -> float | None:
        """Return the change of the host's loop at full speed where it explains that of a cell; None elsewhere.

        It explains the change of a cell that waits for the host, within the cell's interval or `SAME_WITHIN`.
        """
        pair = self.pairs[n]
        ours, theirs = (record.host_loop_ms_full for record in pair.records)
        if not ours or not theirs or not pair.waits_for_host:
            return None
        of_host, own = np.log(theirs / ours), _take(self.change, n)
        within = max(float(quantile(own.degrees) * own.error), np.log1p(SAME_WITHIN))
        explains = of_host * own.mean > 0 and abs(of_host) > np.log1p(SAME_WITHIN) and abs(own.mean - of_host) <= within
        return float(theirs / ours) if explains else None

    def _beyond_others(self, n: int) -> tuple[Estimates | None, int, Reason]:
        """Return the same for a mode that is alone: by how much beyond the median of all others on the device."""
        on_device = self._devices[self.pairs[n].records[0].device]
        others = on_device[on_device != n]
        if not len(others):
            return None, 1, Reason("no other mode")
        centre = _median(self.change, others)
        why = Reason("no shape is precise")
        if excludes_none(centre) and centre.mean * self.change.mean[n] > 0:
            why = Reason("mode moved too", ("the other shapes", float(np.exp(centre.mean))))
        return _take(self.change, n) - centre, 1, why

    def _apart(self, n: int, other: int) -> Estimates:
        """Return the change of a mode beyond another one of its shape, from speedups where both were interleaved."""
        if self.pairs[other].baseline and n in self.beside_eager:
            return self.beside_eager[n]
        if self.pairs[n].baseline and other in self.beside_eager:
            graph = self.beside_eager[other]
            return replace(graph, mean=-graph.mean)
        return _take(self.change, n) - _take(self.change, other)

    def _beyond_drift(self, n: int) -> bool:
        """Return whether a cell moved by more than a machine with a steady clock does."""
        pair = self.pairs[n]
        ours, theirs = (_clock(pair, side) for side in (0, 1))
        if ours is None or theirs is None or abs(np.log(theirs / ours)) > np.log1p(SAME_CLOCK_WITHIN):
            return False
        several = pair.records[0].device_kind == "cpu" and (pair.records[0].threads or 1) > 1
        return bool(abs(self.change.mean[n]) > np.log1p(MOST_DRIFT_OF_THREADS if several else MOST_DRIFT))


def _clock(pair: Pair, side: int) -> float | None:
    """Return a measure of the machine's speed: the host loop's time, or the GPU's clock; None without either."""
    record = pair.records[side]
    return record.host_loop_ms_median if pair.host_decides(side) else record.gpu_sm_mhz


def _median(estimates: Estimates, places: np.ndarray) -> Estimates:
    """Return the median at `places`, with the standard error of a median of normal variables."""
    few = len(places) == 1
    variance = np.median(estimates.error[places] ** 2) * (1 if few else np.pi / (2 * len(places)))
    middle, degrees = np.median(estimates.mean[places]), np.median(estimates.degrees[places])
    return Estimates(middle, np.sqrt(variance), degrees)


def _take(estimates: Estimates, place: int) -> Estimates:
    """Return one element."""
    return Estimates(*(getattr(estimates, name)[place] for name in _PARTS))


def _each(estimates: Estimates) -> list[Estimates]:
    """Return the elements."""
    return [Estimates(*parts) for parts in zip(*(getattr(estimates, name) for name in _PARTS), strict=True)]


def _intervals(estimates: Estimates) -> list[Interval]:
    """Return the ratios with their intervals, an element each."""
    return [Interval(*ends) for ends in zip(*(np.asarray(part).tolist() for part in estimates.interval), strict=True)]
