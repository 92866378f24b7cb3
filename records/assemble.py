"""From workers' reports to records: statistics over processes, parity, flags and status."""

from __future__ import annotations

import itertools
import json
import math
from statistics import fmean, median
from typing import Any

import frameworks
import workloads
from frameworks import policies
from measurement import host
from measurement.cells import Effective
from measurement.peaks import Peaks, datasheet, may_be_cached
from measurement.places import as_typed
from measurement.protocol import Hello, Report
from measurement.statistics import ENOUGH_PROCESSES, Interval, half_width, percentile, scope, sign, stdev
from records import break_even, breaks, energy, figures, judgement
from records.cell_result import CellResult, Context, at_full_speed, combined, full_speed_s, good_turns
from records.costs import known_cost, moved_bytes, tokens_of
from records.intervals import over_processes
from records.record import SCHEMA_VERSION, Record
from workloads.spec import Workload
from workloads.user_model import UserModel


def speedup(result: CellResult, baseline: CellResult | None) -> Interval | None:
    """Return eager's time divided by this mode's, from rounds of processes that measured both; None without any."""
    pairs, _ = paired(result, baseline)
    interval = over_processes(pairs)
    return interval.map(math.exp) if interval else None


def paired(result: CellResult, baseline: CellResult | None) -> tuple[list[list[float]], bool]:
    """Return ln(eager's time / this mode's) of the rounds that count, one list per process that measured both.

    A round counts if both turns do. Also return whether the host was slow in too many processes, so that all count.
    """
    rounds, slowed = _rounds(result, baseline)
    return [[math.log(theirs / ours) for theirs, ours in process] for process in rounds], slowed


def good_rounds(result: CellResult, baseline: CellResult) -> list[list[bool]]:
    """Return for each round whether both turns count, one list per process that measured both."""
    return _pairs(result, baseline)[1]


def _rounds(result: CellResult, baseline: CellResult | None) -> tuple[list[list[tuple[float, float]]], bool]:
    """Return seconds of eager and this mode in these rounds, one list per process, and whether the host was slow."""
    both, good = _pairs(result, baseline)
    places, slowed = host.counting(good)
    full_s = full_speed_s(list(itertools.chain(*both)))
    sides = at_full_speed(list(zip(*both, strict=True)), full_s)
    taken = [list(zip(*pair, strict=True)) for pair in zip(*sides, strict=True)]
    rounds = [[turns[place] for place in of_process] for turns, of_process in zip(taken, places, strict=True)]
    return [process for process in rounds if process], slowed


def _pairs(result: CellResult, baseline: CellResult | None) -> tuple[list[tuple[Report, Report]], list[list[bool]]]:
    """Return eager's and this mode's report of each process with both, and whether each of its rounds counts."""
    theirs = {_process(report): report for report in baseline.reports} if baseline else {}
    both = [(theirs[_process(ours)], ours) for ours in result.reports if _process(ours) in theirs]
    full_s = full_speed_s(list(itertools.chain(*both)))
    good = [good_turns(reports, full_s) for reports in zip(*both, strict=True)]
    return both, [[all(turns) for turns in zip(*pair, strict=True)] for pair in zip(*good, strict=True)]


def saving_s(result: CellResult, baseline: CellResult) -> Interval | None:
    """Return the seconds that a call saves (eager's minus this mode's, by round) with an interval over processes."""
    rounds, _ = _rounds(result, baseline)
    return over_processes([[theirs - ours for theirs, ours in process] for process in rounds])


def extra_s(result: CellResult, baseline: CellResult) -> Interval:
    """Return the seconds that the first call takes beyond eager's, with an interval over processes that compiled.

    Fewer than three such processes show no scatter: the difference of medians counts as exact.
    """
    theirs = {_process(report): report for report in baseline.reports}
    both = [(ours, theirs[_process(ours)]) for ours in result.compiling if _process(ours) in theirs]
    if len(both) >= ENOUGH_PROCESSES and (found := over_processes([[_first_s(a) - _first_s(b)] for a, b in both])):
        return found
    extra = median(map(_first_s, result.compiling)) - median(map(_first_s, baseline.compiling))
    return Interval(extra, extra, extra)


def _first_s(report: Report) -> float:
    """Return seconds until the first call is done: starting the compiler, building and loading included."""
    parts = (report.compiler_start_s, report.build_s, report.load_s)
    return report.first_call_s + sum(part or 0.0 for part in parts)


def _process(report: Report) -> tuple[int, str]:
    return report.process, report.worker


