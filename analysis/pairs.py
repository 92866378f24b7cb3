"""Two runs' records joined by cell: which can be compared, and why others cannot."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from analysis.heading import OF_A_RUN
from measurement import exclusion, flags
from measurement.schema import MEASURED, is_baseline
from measurement.statistics import ENOUGH_LAUNCHES, WITHIN_PROCESS, Interval
from reports.compare import NOT_COMPARABLE, Compared

# What must be alike for two times to be those of the same thing.
_ALIKE = {"weights": "weights", "tf32": "TF32 setting", "policies": "policies"}
_FIGURES = (
    *("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high"),
    *("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high"),
    *("host_loop_ms_median", "host_ms_median", "gpu_sm_mhz"),
)
_TEXTS = (
    "status",
    "reason",
    "weights",
    "tf32",
    "policies",
    "launches",
    "interval_scope",
    "flags",
    "device",
    "baseline",
    "threads",
    "program",
)
_MADE = "policies"  # of the settings
# The columns of a record that a comparison looks at.
COLUMNS_READ = tuple(
    name
    for name in dict.fromkeys(("cell", "mode", "run_id", "started_at", *OF_A_RUN, *_TEXTS, *_FIGURES, "settings"))
    if name != _MADE
)


class State(NamedTuple):
    """How a cell ended, and under what; many cells share one."""

    status: str
    reason: str | None
    weights: str | None
    tf32: bool | None
    policies: str | None
    launches: int | None
    scope: str | None
    flags: str | None
    device: str | None
    baseline: bool | None  # whether its mode is the one that graphs are compared with
    threads: int | None
    program: str | None

    @property
    def excluded(self) -> str | None:
        """Return why its figures are not compared; None where they are."""
        return exclusion.reason(self.status, self.program, self.flags)

    @property
    def few_launches(self) -> bool:
        """Whether its interval says nothing of other processes; records of old do not tell how many they had."""
        known = self.launches if self.launches is not None else ENOUGH_LAUNCHES
        return known < ENOUGH_LAUNCHES or self.scope == WITHIN_PROCESS


def on_cpu(device: str | None) -> bool:
    """Whether a record's device is the CPU, as it was in the first records, which name none."""
    return (device or "cpu").partition(":")[0] == "cpu"


class Figures(NamedTuple):
    """What was measured of a cell, in ms; the speedup over eager; the speeds of host and GPU meanwhile."""

    latency: float | None
    latency_low: float | None
    latency_high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    host_loop: float | None
    host: float | None
    gpu_mhz: float | None

    @property
    def interval(self) -> Interval:
        return Interval(*self[:3])

    @property
    def of_speedup(self) -> Interval | None:
        """The speedup over eager; None for eager, and without an interval."""
        return None if None in self[3:6] else Interval(*self[3:6])


class Pair(NamedTuple):
    """A cell that both runs measured under the same conditions."""

    cell: str
    states: tuple[State, State]
    figures: tuple[Figures, Figures]

    @property
    def group(self) -> str:
        return self.cell.rpartition("/")[0]

    @property
    def mode(self) -> str:
        return self.cell.rpartition("/")[2]

    @property
    def baseline(self) -> bool:
        """Whether it is the mode that graphs are compared with."""
        return bool(self.states[0].baseline)

    def host_decides(self, side: int) -> bool:
        """Whether the host decides how long a call takes."""
        if on_cpu(self.states[side].device):
            return True
        figures = self.figures[side]
        return flags.host_bound(None if figures.host is None else figures.host / figures.latency)

    @property
    def disturbance(self) -> str:
        """Which side's latency was disturbed, by what; empty where neither was."""
        for side, letter in enumerate("AB"):
            raised = self.states[side].flags
            if raised and (guilty := _disturbing(raised, self.host_decides(side))):
                return f"{letter} was disturbed ({guilty})"
        return ""


@cache  # a few, over and over
def _disturbing(raised: str, host_decides: bool) -> str:
    """Those of a record's flags that concern its latency."""
    return ", ".join(name for name in raised.split(";") if flags.disturbed([name], flags.LATENCY, host_decides))


class Joined(NamedTuple):
    """Cells that can be compared, and the others with their reason."""

    pairs: list[Pair]
    others: list[Compared]
    in_both: int


