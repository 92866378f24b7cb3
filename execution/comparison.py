"""Check that cells compute correct outputs: compare them with the reference's, or with another cell's."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

import frameworks
import workloads
from execution.reference_data import ReferenceData, with_conventions
from measurement import durable
from measurement.cells import Cell
from measurement.parity import (
    INCOMPARABLE,
    Parity,
    Sample,
    are_numbers,
    by_output,
    difference,
    differences,
    emptiness,
    nearest_to_its_limit,
)
from measurement.protocol import Report, UserModelReport
from plan.plan import Group, at_unseen_length
from records.cell_result import CellResult, Failure
from records.runs import Run
from workloads.spec import Arrays, Workload, places_kept

STANDING_IN = "references.json"
AFTER_MANY_CALLS = (
    "After many calls, eager mode returns other outputs for the first input, because the model keeps state outside "
    "of buffers: register it as buffers, or remove it."
)


class StandIn(TypedDict):
    """Outputs that replace a reference: their cell, its name in texts, and their file in the run's folder."""

    cell: str
    name: str
    outputs: str


@dataclass
class References:
    """Outputs that replace a reference that takes too long to compute: the first at a shape and dtype.

    A file of the run names their cells and paths, so that a resumed run compares with the same outputs.
    """

    run: Run
    standing_in: dict[str, StandIn] = field(init=False)  # by shape and dtype

    def __post_init__(self) -> None:
        self.standing_in = cast(dict[str, StandIn], self.run.read(STANDING_IN))

    def check(
        self,
        group: Group,
        results: dict[str, CellResult],
        reference_data: Callable[[Group], ReferenceData],
        unseen_seq: int | str | None = None,
    ) -> None:
        """Compare saved outputs with the reference's, or with those of the first framework at this shape.

        Both must have the same dtype, because the rounding of a coarser dtype cannot judge a finer one. The first
        framework's own outputs are only checked for NaN. Without their file no other cell is compared with them. Raises
        OSError if files of processes are missing.
        """
        workload = workloads.get(group.cells[0].workload, group.cells[0].pass_name)
        key = [workload.name, workload.reference_parameters(with_conventions(group)), group.cells[0].pass_name]
        path = reference_data(group).reference
        computed = dict(np.load(path)) if path else None
        other = at_unseen_length(group, unseen_seq)
        unseen = reference_data(other).reference if other else None
        for cell in group.cells:
            result, place = results[cell.id], json.dumps([*key, cell.dtype])
            if result.failure or not result.reports:
                continue
            try:
                result.parity = self.parity(result, computed, place, workload)
                check_unseen(result, unseen)
            except Changed as error:
                for each in (results[cell.id] for cell in group.cells):  # none of its modes can be compared
                    each.failure = each.failure or Failure("unsupported", str(error))
                return
            except Exception as error:  # a truncated file, or arrays of another form: only this cell fails
                for report in result.reports:  # unless a folder or its disk is missing
                    if report.outputs:
                        durable.check_room(Path(report.outputs).parent, os.environ)
                result.failure = Failure.over(error)
                continue
            if result.parity is None and (outputs := result.compared[0].outputs):
                self.keep(place, cell, outputs)

    def parity(self, result: CellResult, computed: Arrays | None, place: str, workload: Workload) -> Parity | None:
        """Return the difference of the outputs from the reference's; None for outputs that replace it."""
        if not result.compared:
            raise FileNotFoundError("no process wrote outputs")
        outputs = [dict(np.load(report.outputs or "")) for report in result.compared]
        if not workload.has_reference:
            return with_own_eager(result, outputs, workload)
        known = None if computed else self.known(place, result.cell)
        if computed:
            name, reference = "numpy", computed
        elif known:
            name, reference = known
        elif not all(map(are_numbers, outputs)):
            name, reference = "any other framework", {}
        else:
            result.empty = emptiness(outputs[0])
            return None
        result.empty = emptiness(reference)
        dtype, parameters = result.cell.dtype, dict(result.cell.parameters)
        pairs = [workload.comparable(parameters, values, reference, dtype) for values in outputs]
        worst, tolerance = nearest_to_its_limit(pairs, lambda output: workload.tolerance_of(output, dtype))
        steps = [workload.first_differing(parameters, values, reference) for values in outputs]
        first = min((step for step in steps if step), default=None)
        return Parity(worst, tolerance, name, first)

    def known(self, place: str, cell: Cell) -> tuple[str, Arrays] | None:
        """Return the name and outputs of another cell that replaces the reference; None without one or its file."""
        entry = self.standing_in.get(place)
        if entry is None or entry["cell"] == cell.id:
            return None
        path = self.run.folder / entry["outputs"]
        return (entry["name"], dict(np.load(path))) if path.exists() else None

    def keep(self, place: str, cell: Cell, outputs: str) -> None:
        """Let this cell's outputs replace the reference, unless another cell's did, even if their file is missing."""
        if self.standing_in.get(place, {"cell": cell.id})["cell"] == cell.id:  # or measured again, its record lost
            path = Path(outputs).absolute().relative_to(self.run.folder.absolute())
            self.standing_in[place] = {"cell": cell.id, "name": f"{cell.framework} {cell.mode}", "outputs": str(path)}
            self.run.write(STANDING_IN, self.standing_in)