def record(
    result: CellResult,
    baseline: CellResult | None,
    workload: Workload,
    weights: str,
    peaks: Peaks | None,
    context: Context,
) -> Record:
    """Return the record of a finished cell, without the columns that `rooflines.completed` adds later.

    `baseline` is the group's eager result, if it was measured; `peaks` are those that the cell's framework reaches.
    """
    row = _identity(result, weights, context)
    failure = result.failure
    if failure:
        row |= {"status": failure.status, "reason": as_typed(failure.reason)}
        row |= {"stderr_tail": failure.stderr_tail or None}
        return Record.from_row(row)
    is_baseline = row["baseline"]
    interval = None if is_baseline else speedup(result, baseline)
    row |= _latency(result) | _first_calls(result, baseline, interval) | _captured(result)
    row |= _rates(result, workload, row) | break_even_tokens(workload, result, row)
    row |= bandwidth(row) | _peaks(row, peaks)
    row |= _unseen(result) | _communication(result)
    row |= judgement.noise(result) | judgement.host_limit(result if is_baseline else baseline)
    row["target_half_width"] = context.profile.target_half_width
    if baseline and baseline.busy_s:
        row["bound_replay"] = baseline.latency_s / baseline.busy_s
    if is_baseline:
        row["speedup_vs_eager"] = 1.0
    elif baseline:
        row |= _speedup(interval)
    row |= energy.columns(result, baseline, is_baseline, row["tokens_per_call"])
    _, slowed = result.turns if is_baseline or baseline is None else paired(result, baseline)
    row["flags"] = ";".join(judgement.flags_of(result, slowed, baseline)) or None
    return Record.from_row(row | judgement.status(result))


def _speedup(interval: Interval | None) -> dict[str, Any]:
    return {
        **figures.columns("speedup", interval),
        "speedup_half_width": half_width(interval),
        "sign": sign(interval),
    }


def _identity(result: CellResult, weights: str, context: Context) -> dict[str, Any]:
    cell, effective = result.cell, result.hello.effective if result.hello else Effective()
    shape = dict(cell.parameters)
    on_cpu = cell.device_kind == "cpu"
    steps = [*(report.step for report in result.reports), result.failed_step]
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": context.run_id,
        "started_at": result.started_at,
        "machine_id": context.machine_id,
        "node": context.node or None,
        "job_steps": ";".join(dict.fromkeys(filter(None, steps))) or None,
        "cell": cell.id,
        "framework": cell.framework,
        "framework_version": _framework_version(result, context),
        "mode": cell.mode,
        "baseline": frameworks.is_baseline(cell),
        "workload": cell.workload,
        "implementation": cell.implementation,
        "pass": cell.pass_name,
        "batch_size": shape.pop("batch_size", None),
        "seq_len": shape.pop("seq_len", None),
        "parameters": parameters_text(shape) or None,
        "weights": weights,
        "dtype": cell.dtype,
        "tf32": effective.tf32,
        "device": cell.device,
        "device_name": effective.device_name or (context.cpu_name if on_cpu else None),
        "side_by_side": context.side_by_side,
        "threads": cell.threads,
        "threads_readback": effective.threads,
        "profile": context.profile.name,
        "compile_cache": context.compile_cache,
        "shapes": cell.shapes,
        **tokens_of(cell),
        **_cost(result),
        **_user_model(result),
        "settings": json.dumps(_settings(result, result.hello, context), default=str) if result.hello else None,
        "versions": _versions(result),
        "git_revision": context.git_revision,
    }


def _cost(result: CellResult) -> dict[str, Any]:
    """Return the columns of a call's cost; empty if the operations of a user's model were not counted."""
    cell, user_model = result.cell, result.reports[0].user_model if result.reports else None
    cost = known_cost(cell, user_model)
    if cost is None:
        return {}
    moved = moved_bytes(cell, cost)
    return {
        "flops": cost.flops,
        "flops_by_class": parameters_text({o.operator_class: o.flops for o in cost.operators}),
        "bytes_by_class": parameters_text({o.operator_class: o.bytes for o in cost.operators}),
        "bytes": cost.compulsory_bytes,
        "unfused_bytes": cost.unfused_bytes,
        "moved_bytes": moved,
        "transcendentals": cost.transcendentals,
        "intensity": cost.flops / moved if moved else None,
    }


def _user_model(result: CellResult) -> dict[str, Any]:
    """Return the columns of a user model except its cost."""
    model = result.reports[0].user_model if result.reports else None
    if model is None:
        return {}
    return {
        "computes_in": ";".join(model.computes_in) or None,
        "not_compared_outputs": ";".join(model.not_compared) or None,
        "counted_by": model.counted_by or None,
    }


