"""Cost of a cell's call: the workload's own count, adjusted by its framework and mode."""

from __future__ import annotations

import frameworks
import workloads
from measurement.cells import Cell
from measurement.protocol import UserModelReport
from workloads.spec import Cost, OperatorCost


def cost_of(cell: Cell) -> Cost:
    """Return the analytic cost of one call."""
    return workloads.get(cell.workload, cell.pass_name).cost(dict(cell.parameters), cell.dtype, fuses_attention(cell))


def known_cost(cell: Cell, user_model: UserModelReport | None) -> Cost | None:
    """Return the cost of one call: analytic, or the worker's count of a user's model; None without either."""
    if workloads.get(cell.workload, cell.pass_name).has_reference:
        return cost_of(cell)
    if user_model is None or user_model.flops is None:
        return None
    everything = OperatorCost(
        "counted", user_model.flops, user_model.unfused_bytes or 0, user_model.transcendentals or 0
    )
    return Cost((everything,), user_model.bytes or 0)


def tokens_of(cell: Cell) -> dict[str, int | None]:
    """Return tokens and FLOPs of one call with and without padding, by column name."""
    workload, parameters = workloads.get(cell.workload, cell.pass_name), dict(cell.parameters)
    return {
        "tokens_per_call": workload.tokens_per_call(parameters),
        "real_tokens_per_call": workload.real_tokens_per_call(parameters),
        "real_flops": workload.real_flops(parameters, fuses_attention(cell)) if workload.has_reference else None,
    }


def moved_bytes(cell: Cell, cost: Cost) -> int:
    """Return the traffic of the cell's mode: a graph that does not fuse runs eager's kernels and moves their bytes."""
    fuses = frameworks.describe(cell.framework).mode(cell.mode).fuses
    return cost.fused_bytes if fuses else cost.unfused_bytes


def fuses_attention(cell: Cell) -> bool:
    """Return whether the scores of a cell's attention stay within one kernel."""
    if cell.implementation == "plain" and cell.parameter("attention", "explicit") == "explicit":
        return False
    kernel = frameworks.describe(cell.framework).attention_kernel
    return kernel(cell.implementation, cell.device_kind, cell.dtype)
