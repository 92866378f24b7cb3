"""Figures of a record with 95 % intervals: the columns of each estimate and of its interval's ends."""

from __future__ import annotations

from operator import attrgetter

from measurement.statistics import Interval, interval_of

COLUMNS = {
    "latency": ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high"),
    "speedup": ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high"),
    "energy": ("energy_j_per_call", "energy_ci_low", "energy_ci_high"),
    "energy_saving": ("energy_saving_vs_eager", "energy_saving_ci_low", "energy_saving_ci_high"),
    "power_ratio": ("power_ratio_vs_eager", "power_ratio_ci_low", "power_ratio_ci_high"),
    "efficiency": ("scaling_efficiency", "scaling_efficiency_low", "scaling_efficiency_high"),
}
ALL = tuple(column for columns in COLUMNS.values() for column in columns)


class Figure:
    """A property of a record that returns a figure with its interval; None without one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._read = attrgetter(*COLUMNS[name])

    def __get__(self, record: object, owner: type) -> Interval | None:
        return interval_of(*self._read(record))


def columns(name: str, interval: Interval | None) -> dict[str, float | None]:
    """Return the columns of a figure, empty without an interval."""
    return dict(zip(COLUMNS[name], interval or (None, None, None), strict=True))
