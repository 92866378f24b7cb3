"""Energy of a cell from the windows of its processes: joules per call, power, and both relative to eager mode.

All are those of a host core at full speed: where calls wait for the host, a slow core adds time at idle power.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from measurement.energy import Energy, Rapl
from measurement.statistics import ENOUGH_PROCESSES, Interval
from records import figures
from records.cell_result import CellResult
from records.intervals import over_processes

JOULES, WATTS = attrgetter("joules"), attrgetter("watts")  # of a call
CHECKED_WITHIN = 0.05  # largest relative difference between integrated power and the counter


class Call(NamedTuple):
    """A window's mean call, on a core at full speed."""

    joules: float
    seconds: float

    @property
    def watts(self) -> float:
        return self.joules / self.seconds


Figure = Callable[[Call], float]


def calls(result: CellResult, energy: Energy) -> list[Call]:
    """Return the mean call of each window of a process.

    The time between calls and the wait that a slow core adds draw the idle power, but no more than the window's.
    """
    found = []
    for place in range(len(energy.calls)):
        call = _counted(energy, place)
        if energy.idle_w is not None and energy.host_loop_s:
            seconds = result.call_at_full_speed(call.seconds, energy.host_loop_s[place])
            call = _without(call, call.seconds - seconds, energy.idle_w)
        found.append(call)
    return found


def _counted(energy: Energy, place: int) -> Call:
    """Return the mean call of a window, without the time between calls where the idle power is known."""
    count = energy.calls[place]
    call = Call(energy.joules[place] / count, energy.seconds[place] / count)
    if energy.idle_w is None or not energy.between_s:
        return call
    watts = call.watts if energy.source == Rapl.source else energy.idle_w  # a CPU works between calls too
    return _without(call, energy.between_s[place] / count, watts)


def _without(call: Call, seconds: float, watts: float) -> Call:
    """Return a call without this part of its time, in which the device draws these watts."""
    return Call(call.joules - min(watts, call.watts) * seconds, call.seconds - seconds)


def columns(result: CellResult, baseline: CellResult | None, is_baseline: bool, tokens: int | None) -> dict[str, Any]:
    """Return the energy columns, empty if no process measured energy; `tokens` is the number per call."""
    taken = [report.energy for report in result.reports if report.energy]
    if not taken:
        return {}
    measured = [energy for energy in taken if energy.joules]
    if not measured:
        return {"energy_source": f"unsupported: {taken[0].problem}"}
    per_call, power = (_interval([_logs(result, one, figure) for one in measured]) for figure in (JOULES, WATTS))
    idle = [energy.idle_w for energy in measured if energy.idle_w is not None]
    row = {
        **figures.columns("energy", per_call),
        "energy_j_per_token": per_call.value / tokens if per_call and tokens else None,
        "power_w": power and power.value,
        "idle_power_w": median(idle) if idle else None,
        "energy_integrated_ratio": integrated_ratio(result),
        "energy_source": measured[0].source,
    }
    return row if is_baseline or baseline is None else row | _beside_eager(result, baseline)


def _beside_eager(result: CellResult, baseline: CellResult) -> dict[str, Any]:
    saving, power = ratio(baseline, result, JOULES), ratio(result, baseline, WATTS)
    return figures.columns("energy_saving", saving) | figures.columns("power_ratio", power)


def ratio(over: CellResult, under: CellResult, figure: Figure) -> Interval | None:
    """Return the figure of `over` divided by that of `under`, from windows of processes that measured both."""
    theirs = {(report.process, report.worker): report.energy for report in under.reports}
    logs = []
    for report in over.reports:
        ours, other = report.energy, theirs.get((report.process, report.worker))
        if ours and other and len(ours.joules) == len(other.joules):
            pairs = zip(_logs(over, ours, figure), _logs(under, other, figure), strict=True)
            logs.append([first - second for first, second in pairs])
    return _interval(logs)


def integrated_ratio(result: CellResult) -> float | None:
    """Return the mean power that was read over that of the counter, the median of all windows; None without any.

    Power is read right after calls, so both are without the time between calls.
    """
    ratios = [
        energy.integrated[place] / seconds / _counted(energy, place).watts
        for report in result.reports
        if (energy := report.energy)
        for place, seconds in enumerate(energy.seconds[: len(energy.integrated)])
    ]
    return median(ratios) if ratios else None


def is_off(result: CellResult) -> bool:
    """Return whether integrated power differs from the counter by more than CHECKED_WITHIN."""
    found = integrated_ratio(result)
    return found is not None and abs(found - 1) > CHECKED_WITHIN


def _logs(result: CellResult, energy: Energy, figure: Figure) -> list[float]:
    return [math.log(figure(call)) for call in calls(result, energy)]


def _interval(logs: list[list[float]]) -> Interval | None:
    """Return the figure with its interval over processes; None for fewer than three."""
    interval = over_processes(logs) if len(logs) >= ENOUGH_PROCESSES else None
    return interval.map(math.exp) if interval else None
