"""Results of a cell during its run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from measurement import host
from measurement.cells import Cell
from measurement.parity import Parity
from measurement.profiles import Profile
from measurement.protocol import REASON_CHARACTERS, Hello, Report
from measurement.statistics import Interval
from records.intervals import over_processes


@dataclass(frozen=True)
class Failure:
    """The reason why a cell has no figures."""

    status: str
    reason: str
    stderr_tail: str = ""

    @classmethod
    def over(cls, error: Exception) -> Failure:
        """Return the failure of a cell whose report cannot be turned into a record."""
        words = " ".join(f"{type(error).__name__}: {error}".split())[:REASON_CHARACTERS]
        return cls("error", f"The worker's report could not be turned into a record: {words}")


@dataclass(frozen=True)
class Kept:
    """A part of a cell's results saved to resume: its failure, one process's report, or eager mode's profile."""

    cell: str
    started_at: str = ""
    failure: Failure | None = None
    hello: Hello | None = None
    report: Report | None = None
    node: str = ""  # the cluster's node on which it failed, and the step there
    step: str = ""
    busy_s: float | None = None  # of a call, from a profile by this `code`
    code: str = ""

    @property
    def samples(self) -> list[dict[str, Any]]:
        """Return the lines of `samples.jsonl` for this part: one if it has a report."""
        if not (report := self.report):
            return []
        whose = {"cell": report.cell, "launch": report.process, "worker": report.worker}
        host = {"host_loop_s": report.host_loop_s, "full_speed_s": report.full_speed_s, "host_s": report.host_s}
        energy = {"energy": asdict(report.energy)} if report.energy else {}
        return [{**whose, "seconds_per_call": report.samples, **host, "device_s": report.device_s, **energy}]


def _holds_arrays(path: Path) -> bool:
    """Return whether the file's arrays can be read; a report may be on disk before its outputs are."""
    try:
        if not path.is_file():  # reading a pipe would block
            return False
        with np.load(path) as arrays:
            return all(arrays[name] is not None for name in arrays.files)
    except Exception:  # NumPy, zipfile and zlib raise many kinds for a truncated file
        return False


def full_speed_s(reports: Sequence[Report]) -> float | None:
    """Return the seconds of the host's loop at full speed, from these processes; None if none timed it."""
    return host.full_speed_s(map(_turns, reports))


def good_turns(reports: Sequence[Report], full_s: float | None) -> list[list[bool]]:
    """Return for each turn of each process of a cell whether it counts, given the host's speed."""
    return host.good_in_all(list(map(_turns, reports)), full_s)


def combined(reports: Iterable[object], name: str, combine: Callable[[list[Any]], Any] = median) -> Any:
    """Return the median, or another combination, of the reports' value `name`; None if no report has one."""
    values = [value for report in reports if (value := getattr(report, name)) is not None]
    return combine(values) if values else None


def at_full_speed(cells: Sequence[Sequence[Report]], full_s: float | None) -> list[list[list[float]]]:
    """Return the seconds per call of cells that took turns, one list per process, scaled to a core at full speed."""
    return host.at_full_speed([list(map(_turns, reports)) for reports in cells], full_s)


def _turns(report: Report) -> host.Turns:
    return host.Turns(report.samples, report.host_loop_s, report.host_s, report.device_s, report.full_speed_s)


