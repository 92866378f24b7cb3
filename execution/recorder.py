"""Turn results into records: check outputs, keep the machine's peaks, and store one row per cell."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

import workloads
from execution import peak_benchmarks
from execution.comparison import References
from execution.peak_benchmarks import Kept
from execution.reference_data import ReferenceData
from execution.slots import Slot
from measurement.cells import PEAK_PREFIX, Cell
from measurement.peaks import Peaks
from measurement.refusals import UsageError
from plan.plan import Group, Plan, baseline_of
from records import assemble
from records.cell_result import CellResult, Context, Failure
from records.record import Record
from records.runs import Run, utc_now

PEAKS = "peaks.json"


class RecordDisplay(Protocol):
    """Receives finished records."""

    def record(self, record: Record) -> None: ...


@dataclass
class Recorder:
    """Judges measurements and writes a record for every cell, once."""

    run: Run
    context: Context
    display: RecordDisplay
    reference_data: Callable[[Group], ReferenceData]
    unseen_seq: int | str | None = None
    with_peaks: bool = True
    peaks: dict[str, Peaks] = field(default_factory=dict)  # by peak_benchmarks.key
    busy: dict[str, float] = field(default_factory=dict)  # by eager's cell: seconds per call with the device busy
    references: References = field(init=False)
    written: set[Group] = field(default_factory=set)
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext  # context of the wait for a record's disk write

    def __post_init__(self) -> None:
        self.references = References(self.run)
        self.peaks |= _kept_peaks(self.run)

    def in_slot(self, slot: Slot) -> Recorder:
        """Return a recorder for the cells of a slot, which shares the peaks and references of all slots."""
        its = copy.copy(self)
        its.context = replace(self.context, side_by_side=slot.of, served_by=slot.served_by(), node=slot.node)
        its.waiting = slot.given_away
        return its

    def write_impossible(self, plan: Plan, finished: frozenset[str], weights: str) -> None:
        """Write the records of the cells that were known beforehand to be impossible."""
        for cell in plan.cells:
            if cell.id in plan.impossible and cell.id not in finished:
                result = CellResult(cell, utc_now(), failure=Failure("unsupported", plan.impossible[cell.id]))
                self._write([result], {}, weights)

    def finish(self, group: Group, results: dict[str, CellResult]) -> None:
        """Write the records of a group, once."""
        if group in self.written:
            return
        self.written.add(group)
        try:
            self.references.check(group, results, self.reference_data, self.unseen_seq)
        except (OSError, UsageError):  # a full or missing disk stops the run
            raise
        except Exception as error:  # other errors fail only this group
            for cell in group.cells:
                results[cell.id].failure = results[cell.id].failure or Failure.over(error)
        lacking = [results[cell.id] for cell in group.cells if cell.id in group.lacking]
        self._write(lacking, results, self.reference_data(group).weights_name)

    def _write(self, lacking: list[CellResult], results: dict[str, CellResult], weights: str) -> None:
        for result in lacking:
            baseline = results.get(baseline_of(result.cell).id)
            if baseline is not None and not (baseline.comparable and result.comparable):
                baseline = None
            if baseline is not None:
                baseline.busy_s = self.busy.get(baseline.cell.id)
            workload = workloads.get(result.cell.workload, result.cell.pass_name)
            peaks = self.peaks.get(peak_benchmarks.key(result.cell))
            try:
                record = assemble.record(result, baseline, workload, weights, peaks, self.context)
            except ArithmeticError as error:  # the figures are numbers, but impossible ones
                result.failure = Failure.over(error)
                record = assemble.record(result, None, workload, weights, peaks, self.context)
            self.run.append_record(record, self.waiting)
            self.display.record(record)

    def peak_benchmarks(self, cell: Cell) -> tuple[Group, ...]:
        """Return the peak benchmarks that a process must measure for this cell: none if the run has their peaks."""
        lacking = self.with_peaks and peak_benchmarks.key(cell) not in self.peaks
        return peak_benchmarks.groups_for(cell) if lacking else ()

    def kept_peaks(self, cell: Cell) -> Kept | None:
        """Return the peaks that an earlier run measured for such cells on this machine."""
        return peak_benchmarks.kept(cell, self.context.machine_id, self.context.policies) if self.with_peaks else None

    def note_peaks(self, cell: Cell, groups: tuple[Group, ...], results: dict[str, CellResult]) -> None:
        """Store the peaks that a process measured, also for later and resumed runs."""
        measured = [results[PEAK_PREFIX + group.cells[0].id] for group in groups]
        peaks = peak_benchmarks.peaks_from(measured) if measured else None
        if peaks:
            peak_benchmarks.keep(cell, self.context.machine_id, self.context.policies, measured, peaks)
            self.take_peaks(cell, peaks)

    def take_peaks(self, cell: Cell, peaks: Peaks) -> None:
        """Use these peaks for all records of such cells, also in a resumed run."""
        if peak_benchmarks.key(cell) not in self.peaks:  # else the peaks that another slot stored first stay
            self.peaks[peak_benchmarks.key(cell)] = peaks
            self.run.write(PEAKS, {name: asdict(peaks) for name, peaks in self.peaks.items()})


def _kept_peaks(run: Run) -> dict[str, Peaks]:
    """Return the peaks of an earlier part of the run. Raises UsageError if the file contains anything else."""
    kept: dict[str, Peaks] = {}
    for name, values in run.read(PEAKS).items():
        try:
            peaks: Peaks | None = Peaks(**values)
        except TypeError:  # not an object, or one with other names
            peaks = None
        if peaks is None or not peaks.are_rates:
            path = run.folder / PEAKS
            raise UsageError(f"{path} was changed and has no peaks of {name}; remove the file, then try again.")
        kept[name] = peaks
    return kept
