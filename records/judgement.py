"""How far a measured cell can be trusted: disturbances, flags, parity and status."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median
from typing import Any

from measurement import flags, host
from measurement.parity import LARGEST, OF_A_PART, REPEATED, Parity
from measurement.protocol import Report
from measurement.text import percent
from measurement.warm_up import FEW_CALLS, queue_seconds
from records import breaks, energy, statuses
from records.cell_result import CellResult, combined
from records.intervals import CHANCE, change_between_halves

# Dtypes of matrix products, in the frameworks' names, for each dtype of a cell.
COMPUTED_IN = {
    "fp32": {"float32", "complex64"},
    "tf32": {"float32", "complex64"},
    "bf16": {"bfloat16"},
    "fp16": {"float16"},
}


def noise(result: CellResult) -> dict[str, Any]:
    """Return the columns on threads and disturbances: extremes or medians over processes."""
    seen = [report.noise for report in result.reports]
    gpu = [entry.gpu for entry in seen if entry.gpu]
    throttles = {name for state in gpu for name in (state.throttles or "").split(";") if name}
    cpu_per_wall = result.median_of("cpu_per_wall")
    loops = [seconds for report in result.reports for seconds in report.host_loop_s]
    full_s, (turns, slowed) = result.full_speed_s, result.turns
    good = [turn for r in result.reports for turn in host.good_turns(r.host_loop_s, len(r.samples), full_s)]
    on_cpu = result.cell.device_kind == "cpu"
    return {
        "cpu_per_wall": cpu_per_wall,
        "threads_effective": max(1, round(cpu_per_wall)) if on_cpu and cpu_per_wall is not None else None,
        "host_loop_ms_median": 1e3 * median(loops) if loops else None,
        "host_loop_ms_full": 1e3 * full_s if full_s else None,
        "host_slowed_share": 1 - sum(good) / len(good) if loops else None,
        "latency_slowed": slowed if loops else None,
        "rounds_set_aside": len(good) - sum(map(len, turns)) if loops else None,
        "load_average": combined(seen, "load_average", max),
        "other_load_cores": combined(seen, "other_load_cores", max),
        "steal_share": combined(seen, "steal_share", max),
        "involuntary_switches_per_s": combined(seen, "involuntary_switches_per_s", max),
        "gpu_sm_mhz": combined(gpu, "sm_mhz"),
        "gpu_memory_mhz": combined(gpu, "memory_mhz"),
        "gpu_power_w": combined(gpu, "power_w"),
        "gpu_temperature_c": combined(gpu, "temperature_c", max),
        "gpu_uuid": ";".join(sorted({state.uuid for state in gpu if state.uuid})) or None,
        "gpu_throttles": ";".join(sorted(throttles)) or None,
    }


def host_limit(baseline: CellResult | None) -> dict[str, Any]:
    """Return eager's time per call in loops of the fastest process, if the host limits it on a GPU; else empty."""
    if baseline is None or baseline.failure or baseline.cell.device_kind == "cpu":
        return {}
    host_s, loop_s = baseline.median_of("host_s"), baseline.fastest_loop_s
    if host_s is None or loop_s is None or not flags.host_bound(host_s / baseline.latency_s):
        return {}
    return {"host_ms_in_loops": baseline.latency_s / loop_s}


def _queue_share(report: Report) -> float | None:
    """Return the queue's share of a sample; None if calls are not queued or are too few."""
    calls, synchronized = report.calls_per_sample, report.latency_sync_s
    if synchronized is None or calls < FEW_CALLS:
        return None
    mean = median(report.samples)
    return queue_seconds(synchronized, mean, calls) / (calls * mean)