def with_own_eager(result: CellResult, outputs: list[Arrays], workload: Workload) -> Parity:
    """Return the parity of a user model's outputs with those of its own eager mode in the same process.

    It is the parity of the output nearest to its limit. If eager mode in the cell's dtype exceeds the tolerance in an
    output, that output's limit is a multiple of eager mode's error. Raises `Changed` if eager mode's outputs differ
    from those before sampling.
    """
    read = functools.cache(lambda path: dict(np.load(path)))
    parities = [
        parity
        for report, values in zip(result.compared, outputs, strict=True)
        for parity in _of_process(result, report, values, workload, read)
    ]
    models = [report.user_model for report in result.compared]
    kinds = {emptiness(read(model.reference)) if model else None for model in models}
    result.empty = kinds.pop() if len(kinds) == 1 else None
    result.not_numbers = any(_has_no_numbers(model, read) for model in models if model)
    return replace(Parity.nearest(parities), eager=max(parity.eager for parity in parities))


def _has_no_numbers(model: UserModelReport, read: Callable[[str], Arrays]) -> bool:
    """Return whether eager values are NaN, or infinite where those of the reference are finite."""
    reference = read(model.reference)
    eager = read(model.eager) if model.eager else reference
    floating = [(eager[name], reference[name]) for name in reference if reference[name].dtype.kind in "fc"]
    return not all((np.isfinite(own) | (own == expected)).all() for own, expected in floating)


class Changed(Exception):
    """A user model's outputs change after many calls; the message is the reason."""


def _of_process(
    result: CellResult, report: Report, values: Arrays, workload: Workload, read: Callable[[str], Arrays]
) -> list[Parity]:
    """Return the parity of each output of a user model in one process; `read` returns a file's arrays."""
    dtype, parameters, model = result.cell.dtype, dict(result.cell.parameters), report.user_model
    if model is None:
        return [Parity(INCOMPARABLE, workload.tolerance[dtype], "its own eager mode")]
    reference = read(model.reference)
    eager = read(model.eager) if model.eager else None
    if values.keys() != reference.keys():
        return [Parity(INCOMPARABLE, workload.tolerance[dtype], model.reference_name)]
    if eager:
        eager, _ = workload.comparable(parameters, eager, reference, dtype)
    values, reference = workload.comparable(parameters, values, reference, dtype)
    samples = {key: Sample(shape, places_kept(shape)) for key, shape in model.shapes.items()}
    allowed = partial(workload.tolerance_of, dtype=dtype)
    found = by_output(values, reference, eager, allowed, dtype, model.reference_name, samples)
    is_graph = frameworks.describe(result.cell.framework).mode(result.cell.mode).graph
    for name, error in differences(values, eager).items() if eager and not is_graph else ():
        if name in found and not replace(found[name], difference=error, unequal=0.0).holds:
            raise Changed(AFTER_MANY_CALLS)
    return list(found.values())


def check_unseen(result: CellResult, reference: Path | None) -> None:
    """Mark the figures at the length of `--unseen-seq` as a problem if the outputs there exceed the tolerance."""
    if reference is None or result.parity is None:
        return
    for index, report in enumerate(result.reports):
        if report.unseen and report.unseen.outputs:
            distance = difference(dict(np.load(report.unseen.outputs)), dict(np.load(reference)))
            if not distance.within(result.parity.tolerance):
                problem = f"its outputs differ from numpy's by up to {distance.largest:.3g}"
                result.reports[index] = replace(report, unseen=replace(report.unseen, problem=problem))
