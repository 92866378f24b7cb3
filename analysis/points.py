"""Records as points to be compared: their groups, and their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import TypeVar

from measurement.statistics import Interval
from measurement.text import times
from records import figures
from records.record import Record

# Columns that must be equal for two cells to be compared; a value common to a whole report is not repeated.
ALIKE = ("workload", "implementation", "pass_name", "device", "dtype", "threads", "shapes", "weights", "compile_cache")
_SIZES = ("batch_size", "seq_len", "parameters")
_KEY = (*ALIKE, *_SIZES)
shape_of = attrgetter(*_KEY)  # setting and shape of a record, on any machine
# The columns of a record that a report reads.
COLUMNS_READ = (
    *(
        "schema_version",
        "run_id",
        "started_at",
        "machine_id",
        "device_name",
        "cell",
        "framework",
        "framework_version",
        "mode",
    ),
    *("pass" if name == "pass_name" else name for name in _KEY),
    *("status", "reason", "stderr_tail", "profile", "flags", "git_revision", "target_half_width", "sign"),
    *("versions", "baseline", "build_s", "load_s", "first_call_s", "compiler_start_s", "launches", "node"),
    *("interval_scope", "tf32", "settings"),
    *("host_loop_ms_full", "host_ms_in_loops", "bound_replay", "bound_roofline"),
    *("break_even_calls", "break_even_low", "break_even_high"),
    *("host_ms_median", "peak_memory_mb", "regime", "program", *figures.ALL),
    *("parity_reference", "other_load_cores", "steal_share", "graphs", "graph_breaks", "graph_break_places"),
    *("power_w", "idle_power_w", "energy_source", "latency_slowed"),
    *("outside_share", "gain_at_best", "recompiled_places", "recompilations", "samples", "calls_per_sample"),
)
# Values that names omit.
USUAL = {"pass_name": "inference", "shapes": "static", "compile_cache": "cold"}

Key = TypeVar("Key")
Thing = TypeVar("Thing")


@dataclass(eq=False)
class Point:
    """A record with its place: `setting` and `shape` name computation and machine, `series` framework and mode."""

    record: Record
    setting: str
    shape: str
    series: str
    place: int  # in the order of settings and shapes; alike for the modes and frameworks of one shape
    eager: bool
    measured: bool  # whether its figures may be compared: its outputs agree with the reference

    @property
    def tags(self) -> dict[str, str]:
        """Return the values by which the page filters a row of it."""
        places = {"batch": self.record.batch_size, "tokens": self.record.seq_len}
        return {"mode": self.series} | {name: str(value) for name, value in places.items() if value is not None}

    @cached_property
    def latency(self) -> Interval | None:
        """Return median latency in ms with its interval."""
        return self.record.latency

    @cached_property
    def speedup(self) -> Interval | None:
        """Return eager's time over this mode's; None without an interval."""
        return self.record.speedup

    @cached_property
    def excluded(self) -> str | None:
        """Return why it enters no mean, ranking or verdict; None where it does."""
        return self.record.excluded

    @property
    def median_ms(self) -> float:
        """Return the median time per call in ms of a measured point."""
        return self.record.median_ms


class Points:
    """All points of a report. Machines are kept apart unless `across`; then they are part of a series' name."""

    def __init__(self, records: Sequence[Record], across: bool = False):
        self.machines = machine_names(record.machine for record in records)
        self.across = across
        keys = [_key(record) for record in records]
        # Many records share a setting and a shape: these are named and put in order once.
        firsts: dict[tuple, Record] = {}
        for key, record in zip(keys, records, strict=True):
            firsts.setdefault(key, record)
        columns = dict(zip(_KEY, zip(*firsts, strict=True), strict=False))  # without the machine
        self._varying = {name for name in ALIKE if len(set(columns.get(name, ()))) > 1}
        self._constant = _constant_parameters(firsts.values())
        self._keys = sorted(firsts, key=lambda key: tuple(map(natural, key[:-1])))
        names = {key: (self._setting(firsts[key]), self._shape(firsts[key]), n) for n, key in enumerate(self._keys)}
        self._frameworks = {name: n for n, name in enumerate(dict.fromkeys(r.framework for r in records))}
        # By setting and shape; eager before a framework's graph modes.
        self._series: dict[tuple, str] = {}
        self.all = [self._point(record, *names[key]) for record, key in zip(records, keys, strict=True)]
        self.all.sort(key=self._order)
        self.measured = [point for point in self.all if point.measured]

    def _point(self, record: Record, setting: str, shape: str, place: int) -> Point:
        mode = record.mode
        who = record.framework, mode, record.machine
        if who not in self._series:
            machine = f" on {self.machines[who[2]]}" if self.across and len(self.machines) > 1 else ""
            self._series[who] = f"{who[0]} {mode}{machine}"
        measured = record.is_measured and record.latency_ms_median is not None
        return Point(record, setting, shape, self._series[who], place, record.is_baseline, measured)

    def _order(self, point: Point) -> tuple:
        return point.place, self._frameworks[point.record.framework], not point.eager

    def title(self, record: Record, without: str) -> str:
        """Return setting and shape in words, without one axis."""
        return ", ".join(filter(None, (self._setting(record, without), self._shape(record, without))))

    def groups(self, points: Iterable[Point], without: str) -> list[list[Point]]:
        """Return groups of points that differ at most in mode, framework and one axis, in order of first appearance."""
        gap = _KEY.index(without)
        numbers: dict[tuple, int] = {}
        # The machine is last in a key. Numbers are faster to look up than keys, which many points share.
        shared = (key[:gap] + key[gap + 1 : -1 if self.across else None] for key in self._keys)
        number = [numbers.setdefault(key, len(numbers)) for key in shared]
        return list(grouped(points, lambda point: number[point.place]).values())

    def _setting(self, record: Record, without: str = "") -> str:
        threads = record.threads if without != "threads" else None
        parts = [
            f"{record.workload} {record.implementation}",
            *self._constant.get(_model(record), ()),
            f"{record.device} {record.dtype}",
            *([times(threads, "thread")] if threads else []),
        ]
        parts += [str(value) for name, usual in USUAL.items() if (value := getattr(record, name)) not in (None, usual)]
        if "weights" in self._varying:
            parts.append(f"weights {record.weights}")
        if len(self.machines) > 1 and not self.across:
            parts.append(f"on {self.machines[record.machine]}")
        return ", ".join(parts)

    def _shape(self, record: Record, without: str = "") -> str:
        constant = self._constant.get(_model(record), ())
        batch, length = record.batch_size, record.seq_len
        parts = [f"batch {batch}"] if batch is not None and without != "batch_size" else []
        parts += [f"{length} tokens"] if length is not None and without != "seq_len" else []
        parts += [part for part in record.other_parameters if part not in constant]
        return ", ".join(parts) or ("" if without else "the only shape")

    @cached_property
    def series(self) -> list[str]:
        """Return every series: a framework's modes together, eager first."""
        firsts = {point.series: point for point in self.all}
        return sorted(firsts, key=lambda name: self._order(firsts[name])[1:])


