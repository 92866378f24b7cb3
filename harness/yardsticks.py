"""Measured peaks: a large matrix product and a large copy, once per run and kind of launch."""

from __future__ import annotations

from collections.abc import Iterable

import workloads
from harness.assemble import BYTES_PER_VALUE
from harness.outcomes import Outcome
from harness.plan import Group, known_obstacle
from measurement.cells import Cell
from measurement.peaks import Peaks

# Large enough to reach the peak and to leave the caches, small enough for a second or so. On the CPU the copy stays
# under 32 MiB: above that glibc maps new pages for every result, and their faults, not the memory, would be timed.
SIZES = {"cpu": {"matmul": {"size": 2048}, "stream": {"elements": 7_500_000}}}
SIZES["gpu"] = {"matmul": {"size": 8192}, "stream": {"elements": 1 << 26}}


def key(cell: Cell) -> str:
    """What a yardstick depends on."""
    return f"{cell.framework}/{cell.device}/{cell.dtype}/threads={cell.threads}"


def groups_for(cell: Cell) -> tuple[Group, ...]:
    """The cells that measure the peaks for `cell`, each in a group of its own, in eager mode."""
    groups = []
    for name, parameters in SIZES[cell.device_kind].items():
        yardstick = Cell(
            cell.framework, name, "plain", "inference", cell.device, cell.dtype, cell.threads,
            tuple(parameters.items()), "eager",
        )  # fmt: skip
        groups.append(Group((yardstick,), frozenset()))
    # Both or none: a framework without these models has no peaks of its own.
    return () if any(known_obstacle(group.cells[0]) for group in groups) else tuple(groups)


def peaks_from(outcomes: Iterable[Outcome]) -> Peaks | None:
    """The rates of the fastest samples; None unless both yardsticks were measured."""
    rates, names = {}, []
    for outcome in outcomes:
        if not outcome.reports:
            return None
        cell = outcome.cell
        cost = workloads.get(cell.workload).cost(dict(cell.parameters), BYTES_PER_VALUE[cell.dtype])
        seconds = min(outcome.reports[0]["samples"])  # a ceiling: what slowed the others is not the hardware
        rates[cell.workload] = (cost.flops / seconds, cost.compulsory_bytes / seconds)
        names.append(f"{cell.workload} {cell.parameters[0][1]}")
    return Peaks(
        flops_per_s=rates["matmul"][0],
        bytes_per_s=rates["stream"][1],
        source=f"measured here: {cell.framework} eager, {', '.join(names)}",
    )
