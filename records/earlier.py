"""Records of earlier schema versions, judged on reading by the rules of the newest version."""

from __future__ import annotations

from collections.abc import Callable, Collection

from measurement.profiles import PROFILES
from measurement.statistics import half_width, interval_of, sign
from records import figures
from records.statuses import is_baseline

# The version that separates validity (status) from precision (half-widths) and conditions (flags).
PRECISION = 9
# Statuses of measured cells up to version 8; from version 9 on `partial` is a flag.
STATUSES = {"noisy": "ok", "disturbed": "ok", "partial": "ok"}
RETIRED_FLAGS = {"few_rounds", "wide_interval", "preempted"}
RETIRED_COLUMNS = {"latency_status", "ratio_status"}
# Columns derived from others of the same record.
_MADE_OF = {
    "latency_half_width": figures.COLUMNS["latency"],
    "speedup_half_width": figures.COLUMNS["speedup"],
    "sign": ("mode", "baseline", *figures.COLUMNS["speedup"]),
    "target_half_width": ("profile", "latency_ms_median"),
}


def needed(names: Collection[str]) -> list[str]:
    """Return the additional columns that `rejudge` needs for these."""
    return [part for name in names for part in _MADE_OF.get(name, ())]


def rejudge(columns: dict[str, list]) -> None:
    """Replace the status, flags and precision columns of records from versions before `PRECISION`."""
    places = [place for place, version in enumerate(columns["schema_version"]) if version < PRECISION]
    if not places:
        return
    statuses, flags = columns["status"], columns.get("flags")
    derived = [
        (columns[name], derive, [columns[part] for part in _MADE_OF[name]])
        for name, derive in _DERIVE.items()
        if name in columns
    ]
    for place in places:
        if flags is not None:
            flags[place] = _flags(flags[place], statuses[place])
        statuses[place] = STATUSES.get(statuses[place], statuses[place])
        for column, derive, parts in derived:
            column[place] = derive(*(part[place] for part in parts))


def _flags(text: str | None, status: str) -> str | None:
    partial = ["partial"] if status == "partial" else []
    kept = [name for name in (text or "").split(";") if name and name not in RETIRED_FLAGS]
    return ";".join([*kept, *partial]) or None


def _width(value: float | None, low: float | None, high: float | None) -> float | None:
    return half_width(interval_of(value, low, high))


def _sign(mode: str, baseline: bool | None, *figures: float | None) -> str | None:
    return None if is_baseline(mode, baseline) or figures[0] is None else sign(interval_of(*figures))


def _target(profile: str | None, latency_ms: float | None) -> float | None:
    return PROFILES[profile].target_half_width if latency_ms is not None and profile in PROFILES else None


_DERIVE: dict[str, Callable[..., float | str | None]] = {
    "latency_half_width": _width,
    "speedup_half_width": _width,
    "sign": _sign,
    "target_half_width": _target,
}
