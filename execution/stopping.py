"""The rule for the number of processes of a group: add another one, or end the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import frameworks
from measurement import host
from measurement.profiles import Profile
from measurement.statistics import ENOUGH_PROCESSES, half_width
from plan.plan import Group, baseline_of
from records import assemble, statuses
from records.cell_result import CellResult
from records.intervals import student_factor

REACH = 4.0  # half-widths beyond this multiple of the target are too wide with any number of processes


def unfinished(group: Group, results: Mapping[str, CellResult], process: int, profile: Profile) -> Group | None:
    """Return the part of a group that the next process must measure; None if the group is complete.

    Processes are added until every speedup has a half-width within the target and enough processes on a host at full
    speed. Without eager mode the same holds for every latency. All cells of a group continue together, so that all
    pairs have the same number. The group ends if even the most processes cannot give enough at full speed, so that more
    make no headline. It also ends if, at the maximum, every interval that is too wide would stay far from the
    target. A graph that runs another program than eager mode is excluded and needs no process.
    """
    if process >= profile.most_processes:
        return None
    left = group.without({cell.id for cell in group.cells if results[cell.id].failure})
    if left and all(results[cell.id].has_report(process) for cell in left.cells):
        return None  # measured before the run was interrupted
    if left is None or process < profile.minimum_processes:
        return left
    baseline = results.get(baseline_of(left.cells[0]).id)
    graphs = [results[cell.id] for cell in left.cells if not frameworks.is_baseline(cell)]
    graphs = [graph for graph in graphs if not any(statuses.differs(one.program) for one in graph.reports)]
    if baseline and not baseline.failure and graphs:
        known = [(assemble.speedup(graph, baseline), assemble.good_rounds(graph, baseline)) for graph in graphs]
    else:
        alone = [baseline] if baseline and not baseline.failure else [results[cell.id] for cell in left.cells]
        known = [(result.latency, result.good_turns) for result in alone]
    slowed = [good for _, good in known if host.counting(good)[1]]
    if slowed:
        return left if all(can_recover(good, profile) for good in slowed) else None
    if process >= profile.maximum_processes:
        return None
    return left if any(lacks(half_width(found), good, profile) for found, good in known) else None


def lacks(width: float | None, good: Sequence[Sequence[bool]], profile: Profile) -> bool:
    """Return whether a half-width is above the target, and more processes may change that.

    `good` has the turns of each process; the same share of further processes is assumed to give a value.
    """
    target, count = profile.target_half_width, sum(host.usable(good))
    if width is None or width <= target:
        return width is None
    return can_narrow(width, count, profile.maximum_processes * count // len(good), target)


def can_narrow(half_width: float, processes: int, most: int, target: float) -> bool:
    """Return whether `most` processes with the same scatter give a half-width of at most `REACH` targets."""
    return half_width * student_factor(most) <= REACH * target * student_factor(processes)


def can_recover(processes: Sequence[Sequence[bool]], profile: Profile) -> bool:
    """Return whether enough processes may give a value: the same share of the maximum as of these, or spare ones."""
    usable, spare = sum(host.usable(processes)), min(profile.spare_processes, profile.most_processes - len(processes))
    share = usable * profile.maximum_processes >= ENOUGH_PROCESSES * len(processes)
    return share or usable + spare >= ENOUGH_PROCESSES