def flags_of(result: CellResult, slowed: bool = False, baseline: CellResult | None = None) -> list[str]:
    """Return the flags that any process raises, in the order of `FLAGS`; `slowed`: too few had a host at full speed.

    `baseline` is the group's eager result, if it was measured.
    """
    on_cpu = result.cell.device_kind == "cpu"
    compiles = any(report.compiles for report in (baseline or result).reports)
    raised = set()
    for report, samples in zip(result.reports, result.counted, strict=True):
        observation = flags.Observation(
            threads=result.cell.threads,
            cpu_per_wall=report.cpu_per_wall if on_cpu else None,
            steady=report.steady,
            host_slowed=slowed,
            recompilations=report.recompilations,
            change=_change(samples, flags.CHANGE_CHANCE),
            drift=_change(samples, CHANCE / len(result.reports)),
            queue_share=_queue_share(report),
            noise=report.noise,
            compared=result.parity is not None,
            eager_error=result.parity.eager if result.parity else None,
            empty=result.empty,
            not_numbers=result.not_numbers,
            partial=bool(breaks.sentence(result)),
            eager_compiles=compiles,
            program_differs=statuses.differs(report.program),
            outputs_left=bool(report.user_model and report.user_model.not_compared),
            other_dtype=_computes_otherwise(result, report),
            energy_unchecked=energy.is_off(result),
        )
        raised |= set(flags.raised(observation))
    return [flag.name for flag in flags.FLAGS if flag.name in raised]


def _change(samples: Sequence[float], chance: float) -> float | None:
    """Return how far a process's rounds change beyond scatter; None for too few rounds to test."""
    return change_between_halves(samples, chance) if len(samples) >= flags.DRIFT_ROUNDS else None


def _computes_otherwise(result: CellResult, report: Report) -> bool:
    """Return whether products of a user model run in another dtype than the cell's."""
    model = report.user_model
    return model is not None and not set(model.computes_in) <= COMPUTED_IN[result.cell.dtype]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _how_far(parity: Parity) -> str:
    """Return a clause on the errors beyond the tolerance."""
    error, allowed = parity.difference, parity.tolerance
    if not math.isfinite(error.largest):
        return "in shape, kind or number"
    if error.unequal > parity.unequal:
        share = percent(error.unequal, 2)
        return f"in {share} of the values that must be equal: whole numbers, places of NaN or infinity"
    size = f"by up to {error.largest:.3g}"
    if error.relative > allowed:
        return f"{size}, a relative {error.relative:.2g} (root mean square), where {allowed:.2g} is allowed"
    if error.part.error > OF_A_PART * allowed:
        off, place = error.part
        times = "is not zero" if math.isinf(off) else f"is off by {off:.2g} times its own size"
        return f"{size}; {place} {times}, beyond eager mode's error, where {OF_A_PART * allowed:.2g} is allowed"
    if error.repeated > REPEATED * allowed:
        repeats = f"of which a relative {error.repeated:.2g} repeats from call to call"
        return f"{size}, {repeats}, where {REPEATED * allowed:.2g} is allowed: not rounding, but other mathematics"
    return f"{size}, a relative {error.relative_largest:.2g}, where {LARGEST * allowed:.2g} is allowed"


def status(result: CellResult) -> dict[str, Any]:
    """Return the columns on validity: whether outputs agree with the reference, and which parts run outside graphs."""
    parity = result.parity
    row: dict[str, Any] = {
        "parity_max_abs_err": _finite(parity.difference.largest) if parity else None,
        "parity_rel_rms_err": _finite(parity.difference.relative) if parity else None,
        "parity_repeated_err": _finite(parity.difference.repeated) if parity else None,
        "parity_tolerance": parity.tolerance if parity else None,
        "parity_reference": parity.reference if parity else None,
        "first_differing_step": parity.first_differing if parity else None,
    }
    if parity and not parity.holds:
        step = f"; tokens from step {parity.first_differing} on" if parity.first_differing else ""
        reference = re.split(r" \(|, ", parity.reference)[0]  # without the details in its column
        differing = f"Outputs differ from {reference}'s {_how_far(parity)}{step}."
        return row | {"status": "mismatch", "reason": differing}
    return row | {"status": "ok", "reason": breaks.sentence(result) or None}