def grouped(things: Iterable[Thing], key: Callable[[Thing], Key]) -> dict[Key, list[Thing]]:
    """Return points or other items by key, keys in order of first appearance."""
    groups = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return dict(groups)


def machine_names(each: Iterable[tuple]) -> dict[tuple, str]:
    """Return every machine with its display name: the device's, with the hash where names repeat."""
    machines = list(dict.fromkeys(each))
    known: dict[tuple, str] = {}
    for machine_id, device in machines:
        label = device or "an unnamed device"
        alike = sum(other == device for _, other in machines) > 1
        known[machine_id, device] = f"{label} ({str(machine_id)[:4]})" if alike and machine_id else label
    return known


def _key(record: Record) -> tuple:
    """Return setting, shape and machine."""
    return *shape_of(record), record.machine


@cache  # a few values, over and over
def natural(value) -> tuple:
    """Return a key that orders numbers by size, also within texts."""
    if isinstance(value, (int, float)):
        return (0, ((value, ""),))
    parts = re.split(r"(\d+)", value or "")
    return (1, tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts))


def _model(record: Record) -> tuple:
    return record.workload, record.implementation


def _constant_parameters(records: Iterable[Record]) -> dict[tuple, tuple[str, ...]]:
    """Return parameters that are equal in all records of a workload: the setting names them, not each shape.

    Where nothing else names the shape, they stay there.
    """
    shared_by_model: dict[tuple, dict[str, None]] = {}
    sized: dict[tuple, bool] = {}
    for record in records:
        model, here = _model(record), dict.fromkeys(record.other_parameters)
        shared = shared_by_model.setdefault(model, here)
        if shared is not here and shared.keys() - here.keys():
            shared_by_model[model] = {part: None for part in shared if part in here}
        sized[model] = sized.get(model, True) and record.batch_size is not None
    return {model: tuple(shared) if sized[model] else () for model, shared in shared_by_model.items()}
