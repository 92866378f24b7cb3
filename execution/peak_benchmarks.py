"""Measured peaks: matrix products, vectors in memory and in caches, cosines; stored for later runs on the machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from measurement import durable, places
from measurement.cells import Cell
from measurement.checked import Misfit, read
from measurement.flags import disturbances
from measurement.peaks import Peaks
from plan.plan import Group, baseline_of, known_obstacle
from records.cell_result import CellResult
from records.costs import cost_of

# Large enough to reach the peak and exceed the caches, except for the second vector, which stays in them; small enough
# to take about a second. On the CPU the large vector stays under 32 MiB: above that glibc maps new pages for every
# result, and the time would be that of page faults. Cosines use the vector in the caches. A one-row product does little
# more than read its weights, which exceed `CACHED_BYTES` even in 16 bits.
SIZES = {
    "cpu": (
        ("matmul", {"size": 2048}),
        ("stream", {"elements": 7_500_000}),
        ("stream", {"elements": 1 << 17}),
        ("fused-cos", {"elements": 1 << 17, "repeat": 1}),
        ("matvec", {"size": 6144}),
    ),
    "gpu": (
        ("matmul", {"size": 8192}),
        ("stream", {"elements": 1 << 26}),
        ("stream", {"elements": 1 << 22}),
        ("fused-cos", {"elements": 1 << 22, "repeat": 1}),
        ("matvec", {"size": 12288}),
    ),
}
CACHE = places.CACHE / "peaks"
# Smallest extra time, as a share of an addition's time, from which a cosine's rate can be computed.
VISIBLE_SHARE = 0.2


def key(cell: Cell) -> str:
    """Return the properties of a cell that its peak benchmark depends on, as text."""
    return f"{cell.framework}/{cell.device}/{cell.dtype}/threads={cell.threads}"


def groups_for(cell: Cell) -> tuple[Group, ...]:
    """Return the cells that measure the peaks for `cell`, one per group, in eager mode; empty if one cannot run."""
    groups = []
    for name, parameters in SIZES[cell.device_kind]:
        peak_benchmark = Cell(
            cell.framework, name, "plain", "inference", cell.device, cell.dtype, cell.threads,
            tuple(parameters.items()), cell.mode,
        )  # fmt: skip
        groups.append(Group((baseline_of(peak_benchmark),), frozenset()))
    # All or none: a framework that lacks one of these models has no peaks.
    return () if any(known_obstacle(group.cells[0]) for group in groups) else tuple(groups)


def peaks_from(results: Iterable[CellResult]) -> Peaks | None:
    """Return the rates of the fastest samples; None unless all were measured, in the order of `SIZES`."""
    seconds, costs, names = [], [], []
    for result in results:
        if not result.reports:
            return None
        cell = result.cell
        costs.append(cost_of(cell))
        seconds.append(min(result.reports[0].samples))  # a ceiling: the hardware is not the cause of slower samples
        names.append(f"{cell.workload} {cell.parameters[0][1]}")
    product, memory, caches, cosines, *rows = costs
    # A cosine moves as many bytes as an addition, so the extra time is for computing it. Without extra time its rate is
    # unknown, and bounds nothing.
    longer = seconds[3] - seconds[2]
    visible = longer > VISIBLE_SHARE * seconds[2]
    return Peaks(
        flops_per_s=product.flops / seconds[0],
        bytes_per_s=memory.compulsory_bytes / seconds[1],
        source=f"measured here: {cell.framework} eager, {', '.join(names)}",
        cached_bytes_per_s=caches.compulsory_bytes / seconds[2],
        transcendentals_per_s=cosines.transcendentals / longer if visible else None,
        matvec_bytes_per_s=rows[0].compulsory_bytes / seconds[4] if rows else None,
    )


@dataclass(frozen=True)
class Kept:
    """Peaks from an earlier run, and the versions of the framework's packages in that run."""

    peaks: Peaks
    versions: dict[str, str] = field(default_factory=dict)


def kept(cell: Cell, machine_id: str, policies: Mapping[str, str]) -> Kept | None:
    """Return the cached peaks for a cell on this machine; None if there are none or they are not rates."""
    try:
        found = read(Kept, json.loads(_entry(cell, machine_id, policies).read_text()))
    except (OSError, ValueError, Misfit):
        return None
    return found if found.peaks.are_rates else None


def keep(cell: Cell, machine_id: str, policies: Mapping[str, str], results: Iterable[CellResult], peaks: Peaks) -> None:
    """Store peaks for later runs, unless another program or the hypervisor disturbed their measurement."""
    measured = list(results)
    if any(any(disturbances(report.noise).values()) for result in measured for report in result.reports):
        return
    hello = measured[0].hello
    CACHE.mkdir(parents=True, exist_ok=True)
    content = json.dumps(asdict(Kept(peaks, hello.versions if hello else {})))
    durable.replace(_entry(cell, machine_id, policies), content.encode())


def _entry(cell: Cell, machine_id: str, policies: Mapping[str, str]) -> Path:
    """Return the file of a machine's peaks, named after all that they depend on except the framework's version."""
    parts = [machine_id, key(cell), SIZES[cell.device_kind], sorted(policies.items())]
    return CACHE / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}.json"