def _settings(result: CellResult, hello: Hello, context: Context) -> dict[str, Any]:
    """Return settings as set and read back, the compiler's report, the processes' GPU and CPUs, and the policies."""
    report = result.reports[0] if result.reports else None
    compiler = dict(report.compiler) if report else {}
    if report and report.capture.detail:
        compiler["captured"] = report.capture.detail
    if report and report.user_model and report.user_model.settings:
        compiler["user_model"] = report.user_model.settings
    served: dict[str, Any] = {"served_by": context.served_by} if context.served_by else {}
    cell = result.cell
    model = workloads.get(cell.workload, cell.pass_name)
    served |= {"file": model.digest} if isinstance(model, UserModel) and model.digest else {}
    followed = {"policies": policies.resolve(cell.framework, cell.device_kind, context.policies)}
    return {**hello.effective.settings, **compiler, **served, **followed}


def _versions(result: CellResult) -> str | None:
    """Return the versions of the deciding packages and of the GPU libraries that the framework reports, as JSON."""
    versions = {**result.hello.versions, **result.hello.effective.libraries} if result.hello else {}
    return json.dumps(versions) if versions else None


def _framework_version(result: CellResult, context: Context) -> str | None:
    versions = result.hello.versions if result.hello else {}
    return frameworks.own_version(context.distributions[result.cell.framework], versions)


def _latency(result: CellResult) -> dict[str, Any]:
    samples, interval = result.samples, result.latency
    calls = [seconds for report in result.reports for seconds in report.single_calls_s]
    milliseconds = {
        "latency_ms_median": result.latency_s,
        "latency_ms_ci_low": interval.low if interval else None,
        "latency_ms_ci_high": interval.high if interval else None,
        "latency_ms_mean": fmean(samples),
        "latency_ms_std": stdev(samples) if len(samples) > 1 else None,
        "latency_ms_min": min(samples),
        **{f"latency_call_ms_p{percent}": percentile(calls, percent / 100) for percent in (50, 95, 99)},
        **waited_for(result),
        "latency_sync_ms_median": result.median_of("latency_sync_s"),
        "device_ms_median": result.median_of("device_s"),
        "host_ms_median": result.median_of("host_s"),
    }
    return {name: None if value is None else value * 1e3 for name, value in milliseconds.items()} | {
        "latency_half_width": half_width(interval),
        "interval_scope": scope(len(result.reports)) if interval else None,
        "launches": len(result.reports),
        "samples": len(samples),
        "single_calls": len(calls),
        "calls_per_sample": max(report.calls_per_sample for report in result.reports),
        "timed_s": sum(report.timed_s for report in result.reports),
        "warmup_calls": sum(report.warmup_calls for report in result.reports),
    }


def _first_calls(result: CellResult, baseline: CellResult | None, interval: Interval | None) -> dict[str, Any]:
    first = result.first_call_s
    row = {
        "first_call_s": first,
        "compiler_start_s": result.compiler_start_s,
        "compile_s": max(0.0, first - result.latency_s),
        "first_call_loaded_s": result.first_call_loaded_s,
        "prepare_s": result.median_of("prepare_s"),
        **{name: result.median_of(name) for name in ("build_s", "load_s")},
        "artefact_bytes": result.reports[0].artefact_bytes,
        "launch_position": result.reports[0].position,
    }
    if baseline and interval and (saved := saving_s(result, baseline)):
        calls = break_even.from_savings(extra_s(result, baseline), saved)
        row |= {"break_even_calls": calls.value, "break_even_low": calls.low, "break_even_high": calls.high}
    return row


def _captured(result: CellResult) -> dict[str, Any]:
    captured = result.reports[0].capture
    return {
        "effective_backend": captured.backend,
        "graphs": captured.graphs,
        "graph_breaks": captured.graph_breaks,
        "recompilations": combined(result.reports, "recompilations", sum),
        **breaks.columns(result),
        **_program(result),
    }


def _program(result: CellResult) -> dict[str, Any]:
    """Return the columns on whether eager and graph ran the same program: the worst verdict of any process."""
    known = [report for report in result.reports if report.program]
    for verdict in ("differs", "unknown", "same"):
        for report in known:
            if report.program == verdict:
                return {"program": verdict, "program_difference": report.program_difference}
    return {}


