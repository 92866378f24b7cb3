"""Differences of two sides whose processes alternate: process by process, from their samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from analysis.changes import LIMIT, Moves, in_order
from analysis.comparison import Comparison, Reason
from analysis.pairs import Pair, joined
from analysis.significance import Estimates, independent_ratio
from measurement import host
from measurement.statistics import ENOUGH_PROCESSES, Interval
from records.intervals import over_processes
from records.record import Record
from records.shapes import SampleLine

ByProcess = dict[int, list[float]]  # ln of seconds per call in the rounds that count, by process


def processes_of(*sides: Iterable[SampleLine], one_python: bool = True) -> list[dict[str, ByProcess]]:
    """Return each run's samples by cell and process; of a process measured again, the later.

    The runs share a host. With `one_python` the control loop has the same build of Python in all of them, so that a
    cell has one full speed. Otherwise each run has its own.
    """
    if not one_python:
        return [cells for side in sides for cells in processes_of(side)]
    by_cell: list[dict[str, dict[int, SampleLine]]] = [defaultdict(dict) for _ in sides]
    of_all: dict[str, list[SampleLine]] = defaultdict(list)
    for cells, samples in zip(by_cell, sides, strict=True):
        for entry in samples:
            if entry.get("launch") is not None and entry["seconds_per_call"]:
                cells[entry["cell"]][entry["launch"]] = entry
                of_all[entry["cell"]].append(entry)
    full_s = {cell: host.full_speed_s(map(_turns, entries)) for cell, entries in of_all.items()}
    fastest_s = {cell: _fastest_s(entries, full_s[cell]) for cell, entries in of_all.items()}
    return [
        {cell: _of_cell(entries, full_s[cell], fastest_s[cell]) for cell, entries in cells.items()} for cells in by_cell
    ]


def control_loops(samples: Iterable[SampleLine]) -> dict[str, float]:
    """Return the control loop's seconds in each cell's fastest process, to which its latencies are scaled."""
    by_cell: dict[str, list[SampleLine]] = defaultdict(list)
    for entry in samples:
        if entry.get("host_loop_s"):
            by_cell[entry["cell"]].append(entry)
    found = {cell: _fastest_s(entries, host.full_speed_s(map(_turns, entries))) for cell, entries in by_cell.items()}
    return {cell: seconds for cell, seconds in found.items() if seconds}


def _fastest_s(entries: Iterable[SampleLine], full_s: float | None) -> float | None:
    return host.fastest_seconds(([_turns(entry)] for entry in entries), full_s)


def _of_cell(entries: Mapping[int, SampleLine], full_s: float | None, fastest_s: float | None) -> ByProcess:
    turns, _ = host.counting(_good_turns(entries.values(), full_s))
    (logarithms,) = _logarithms([list(entries.values())], full_s, fastest_s)
    both = zip(entries, logarithms, turns, strict=True)
    return {process: [taken[place] for place in places] for process, taken, places in both if places}


def _turns(entry: SampleLine) -> host.Turns:
    loops, full_s = entry.get("host_loop_s") or (), entry.get("full_speed_s")
    return host.Turns(entry["seconds_per_call"], loops, entry.get("host_s"), entry.get("device_s"), full_s)


def _logarithms(
    cells: Iterable[Iterable[SampleLine]], full_s: float | None, fastest_s: float | None = None
) -> list[list[list[float]]]:
    """Return ln of seconds per call of cells that took turns, a list per process; scaled to the fastest one's core."""
    scaled = host.at_full_speed([list(map(_turns, entries)) for entries in cells], full_s, fastest_s)
    return [[list(map(math.log, samples)) for samples in cell] for cell in scaled]


def _good_turns(entries: Iterable[SampleLine], full_s: float | None) -> list[list[bool]]:
    """Return for each turn of each process of a cell whether it counts."""
    return host.good_in_all(list(map(_turns, entries)), full_s)


def rounds_in_turn(processes: Sequence[Sequence[SampleLine]]) -> list[list[tuple[float, ...]]]:
    """Return ln of seconds per call of cells that took turns: a list for each process, a tuple for each round.

    `processes` has each process's entries of the same cells. A round counts if the turns of all cells count.
    The list of a process without a value is empty.
    """
    full_s = host.full_speed_s(_turns(entry) for entries in processes for entry in entries)
    good = [_good_turns(entries, full_s) for entries in zip(*processes, strict=True)]
    in_all = [list(map(all, zip(*turns, strict=False))) for turns in zip(*good, strict=True)]
    rounds, _ = host.counting(in_all)
    cells = _logarithms(zip(*processes, strict=True), full_s)
    both = zip(zip(*cells, strict=True), rounds, strict=True)
    return [[tuple(samples[place] for samples in taken) for place in places] for taken, places in both]


def speedups_by_process(samples: Iterable[SampleLine], record: Record, eager: str) -> dict[tuple, float]:
    """Return ln of a cell's speedup over the cell `eager` by process, for processes that interleaved both."""
    entries: dict[tuple, dict[str, SampleLine]] = defaultdict(dict)
    for entry in samples:
        if entry["cell"] in (record.cell, eager) and entry.get("launch") is not None:
            entries[record.run_id, entry["launch"], entry.get("worker")][entry["cell"]] = entry
    both = {process: (cells[eager], cells[record.cell]) for process, cells in entries.items() if len(cells) == 2}
    taken = zip(both, rounds_in_turn(list(both.values())), strict=True)
    return {process: median(theirs - ours for theirs, ours in rounds) for process, rounds in taken if rounds}


def baselines(records: Iterable[Record]) -> dict[str, str]:
    """Return the cell of each group's eager mode by the group."""
    return {record.group: record.cell for record in records if record.is_baseline}


def change(a: ByProcess, b: ByProcess) -> tuple[Interval | None, int]:
    """Return B's time over A's with its interval over the processes that both have, and how many; None below three."""
    both = sorted(a.keys() & b.keys())
    if len(both) < ENOUGH_PROCESSES:
        return None, len(both)
    interval = over_processes([[median(b[process]) - median(a[process])] for process in both])
    return interval.map(math.exp) if interval else None, len(both)


def compare(
    a: Sequence[Record],
    b: Sequence[Record],
    samples: Sequence[Mapping[str, ByProcess]],
    limit: float = LIMIT,
) -> Comparison:
    """Compare two sides by their records and both sides' samples."""
    both = joined(a, b)
    found = [change(*(side.get(pair.cell, {}) for side in samples)) for pair in both.pairs]
    ratios = [ratio or _not_in_turn(pair) for pair, (ratio, _) in zip(both.pairs, found, strict=True)]
    moved = Estimates.from_intervals(ratios, [count for _, count in found])
    why = [None if ratio else Reason("few shared processes", (count,)) for ratio, count in found]
    cells = [*Moves(both.pairs, moved, why, taken_in_turn=True).judged(limit), *both.others]
    return Comparison(in_order(cells), both.in_both, limit, in_turn=True)


def _not_in_turn(pair: Pair) -> Interval:
    """Return B's time over A's as if the runs were independent, which decides nothing."""
    a, b = pair.latencies
    return independent_ratio(b, a, (pair.records[1].processes, pair.records[0].processes))
