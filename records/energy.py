"""Energy of a cell from the windows of its processes: joules per call, power, and both relative to eager mode.

All are those of a host core at full speed: where calls wait for the host, a slow core adds time at idle power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
Windows = dict[tuple[int, str], list[Call]]  # the mean call of each window, by process and worker


def calls(result: CellResult) -> Windows:
    """Return the mean calls of windows.

    The time between calls and the wait that a slow core adds draw the idle power, but no more than the window's.
    """
    to_full_speed = result.to_full_speed

    def one(energy: Energy, place: int) -> Call:
        call = _counted(energy, place)
        if energy.idle_w is None or not energy.host_loop_s:
            return call
        seconds = to_full_speed(call.seconds, energy.host_loop_s[place])
        return _without(call, call.seconds - seconds, energy.idle_w)

    return {
        (report.process, report.worker): [one(energy, place) for place in range(len(energy.calls))]
        for report in result.reports
        if (energy := report.energy) and energy.joules
    }


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
    measured = calls(result)
    if not measured:
        return {"energy_source": f"unsupported: {taken[0].problem}"}
    per_call, power = (_interval([list(map(figure, ones)) for ones in measured.values()]) for figure in (JOULES, WATTS))
    idle = [energy.idle_w for energy in taken if energy.idle_w is not None]
    row = {
        **figures.columns("energy", per_call),
        "energy_j_per_token": per_call.value / tokens if per_call and tokens else None,
        "power_w": power and power.value,
        "idle_power_w": median(idle) if idle else None,
        "energy_integrated_ratio": integrated_ratio(result),
        "energy_source": next(energy.source for energy in taken if energy.joules),
    }
    return row if is_baseline or baseline is None else row | _beside_eager(measured, calls(baseline))


def _beside_eager(own: Windows, eager: Windows) -> dict[str, Any]:
    saving, power = ratio(eager, own, JOULES), ratio(own, eager, WATTS)
    return figures.columns("energy_saving", saving) | figures.columns("power_ratio", power)


def ratio(over: Windows, under: Windows, figure: Figure) -> Interval | None:
    """Return the figure of `over` divided by that of `under`, from windows of processes that measured both."""
    both = [(ones, under[process]) for process, ones in over.items() if len(ones) == len(under.get(process, ()))]
    return _interval([[figure(a) / figure(b) for a, b in zip(*pair, strict=True)] for pair in both])


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


def _interval(processes: Sequence[Sequence[float]]) -> Interval | None:
    """Return the geometric mean over processes, each with its windows, and its interval; None for fewer than three."""
    logs = [list(map(math.log, windows)) for windows in processes]
    interval = over_processes(logs) if len(logs) >= ENOUGH_PROCESSES else None
    return interval.map(math.exp) if interval else None
