"""Facts derived from points: pairs of eager and graph, when compiling pays, which of several is fastest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from analysis import modes
from analysis.points import Point
from analysis.significance import ratio_of_latencies
from measurement.flags import OTHER_LOAD_CORES
from measurement.statistics import FASTER, SLOWER, Interval, sign
from records import break_even
from records.estimates import independent_ratio
from records.record import Record

NO_INTERVAL = "no interval"
DIFFERENT = (FASTER, SLOWER)


def verdict(ratio: Interval | None) -> str:
    """Return the verdict on the new from an interval of old over new time."""
    return NO_INTERVAL if ratio is None else sign(ratio)


def first_s(point: Point) -> float | None:
    """Return seconds until the first call is done: starting the compiler, building and loading included."""
    record = point.record
    parts = (record.compiler_start_s, record.build_s, record.load_s)
    return None if record.first_call_s is None else record.first_call_s + sum(part or 0.0 for part in parts)


@dataclass(eq=False)
class Pair:
    """A graph mode and the eager mode of the same framework at the same shape, both measured."""

    eager: Point
    graph: Point

    @property
    def verdict(self) -> str:
        """Return whether the graph is faster or slower, or inconclusive."""
        return verdict(self.graph.speedup)

    @cached_property
    def extra_s(self) -> float | None:
        """Return how much longer the graph's first call takes than eager's, in seconds."""
        graph, eager = first_s(self.graph), first_s(self.eager)
        return None if graph is None or eager is None else graph - eager

    @cached_property
    def saving_s(self) -> float | None:
        """Return seconds saved per call: from eager's time and the paired speedup, even without an interval."""
        speedup = self.graph.record.speedup_vs_eager
        return None if speedup is None else break_even.saving_s(self.eager.median_ms / 1e3, speedup)

    @property
    def pays_after(self) -> float | None:
        """Return the calls after which compiling has paid; None if never, or where the first call takes no longer.

        It is the estimate of the record's interval, which earlier records may miss.
        """
        record = self.graph.record
        if record.break_even_low is not None and record.schema_version >= break_even.WITH_FIRST_CALLS:
            return record.break_even_calls
        if record.break_even_low and record.break_even_high:
            return break_even.between(record.break_even_low, record.break_even_high)
        return self._calls(record.speedup_vs_eager)

    @property
    def break_even(self) -> tuple[float, float | None] | None:
        """Return the ends of its interval; the second is None where the interval includes a graph that is no faster.

        Records before version 9 lack them: they follow from the ends of the speedup's interval.
        """
        record = self.graph.record
        if record.break_even_low is not None:
            return record.break_even_low, record.break_even_high
        speedup = self.graph.speedup
        low = self._calls(speedup.high) if speedup else None
        return None if low is None or speedup is None else (low, self._calls(speedup.low))

    def _calls(self, speedup: float | None) -> float | None:
        return None if self.extra_s is None else break_even.calls(self.extra_s, self.eager.median_ms / 1e3, speedup)


def reached(record: Record) -> float | None:
    """Return the share of its lowest bound that a mode's speedup reaches; None without one.

    Replaying bounds modes that replay eager's kernels.
    """
    bounds = [record.bound_roofline, record.bound_replay if modes.replays(record.framework, record.mode) else None]
    known = list(filter(None, bounds))
    return record.speedup_vs_eager / min(known) if known and record.speedup_vs_eager is not None else None


def pairs(points: Sequence[Point]) -> list[Pair]:
    """Return every graph point with its eager one, where neither is excluded."""
    counting = [point for point in points if not point.excluded]
    eager = {(point.place, point.record.framework): point for point in counting if point.eager}
    graphs = ((eager.get((point.place, point.record.framework)), point) for point in counting if not point.eager)
    return [Pair(beside, point) for beside, point in graphs if beside]


@dataclass(eq=False)
class Rank:
    """A point relative to the fastest one of its shape."""

    point: Point
    first: Point

    @cached_property
    def ratio(self) -> Interval | None:
        """Return its time over the fastest one's, at least 1; None for the fastest, and without intervals."""
        return None if self.point is self.first else _ratio_of_times(self.point.record, self.first.record)

    @property
    def is_slower(self) -> bool:
        """Return whether the intervals show that it is slower than the fastest."""
        return self.ratio is not None and self.ratio.low > 1


def _ratio_of_times(this: Record, other: Record) -> Interval | None:
    """Return the first record's time over the second's.

    Graph modes that are interleaved with one eager mode are compared by their speedups: a process on a slow core
    lengthens all latencies alike. Eager mode's scatter, which both share, only widens the interval.
    """
    interleaved = (this.run_id, this.framework, this.group) == (other.run_id, other.framework, other.group)
    if interleaved and this.headline and other.headline and this.speedup and other.speedup:
        return independent_ratio(other.speedup, this.speedup, (other.processes, this.processes))
    return ratio_of_latencies(this, other)


def ranking(points: Sequence[Point]) -> list[Rank]:
    """Return points of one shape, the fastest first."""
    ordered = sorted(points, key=lambda point: point.median_ms)
    return [Rank(point, ordered[0]) for point in ordered]


def cores_taken(records: Iterable[Record]) -> dict[tuple, dict[str, float]]:
    """Return the cores that other work and the hypervisor took from each framework, by machine; medians of its cells.

    It affects a framework's interleaved modes alike; frameworks run one after the other, so their ranking may show
    nothing else.
    """
    cores: dict[tuple, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.device == "cpu" and record.is_measured:
            cores[record.machine][record.framework].append(
                (record.other_load_cores or 0.0) + (record.steal_share or 0.0)
            )
    return {machine: {name: median(cells) for name, cells in taken.items()} for machine, taken in cores.items()}


def is_unequal(taken: dict[str, float]) -> bool:
    """Return whether frameworks' shares of a machine differ too much for a ranking."""
    return max(taken.values()) - min(taken.values()) > OTHER_LOAD_CORES