@dataclass
class CellResult:
    """The results of one cell: one report per process, or a failure."""

    cell: Cell
    started_at: str = ""
    reports: list[Report] = field(default_factory=list)  # one per process
    hello: Hello | None = None  # the first process's versions and effective settings
    failure: Failure | None = None
    parity: Parity | None = None
    empty: str | None = None  # the flag of outputs that are zero or constant throughout
    not_numbers: bool = False  # as in `Observation`
    failed_step: str = ""  # the Slurm step in which it failed, on a cluster
    busy_s: float | None = None  # of eager mode: seconds per call in which the device is busy, from a profile

    @property
    def comparable(self) -> bool:
        """Return whether the cell's time may be compared: it was measured, and its outputs are right."""
        return not self.failure and (self.parity is None or self.parity.holds)

    @property
    def compared(self) -> list[Report]:
        """Return the reports that saved outputs: those of the first process that measured the cell's whole group."""
        return [report for report in self.reports if report.outputs is not None]

    @property
    def full_speed_s(self) -> float | None:
        """Return the seconds of the host's loop at full speed; None if no process timed it."""
        return full_speed_s(self.reports)

    @property
    def fastest_loop_s(self) -> float | None:
        """Return the control loop's seconds in the fastest process, to which times are scaled; None if unknown."""
        return host.fastest_seconds(([_turns(report)] for report in self.reports), self.full_speed_s)

    @property
    def to_full_speed(self) -> Callable[[float, float], float]:
        """Return a function of a call's seconds and the control's: its seconds on the fastest process's core."""
        fastest_s, scale = self.fastest_loop_s, host.scaling(list(map(_turns, self.reports)), self.full_speed_s)
        return lambda seconds, loop_s: scale(seconds, fastest_s / loop_s) if fastest_s else seconds

    @property
    def turns(self) -> tuple[list[list[int]], bool]:
        """Return the turns of each process that count, and whether the host was slow in too many processes."""
        return host.counting(self.good_turns)

    @property
    def good_turns(self) -> list[list[bool]]:
        """Return for each turn of each process whether it counts, given the host's speed."""
        return good_turns(self.reports, self.full_speed_s)

    @property
    def counted(self) -> list[list[float]]:
        """Return the seconds per call of the turns that count, one list per process, empty if it gives no value."""
        turns, _ = self.turns
        (taken,) = at_full_speed([self.reports], self.full_speed_s)
        return [[samples[place] for place in places] for samples, places in zip(taken, turns, strict=True)]

    @property
    def samples(self) -> list[float]:
        """Return the seconds per call of all turns that count, over all processes."""
        return [sample for process in self.counted for sample in process]

    @property
    def logarithms(self) -> list[list[float]]:
        """Return ln of the seconds that count, one list per process that gives a value."""
        return [[math.log(sample) for sample in process] for process in self.counted if process]

    @property
    def latency(self) -> Interval | None:
        """Return the seconds per call with an interval over processes; None without one."""
        interval = over_processes(self.logarithms)
        return interval.map(math.exp) if interval else None

    @property
    def latency_s(self) -> float:
        """Return the seconds per call: the geometric mean of the processes' medians, the centre of `latency`."""
        return math.exp(fmean(map(median, self.logarithms)))

    def median_of(self, name: str) -> float | None:
        """Return the median over processes of the reports' value `name`; None if no report has one."""
        return combined(self.reports, name)

    @property
    def first_call_loaded_s(self) -> float | None:
        """Return the seconds of the first call: the median over processes that loaded compiled code, if any."""
        loading = [report.first_call_s for report in self.reports if report.capture.loaded]
        return median(loading) if loading else None

    @property
    def first_call_s(self) -> float:
        """Return the seconds of the first call: the median over processes that compiled."""
        return median(report.first_call_s for report in self.compiling)

    @property
    def compiler_start_s(self) -> float | None:
        """Return the seconds in which the compiler started in processes that compiled; None for eager modes."""
        return combined(self.compiling, "compiler_start_s")

    @property
    def compiling(self) -> list[Report]:
        """Return the reports of processes that loaded nothing, or else all; with a filled cache every process loads."""
        return [report for report in self.reports if not report.capture.loaded] or self.reports

    def take_over(self, kept: Kept, node: str = "") -> None:
        """Add one process's failure or report from an interrupted run, if its outputs exist; the last report counts.

        All processes of a cell run on one node, so reports of another node are measured again.
        """
        if kept.failure and kept.node == node:
            self.failure, self.failed_step, self.hello = kept.failure, kept.step, self.hello or kept.hello
        elif kept.report and kept.report.node == node:
            if kept.report.outputs is not None and not _holds_arrays(Path(kept.report.outputs)):
                return
            self.started_at, self.hello = kept.started_at, kept.hello
            self.forget(kept.report.process)  # half a group, measured again and interrupted again
            self.add(kept.report)

    def add(self, report: Report) -> None:
        """Add a process's report, and keep reports in the order of their processes."""
        self.reports = sorted([*self.reports, report], key=lambda report: report.process)

    def forget(self, process: int | None) -> None:
        """Drop the report of a process that is measured again."""
        self.reports = [report for report in self.reports if report.process != process]

    def has_report(self, process: int) -> bool:
        """Return whether that process measured the cell."""
        return any(report.process == process for report in self.reports)


@dataclass(frozen=True)
class Context:
    """Facts shared by every record of a run."""

    run_id: str
    machine_id: str
    cpu_name: str
    git_revision: str | None
    profile: Profile
    compile_cache: str
    distributions: dict[str, tuple[str, ...]]  # framework -> its packages, the framework's own first
    side_by_side: int = 1  # processes that run at the same time
    policies: dict[str, str] = field(default_factory=dict)  # choices that differ from the suite's
    # GPU and CPUs, if they differ within the run.
    served_by: dict[str, Any] = field(default_factory=dict)
    node: str = ""  # of a cluster
    code: str | None = None  # revision of the measuring code; None if unknown