def _rates(result: CellResult, workload: Workload, row: dict[str, Any]) -> dict[str, Any]:
    shape = dict(result.cell.parameters)
    seconds = row["latency_ms_median"] / 1e3
    items, computed = workload.items_per_call(shape), row["tokens_per_call"]
    memory = [r.peak_memory_bytes for r in result.reports if r.peak_memory_bytes is not None]
    return {
        "items_per_s": items / seconds if items else None,
        "tokens_per_s": computed / seconds if computed else None,
        "real_tokens_per_s": row["real_tokens_per_call"] / seconds if computed else None,
        "achieved_tflops": row["flops"] / seconds / 1e12 if row.get("flops") is not None else None,
        "peak_memory_mb": max(memory) / 1e6 if memory else None,
    }


def bandwidth(row: dict[str, Any]) -> dict[str, Any]:
    """Return the rate of the compulsory bytes, in GB/s and % of the vendor's peak; empty if uncounted or cached."""
    if "bytes" not in row or may_be_cached(row["bytes"], row["device"]):
        return {}
    achieved, sheet = row["bytes"] / (row["latency_ms_median"] / 1e3) / 1e9, datasheet(row["device_name"])
    share = 100 * achieved / (sheet.terabytes_per_s * 1e3) if sheet else None
    return {"achieved_gb_per_s": achieved, "datasheet_bandwidth_pct": share}


def _peaks(row: dict[str, Any], peaks: Peaks | None) -> dict[str, Any]:
    """Return the columns of the vendor's and the framework's peaks; the machine's peaks depend on all records."""
    sheet = datasheet(row["device_name"])
    columns = {
        "datasheet_tflops": sheet.tflops.get(row["dtype"]) if sheet else None,
        "datasheet_source": sheet.source if sheet else None,
    }
    if peaks is None:
        return columns
    cached, transcendentals, matvec = peaks.cached_bytes_per_s, peaks.transcendentals_per_s, peaks.matvec_bytes_per_s
    return columns | {
        "framework_peak_tflops": peaks.flops_per_s / 1e12,
        "framework_peak_gb_per_s": peaks.bytes_per_s / 1e9,
        "framework_peak_cached_gb_per_s": cached / 1e9 if cached else None,
        "framework_peak_matvec_gb_per_s": matvec / 1e9 if matvec else None,
        "framework_peak_gtranscendentals_per_s": transcendentals / 1e9 if transcendentals else None,
        "framework_peak_source": peaks.source,
    }


def _unseen(result: CellResult) -> dict[str, Any]:
    """Return the columns of the first call at another sequence length, and of the mode's latency after it."""
    seen = [report.unseen for report in result.reports if report.unseen]
    if not seen:
        return {}
    problem = next((entry.problem for entry in seen if entry.problem), None)
    if problem:
        return {"unseen_seq_len": seen[0].seq_len, "unseen_problem": problem}
    return {
        "unseen_seq_len": seen[0].seq_len,
        "unseen_first_call_s": median(s for entry in seen if (s := entry.first_call_s) is not None),
        "unseen_latency_ms": 1e3 * median(s for entry in seen if (s := entry.latency_s) is not None),
        "unseen_compilations": seen[0].compilations,
    }


def _communication(result: CellResult) -> dict[str, Any]:
    """Return the columns of the communication time of ranks per call, or why it is unknown."""
    found = next((report.communication for report in result.reports if report.communication), None)
    if found is None or found.seconds is None or found.exposed_s is None:
        return {"communication_problem": found.problem if found else None}
    return {
        "communication_ms": 1e3 * found.seconds,
        "exposed_communication_ms": 1e3 * found.exposed_s,
        "rank_imbalance": found.spread,
    }


def waited_for(result: CellResult) -> dict[str, float | None]:
    """Return seconds to a call's first token and between tokens, by column; empty if no call waits for tokens."""
    calls = [parts for report in result.reports for parts in report.parts_s]
    if not calls:
        return {}
    between = [seconds for parts in calls for seconds in parts[1:]]
    return {
        "first_token_ms_median": median(parts[0] for parts in calls),
        **{f"inter_token_ms_p{percent}": percentile(between, percent / 100) for percent in (50, 95, 99)},
    }


def break_even_tokens(workload: Workload, result: CellResult, row: dict[str, Any]) -> dict[str, float]:
    """Return the column of generated tokens until compiling pays for itself; empty if it never does."""
    made, calls = workload.tokens_made(dict(result.cell.parameters)), row.get("break_even_calls")
    return {"break_even_tokens": made * calls} if made and calls is not None else {}


def parameters_text(shape: dict[str, Any]) -> str:
    """Return parameters in the text form of a record: `name=value`, separated by semicolons."""
    return ";".join(f"{name}={value}" for name, value in shape.items())