# Parameters that workloads were given after runs had been published, at the values that those runs had.
_LATER = re.compile(r",(quant=none|product=matmul)(?=[,/])")


class _Side:
    """One run's records by the names of their cells, as runs without later parameters have them."""

    def __init__(self, columns: Mapping[str, list]):
        baselines = map(_is_baseline, columns["mode"], columns["baseline"])
        columns = {**columns, _MADE: list(map(_policies, columns["settings"])), "baseline": list(baselines)}
        names = [_LATER.sub("", name) for name in columns["cell"]]
        states = map(State, *map(columns.get, _TEXTS))
        figures = map(Figures, *map(columns.get, _FIGURES))
        self.cells = dict(zip(names, zip(states, figures, strict=True), strict=True))
        self.count = Counter(names)


@cache  # a few, over and over
def _is_baseline(mode: str, baseline: bool | None) -> bool:
    return is_baseline({"mode": mode, "baseline": baseline})


@cache  # a few, over and over
def _policies(settings: str | None) -> str | None:
    """The choices of settings that a worker followed, as text; None where the record does not say."""
    followed = json.loads(settings).get("policies") if settings else None
    return None if followed is None else ", ".join(f"{name}={choice}" for name, choice in sorted(followed.items()))


def joined(a: Mapping[str, list], b: Mapping[str, list]) -> Joined:
    """The records of two runs, as columns of `COLUMNS_READ`, by the names of their cells."""
    ours, theirs = _Side(a), _Side(b)
    pairs, others = [], []
    nowhere = State(*[None] * len(_TEXTS)), Figures(*[None] * len(_FIGURES))
    for name in ours.cells | theirs.cells:
        (state_a, a_ms), (state_b, b_ms) = ours.cells.get(name, nowhere), theirs.cells.get(name, nowhere)
        if (
            why := _unpaired(ours.count[name], theirs.count[name])
            or _excluded(state_a, state_b)
            or _unlike(state_a[2:5], state_b[2:5])
            or _unbounded(a_ms, b_ms)
        ):
            times_ms = a_ms[0] if state_a.status in MEASURED else None, b_ms[0] if state_b.status in MEASURED else None
            broke = not state_a.excluded and state_b.status is not None and state_b.excluded is not None
            others.append(Compared(name, times_ms, None, NOT_COMPARABLE, why, broke))
        else:
            pairs.append(Pair(name, (state_a, state_b), (a_ms, b_ms)))
    return Joined(pairs, others, len(ours.cells.keys() & theirs.cells.keys()))


def cells_of(columns: Mapping[str, list]) -> dict[str, tuple[State, Figures]]:
    """One run's cells by name; of a cell that it holds twice the later."""
    return _Side(columns).cells


@cache  # nearly always one and one
def _unpaired(ours: int, theirs: int) -> str:
    """Why a cell with so many records cannot be compared; empty where each run has one."""
    for side, count, other in (("A", ours, "B"), ("B", theirs, "A")):
        if not count:
            return f"only in {other}"
        if count > 1:
            return f"{side} holds it {count} times"
    return ""


@cache  # a few states, over and over
def _excluded(a: State, b: State) -> str:
    """Why times of records in these states cannot be compared where one of them is excluded."""
    for side, state in (("A", a), ("B", b)):
        if state.excluded:
            why = exclusion.WORDS.get(state.excluded) or state.reason or "no reason given"
            return f"{side}: {state.excluded}: {why.rstrip('.')}"
    return ""


@cache  # a few states, over and over
def _unlike(a: tuple, b: tuple) -> str:
    """Why times of records under these conditions cannot be compared: they are not of the same thing."""
    for (column, name), *both in zip(_ALIKE.items(), a, b, strict=True):
        if None not in both and both[0] != both[1]:
            return f"the {name} differ{'s' if column == 'tf32' else ''}: {both[0]} and {both[1]}"
    return ""


def _unbounded(a: Figures, b: Figures) -> str:
    """Which side's latency has no interval; empty where both have one."""
    for side, latency in (("A", a), ("B", b)):
        if None in latency[:3]:
            return f"{side} has too few samples for an interval"
    return ""
