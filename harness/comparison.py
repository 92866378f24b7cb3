"""Whether cells compute what they should: their outputs against the oracle's, or against another cell's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import workloads
from harness.materials import Materials
from harness.outcomes import Outcome, Parity
from harness.plan import Group, at_unseen_length
from measurement.parity import Difference, are_numbers, difference


@dataclass
class References:
    """Outputs that stand in for the oracle's where that would take too long: the first at a shape and dtype."""

    standing_in: dict[tuple, tuple[str, dict]] = field(default_factory=dict)

    def check(
        self,
        group: Group,
        outcomes: dict[str, Outcome],
        materials: Callable[[Group], Materials],
        unseen_seq: int | None = None,
    ) -> None:
        """Compare every launch's outputs with the oracle's, or with those of the first framework at this shape.

        That one must have computed in the same dtype: a coarser one's rounding is no measure for a finer one's. It is
        compared with nothing itself, unless its outputs are no numbers.
        """
        workload = workloads.get(group.cells[0].workload, group.cells[0].pass_name)
        key = (workload.name, tuple(workload.oracle_parameters(group.parameters).items()), group.cells[0].pass_name)
        oracle = materials(group).reference
        for cell in group.cells:
            outcome = outcomes[cell.id]
            if outcome.failure or not outcome.reports:
                continue
            outputs = [dict(np.load(report["outputs"])) for report in outcome.reports]
            place = (*key, cell.dtype)
            if oracle:
                name, reference = "numpy", dict(np.load(oracle))
            elif place in self.standing_in or not all(map(are_numbers, outputs)):
                name, reference = self.standing_in.get(place, ("any other framework", {}))
            else:
                self.standing_in[place] = (f"{cell.framework} {cell.mode}", outputs[0])
                continue
            worst = functools.reduce(Difference.worst, (difference(values, reference) for values in outputs))
            outcome.parity = Parity(worst, workload.tolerance[cell.dtype], name)
            other = at_unseen_length(group, unseen_seq)
            check_unseen(outcome, materials(other).reference if other else None)


def check_unseen(outcome: Outcome, oracle) -> None:
    """What a mode computes at the length of `--unseen-seq` must be right as well, or its figures there are void."""
    seen = [report["unseen"] for report in outcome.reports if "outputs" in (report.get("unseen") or {})]
    for entry in seen if oracle else ():
        found = difference(dict(np.load(entry["outputs"])), dict(np.load(oracle)))
        if not found.within(outcome.parity.tolerance):
            entry["problem"] = f"its outputs differ from numpy's by up to {found.largest:.3g}"
