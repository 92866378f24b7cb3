"""How far a measured cell can be trusted: disturbances, flags, parity and status."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from measurement import flags, host
from measurement.gpu import GpuState
from measurement.noise import Noise
from measurement.parity import LARGEST, REPEATED
from measurement.protocol import Report
from measurement.warm_up import FEW_CALLS, queue_seconds
from records import breaks, statuses
from records.intervals import change_between_halves
from records.outcomes import Outcome, Parity, counted

# The dtypes of products, as frameworks call them, of a cell's dtype.
COMPUTED_IN = {
    "fp32": {"float32", "complex64"},
    "tf32": {"float32", "complex64"},
    "bf16": {"bfloat16"},
    "fp16": {"float16"},
}


def noise(outcome: Outcome) -> dict[str, Any]:
    """The columns on threads and disturbances: the worst of any launch."""
    seen = [report.noise for report in outcome.reports]

    gpu = [entry.gpu for entry in seen if entry.gpu]

    def over_launches(
        states: Sequence[Noise | GpuState], name: str, combine: Callable[[list[float]], float] = max
    ) -> float | None:
        values = [value for state in states if (value := getattr(state, name)) is not None]
        return combine(values) if values else None

    throttles = {name for state in gpu for name in (state.throttles or "").split(";") if name}
    cpu_per_wall = outcome.median_of("cpu_per_wall")
    loops = [seconds for report in outcome.reports for seconds in report.host_loop_s]
    on_cpu = outcome.cell.device_kind == "cpu"
    return {
        "cpu_per_wall": cpu_per_wall,
        "threads_effective": max(1, round(cpu_per_wall)) if on_cpu and cpu_per_wall is not None else None,
        "host_loop_ms_median": 1e3 * median(loops) if loops else None,
        "host_slowed_share": _share(_slowed_rounds(outcome.reports)),
        "rounds_set_aside": sum(len(r.samples) - len(counted(r)) for r in outcome.reports) if loops else None,
        "load_average": over_launches(seen, "load_average"),
        "other_load_cores": over_launches(seen, "other_load_cores"),
        "steal_share": over_launches(seen, "steal_share"),
        "involuntary_switches_per_s": over_launches(seen, "involuntary_switches_per_s"),
        "gpu_sm_mhz": over_launches(gpu, "sm_mhz", median),
        "gpu_memory_mhz": over_launches(gpu, "memory_mhz", median),
        "gpu_power_w": over_launches(gpu, "power_w", median),
        "gpu_temperature_c": over_launches(gpu, "temperature_c"),
        "gpu_uuid": ";".join(sorted({state.uuid for state in gpu if state.uuid})) or None,
        "gpu_throttles": ";".join(sorted(throttles)) or None,
    }


def _drift(report: Report, launches: int) -> float | None:
    samples = counted(report)
    return change_between_halves(samples, launches) if len(samples) >= flags.DRIFT_ROUNDS else None


def _slowed_rounds(reports: list[Report], counted_only: bool = False) -> list[bool]:
    """For each of these launches' rounds whether the host was slower than usual; empty where it was not timed.

    What is usual these launches say together: one that was slow throughout shows beside the others. With
    `counted_only` without the rounds that were set aside.
    """
    launches = [(report.host_loop_s, len(report.samples)) for report in reports]
    usual = host.usual_seconds([series for series, _ in launches])
    slow: list[bool] = []
    if usual is None:
        return slow
    for series, rounds in launches:
        indices = host.kept(series, rounds) if counted_only else range(rounds)
        slow += [series[index] > host.SLOW * usual for index in indices if index < len(series)]
    return slow


def _share(rounds: list[bool]) -> float | None:
    return sum(rounds) / len(rounds) if rounds else None


def _queue_share(report: Report) -> float | None:
    """How much of a sample its queue took; None where calls are not queued, or are too few to tell."""
    calls, synchronized = report.calls_per_sample, report.latency_sync_s
    if synchronized is None or calls < FEW_CALLS:
        return None
    mean = median(report.samples)
    return queue_seconds(synchronized, mean, calls) / (calls * mean)


def flags_of(outcome: Outcome) -> list[str]:
    """Return the flags raised by any launch, in the list's order."""
    on_cpu = outcome.cell.device_kind == "cpu"
    host_slowed = _slowed_rounds(outcome.reports, counted_only=True)
    raised = set()
    for report in outcome.reports:
        observation = flags.Observation(
            threads=outcome.cell.threads,
            cpu_per_wall=report.cpu_per_wall if on_cpu else None,
            steady=report.steady,
            host_slowed_share=_share(host_slowed),
            host_slowed_rounds=sum(host_slowed),
            recompilations=report.recompilations,
            drift=_drift(report, len(outcome.reports)),
            queue_share=_queue_share(report),
            noise=report.noise,
            compared=outcome.parity is not None,
            eager_error=outcome.parity.eager if outcome.parity else None,
            empty=outcome.empty,
            partial=bool(breaks.sentence(outcome)),
            program_differs=statuses.differs(report.program),
            outputs_left=bool(report.user_model and report.user_model.not_compared),
            other_dtype=_computes_otherwise(outcome, report),
        )
        raised |= set(flags.raised(observation))
    return [flag.name for flag in flags.FLAGS if flag.name in raised]


def _computes_otherwise(outcome: Outcome, report: Report) -> bool:
    """Say whether products of a user model in inference run in another dtype than the cell's."""
    model, cell = report.user_model, outcome.cell
    return model is not None and cell.pass_name == "inference" and not set(model.computes_in) <= COMPUTED_IN[cell.dtype]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _how_far(parity: Parity) -> str:
    """What went beyond the tolerance, in words."""
    error, allowed = parity.difference, parity.tolerance
    if not math.isfinite(error.largest):
        return "in shape, kind or number"
    if error.unequal > parity.unequal:
        return f"in {error.unequal:.2%} of the values that must be equal: whole numbers, places of NaN or infinity"
    size = f"by up to {error.largest:.3g}"
    if error.relative > allowed:
        return f"{size}, a relative {error.relative:.2g} (root mean square), where {allowed:.2g} is allowed"
    if error.repeated > REPEATED * allowed:
        repeats = f"of which a relative {error.repeated:.2g} repeats from call to call"
        return f"{size}, {repeats}, where {REPEATED * allowed:.2g} is allowed: no rounding, but other mathematics"
    return f"{size}, a relative {error.relative_largest:.2g}, where {LARGEST * allowed:.2g} is allowed"


def status(outcome: Outcome) -> dict[str, Any]:
    """Return the columns on validity: whether the outputs agree with the reference, and what is in no graph."""
    parity = outcome.parity
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
        differing = f"Outputs differ from {parity.reference}'s {_how_far(parity)}{step}."
        return row | {"status": "mismatch", "reason": differing}
    return row | {"status": "ok", "reason": breaks.sentence(outcome) or None}
