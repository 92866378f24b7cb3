"""Two runs' records joined by cell: which can be compared, and why others cannot."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from analysis.comparison import NOT_COMPARABLE, Compared, Reason
from measurement import flags
from measurement.statistics import ENOUGH_PROCESSES, WITHIN_PROCESS, Interval
from records import figures
from records.record import FIELDS, Record
from records.statuses import WORDS


class Kind(NamedTuple):
    """Properties that many of a run's records share."""

    machine_id: str | None
    device_name: str | None
    framework: str
    framework_version: str | None
    git_revision: str | None
    profile: str | None
    processes: int | None


# The columns of a record that a comparison reads.
COLUMNS_READ = (
    *("cell", "mode", "run_id", "started_at"),
    *(name for name, field in FIELDS.items() if field in Kind._fields),
    *("status", "reason", "weights", "tf32", "settings"),
    *("interval_scope", "flags", "device", "baseline", "threads", "program"),
    *figures.COLUMNS["latency"],
    *figures.COLUMNS["speedup"],
    *("host_loop_ms_median", "host_loop_ms_full", "host_ms_median", "gpu_sm_mhz"),
)


def kinds_of(records: Iterable[Record]) -> list[Kind]:
    """Return every machine, framework, version, revision, profile and number of processes that occur together."""
    return [Kind(*values) for values in dict.fromkeys(map(attrgetter(*Kind._fields), records))]


def few_processes(record: Record) -> bool:
    """Return whether a record's interval does not cover other processes; early records lack the count."""
    known = record.processes if record.processes is not None else ENOUGH_PROCESSES
    return known < ENOUGH_PROCESSES or record.interval_scope == WITHIN_PROCESS


class Pair(NamedTuple):
    """A cell that both runs measured under the same conditions, A's record first."""

    cell: str
    records: tuple[Record, Record]
    latencies: tuple[Interval, Interval]

    @property
    def group(self) -> str:
        return self.cell.rpartition("/")[0]

    @property
    def mode(self) -> str:
        return self.cell.rpartition("/")[2]

    @property
    def baseline(self) -> bool:
        """Return whether it is the mode that graphs are compared with."""
        return self.records[0].is_baseline

    def host_decides(self, side: int) -> bool:
        """Return whether the host decides how long a call takes."""
        record = self.records[side]
        if record.device_kind == "cpu":
            return True
        host_ms = record.host_ms_median
        return flags.host_bound(None if host_ms is None else host_ms / record.median_ms)

    @property
    def waits_for_host(self) -> bool:
        """Return whether the host decides both sides' times."""
        return self.host_decides(0) and self.host_decides(1)

    @property
    def conditions(self) -> str:
        """Return the flags on the machine that concern a side's latency: `A: steal`; empty where there are none."""
        raised = [(letter, record.flags or "") for letter, record in zip("AB", self.records, strict=True)]
        found = [(letter, _concerning(names, self.host_decides(side))) for side, (letter, names) in enumerate(raised)]
        return "; ".join(f"{letter}: {names}" for letter, names in found if names)


@cache  # a few, over and over
def _concerning(raised: str, host_decides: bool) -> str:
    """Return those of a record's flags that concern its latency."""
    return ", ".join(name for name in raised.split(";") if flags.disturbed([name], flags.LATENCY, host_decides))


class Joined(NamedTuple):
    """Cells that can be compared, and the others with their reason."""

    pairs: list[Pair]
    others: list[Compared]
    in_both: int


# Parameters that workloads have since the first published runs, at the values of those runs.
_LATER = re.compile(r",(quant=none|product=matmul)(?=[,/])")


@cache  # a few, over and over
def _policies(settings: str | None) -> str | None:
    """Return the policies that a worker followed, as text; None where the record has none."""
    followed = json.loads(settings).get("policies") if settings else None
    return None if followed is None else ", ".join(f"{name}={choice}" for name, choice in sorted(followed.items()))


def joined(a: Sequence[Record], b: Sequence[Record]) -> Joined:
    """Return the records of two runs, read with `COLUMNS_READ`, by the names of their cells."""
    names_a, names_b = ([_name(record) for record in records] for records in (a, b))
    cells_a, cells_b = dict(zip(names_a, a, strict=True)), dict(zip(names_b, b, strict=True))
    count_a, count_b = Counter(names_a), Counter(names_b)
    pairs, others = [], []
    for name in cells_a | cells_b:
        ours, theirs = cells_a.get(name), cells_b.get(name)
        why = _unpaired(count_a[name], count_b[name])
        ours_ms, theirs_ms = (record.latency if record else None for record in (ours, theirs))
        if not why and ours and theirs:
            why = _excluded(ours, theirs) or unlike(ours, theirs) or _unbounded(ours_ms, theirs_ms)
        if not why and ours and theirs and ours_ms and theirs_ms:
            pairs.append(Pair(name, (ours, theirs), (ours_ms, theirs_ms)))
        else:
            others.append(_not_comparable(name, ours, theirs, why))
    return Joined(pairs, others, len(cells_a.keys() & cells_b.keys()))


def _not_comparable(name: str, a: Record | None, b: Record | None, why: Reason | None) -> Compared:
    a_ms, b_ms = (record.latency_ms_median if record and record.is_measured else None for record in (a, b))
    broke = a is not None and b is not None and not a.excluded and b.excluded is not None
    return Compared(name, (a_ms, b_ms), None, NOT_COMPARABLE, why, broke)


def cells_of(records: Iterable[Record]) -> dict[str, Record]:
    """Return a run's records by the names of their cells; of duplicates, the later."""
    return {_name(record): record for record in records}


def _name(record: Record) -> str:
    """Return the name of a record's cell, as runs without later parameters have it."""
    return _LATER.sub("", record.cell)


@cache  # nearly always 1 and 1
def _unpaired(ours: int, theirs: int) -> Reason | None:
    """Return why a cell with so many records cannot be compared; None where each run has one."""
    for side, count, other in (("A", ours, "B"), ("B", theirs, "A")):
        if not count:
            return Reason("only in one", (other,))
        if count > 1:
            return Reason("held several times", (side, count))
    return None


def _excluded(a: Record, b: Record) -> Reason | None:
    """Return why times of these records cannot be compared where one of them is excluded."""
    for side, record in (("A", a), ("B", b)):
        if record.excluded:
            why = WORDS.get(record.excluded) or record.reason or "no reason given"
            return Reason("excluded", (side, record.excluded, why.rstrip(".")))
    return None


def unlike(a: Record, b: Record) -> Reason | None:
    """Return why times of these records cannot be compared: their conditions differ."""
    policies = (None, None) if a.settings == b.settings else (_policies(a.settings), _policies(b.settings))
    each = {"weights": (a.weights, b.weights), "tf32": (a.tf32, b.tf32), "policies": policies}
    for name, both in each.items():
        if None not in both and both[0] != both[1]:
            return Reason(f"other {name}", both)
    return None


def _unbounded(a: Interval | None, b: Interval | None) -> Reason | None:
    """Return which side's latency has no interval; None where both have one."""
    return None if a and b else Reason("few samples", ("B" if a else "A",))
