"""Columns that depend on several records of a run: the machine's peaks, and from these each cell's bottleneck.

Frameworks are measured one after another, and a later one may reach a higher peak. So a record contains its framework's
peaks. This module computes its columns again from all records whenever the run's files are updated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from measurement import bottleneck, flags
from measurement.peaks import Peaks, above_datasheet, least_seconds, may_be_cached
from measurement.statistics import ENOUGH_PROCESSES
from records import figures
from records.estimates import independent_ratio
from records.judgement import COMPUTED_IN
from records.record import FIELDS, Record

BOUNDED = 9  # the first schema version whose records contain their bounds
# By column of the machine's peak: the framework's column, and the unit in FLOPs, bytes or operations per second.
RATES = {
    "peak_tflops": ("framework_peak_tflops", 1e12),
    "peak_gb_per_s": ("framework_peak_gb_per_s", 1e9),
    "peak_cached_gb_per_s": ("framework_peak_cached_gb_per_s", 1e9),
    "peak_gtranscendentals_per_s": ("framework_peak_gtranscendentals_per_s", 1e9),
}
# The rate of one-row products; other operators may be faster, so it alone is not the machine's peak.
_MATVEC = "framework_peak_matvec_gb_per_s"
_needed = attrgetter("device", "flops", "bytes", "moved_bytes", "latency_ms_median")
_BATCH = re.compile(r"\bbatch_size=(\d+)")
_OF_RANKS = re.compile(r",ranks=\d+,strategy=\w+")
_PRODUCTS = re.compile(r"\bmatmul=(\d+)")


def completed(records: Sequence[Record]) -> list[Record]:
    """Return the records with columns that depend on others: machine peaks, MFU, explained share, bottleneck."""
    return [record | of_others for record, of_others in _judged(lambda: records)]


def changes(read: Callable[[], Iterable[Record]]) -> dict[str, dict[str, Any]]:
    """Return, by cell, the columns in which `completed` records differ from the records of `read`.

    `read` is called several times, and may yield one record at a time. Only records with an even batch, which may be
    twice another's, stay in memory.
    """
    changed = {}
    for record, of_others in _judged(read):
        if different := {name: value for name, value in of_others.items() if getattr(record, FIELDS[name]) != value}:
            changed[record.cell] = different
    return changed


def _judged(read: Callable[[], Iterable[Record]]) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each record with the columns that depend on other records."""
    peaks: dict[tuple[Any, ...], dict[str, tuple[float, str]]] = {}
    doubles: dict[tuple[Any, ...], Record] = {}
    eager_ms: dict[tuple[Any, ...], float] = {}  # by kind and group
    # Records of cells that are compared with the same on several ranks.
    alone: dict[tuple[Any, ...], Record] = {}
    several = {(_kind(r), _OF_RANKS.sub("", r.cell)) for r in read() if _is_judged(r) and _OF_RANKS.search(r.cell)}
    for record in filter(_is_judged, read()):
        if (_kind(record), record.cell) in several and not record.excluded and record.latency:
            alone[_kind(record), record.cell] = record
        _note_peaks(peaks.setdefault(_kind(record), {}), record)
        if record.is_baseline and not record.excluded:
            eager_ms[_kind(record), record.group] = record.median_ms
        if (found := _BATCH.search(record.cell)) and int(found[1]) % 2 == 0:
            doubles[_kind(record), record.cell] = record
    best = {kind: {name: rate for name, (rate, _) in found.items()} for kind, found in peaks.items()}
    limits = _bounds(filter(_is_judged, read()), best, eager_ms)
    for record in read():
        if _is_judged(record):
            kind = _kind(record)
            columns = judged(record, peaks[kind], doubles.get((kind, doubled(record.cell))))
            limit = limits.get((kind, record.cell))
            yield record, columns | {"bound_roofline": limit} | efficiency(record, alone)
        else:
            yield record, {}


def _is_judged(record: Record) -> bool:
    """Return whether the record has the columns of a roofline.

    Earlier records, without the traffic of their mode, contain their framework's peaks as `peak_*`. These and damaged
    records stay unchanged.
    """
    return None not in _needed(record)


def _kind(record: Record) -> tuple[Any, ...]:
    """Return the properties, except the framework, that a peak depends on; a growth also needs times of one kind."""
    return record.machine_id, record.device, record.device_name, record.dtype, record.threads


def efficiency(record: Record, alone: Mapping[tuple[Any, ...], Record]) -> dict[str, float | None]:
    """Return the columns of a cell on several ranks; `alone` has records of one rank by kind and cell.

    Both times come from separate, independent processes. Fewer than three of either give no interval, and neither does
    a slow host that limits one of them.
    """
    one = alone.get((_kind(record), _OF_RANKS.sub("", record.cell))) if _OF_RANKS.search(record.cell) else None
    if one is None or one.latency is None or record.latency is None or record.excluded:
        return {}
    counts = one.processes or 0, record.processes or 0
    ratio = independent_ratio(one.latency, record.latency, counts)
    if min(counts) < ENOUGH_PROCESSES or one.slowed or record.slowed:
        return figures.columns("efficiency", None) | {"scaling_efficiency": ratio.value}
    return figures.columns("efficiency", ratio)


def _bounds(
    records: Iterable[Record], best: Mapping[Any, Mapping[str, float]], eager_ms: Mapping[tuple[Any, ...], float]
) -> dict[tuple[Any, str], float]:
    """Return by kind and cell eager's time over the least time of the cell's work; `best` has a kind's peaks.

    A cell that takes less shows that a peak is too low. No better one is known, so its kind has no bounds.
    """
    limits: dict[tuple[Any, str], float] = {}
    refuted = set()
    for record in records:
        kind = _kind(record)
        least_s = _least_s(record, best.get(kind, {}))
        if least_s is None or record.merged:
            continue
        counts = record.latency_ms_median is not None and not record.excluded
        if counts and flags.exceeds_roofline(1e3 * least_s / record.median_ms):
            refuted.add(kind)
        if eager := eager_ms.get((kind, record.group)):
            limits[kind, record.cell] = eager / 1e3 / least_s
    return {key: limit for key, limit in limits.items() if key[0] not in refuted}


def _least_s(record: Record, rates: Mapping[str, float]) -> float | None:
    """Return the least time of any implementation of the record's work at the best known rates, in seconds.

    They are the data sheet's, or the machine's measured peaks if higher. If a user model computes in another dtype than
    the cell's, no rate of its arithmetic is known.
    """
    if record.flops is None or record.bytes is None:
        return None
    dtype = record.dtype or ""
    alike = not record.computes_in or set(record.computes_in.split(";")) <= COMPUTED_IN.get(dtype, set())
    return least_seconds(
        record.flops if alike else 0,
        record.bytes,
        record.device or "cpu",
        record.device_name,
        "tf32" if record.tf32 and dtype == "fp32" else dtype,
        rates.get("peak_tflops"),
        rates.get("peak_gb_per_s"),
    )


# Columns that a record's bound depends on.
BOUND_OF = (
    *("cell", "framework", "mode", "workload", "baseline", "status", "program", "flags", "machine_id", "device"),
    *("device_name", "dtype", "threads", "tf32", "flops", "bytes", "computes_in", "latency_ms_median"),
    *("peak_tflops", "peak_gb_per_s"),
)


def bound_earlier(columns: dict[str, list[Any]]) -> None:
    """Fill in the bounds of records, given by column, from schema versions without bounds.

    Up to version 3 `peak_*` are a framework's peaks: the machine's are the highest of all records of a kind.
    """
    records = Record.from_columns({name: columns[name] for name in BOUND_OF})
    best: dict[tuple[Any, ...], dict[str, float]] = {}
    eager_ms: dict[tuple[Any, ...], float] = {}
    for record in records:
        rates = best.setdefault(_kind(record), {"peak_tflops": 0.0, "peak_gb_per_s": 0.0})
        rates |= {name: max(rate, getattr(record, name) or 0.0) for name, rate in rates.items()}
        if record.is_baseline and not record.excluded:
            eager_ms[_kind(record), record.group] = record.median_ms
    limits = _bounds(records, best, eager_ms)
    for place, record in enumerate(records):
        if columns["schema_version"][place] < BOUNDED:
            columns["bound_roofline"][place] = limits.get((_kind(record), record.cell))


def doubled(cell: str) -> str | None:
    """Return the name of the same cell at twice the batch; None for a workload without batches."""
    name, edits = _BATCH.subn(lambda match: f"batch_size={2 * int(match[1])}", cell)
    return name if edits else None


def _note_peaks(best: dict[str, tuple[float, str]], record: Record) -> None:
    """Store the rates of a record that are the highest so far in `best`, each with the name of its benchmark.

    The benchmark is a framework's peak benchmark, or a cell whose workload measures such a rate.
    """
    for column, value, source in _rates(record):
        if value and value > best.get(column, (0.0, ""))[0]:
            best[column] = (value, source)


def _rates(record: Record) -> Iterable[tuple[str, float | None, str]]:
    for column, (of_framework, _) in RATES.items():
        yield column, getattr(record, of_framework), f"{record.framework} {_PEAK_BENCHMARKS[column]}"
    yield "peak_gb_per_s", getattr(record, _MATVEC), f"{record.framework} eager, matvec"
    if not record.excluded and record.workload in _PROBES and record.latency_ms_min and not record.merged:
        seconds = record.latency_ms_min / 1e3
        for column, amount in _PROBES[record.workload].items():
            if column == "peak_gb_per_s" and _is_cached(record):
                column = "peak_cached_gb_per_s"
            yield (
                column,
                amount(record) / seconds / RATES[column][1],
                f"{record.framework} {record.mode}, {record.workload}",
            )


# Workloads of a single operation; any of their modes may be faster than the peak benchmark, which is eager.
_PROBES: dict[str, dict[str, Callable[[Record], Any]]] = {
    "matmul": {"peak_tflops": lambda record: record.flops},
    "matvec": {"peak_gb_per_s": lambda record: record.moved_bytes},
    "stream": {"peak_gb_per_s": lambda record: record.moved_bytes},
    "pointwise-chain": {"peak_gb_per_s": lambda record: record.moved_bytes},
    # Only the peak benchmark measures its rate of cosines: a memory-bound cell does not reveal it.
    "fused-cos": {"peak_gb_per_s": lambda record: record.moved_bytes},
}
_PEAK_BENCHMARKS = {
    "peak_tflops": "eager, matmul",
    "peak_gb_per_s": "eager, stream",
    "peak_cached_gb_per_s": "eager, stream in the caches",
    "peak_gtranscendentals_per_s": "eager, fused-cos",
}


def _is_cached(record: Record) -> bool:
    return may_be_cached(record.bytes or 0, record.device_kind)


def judged(record: Record, peaks: dict[str, tuple[float, str]], twice: Record | None) -> dict[str, Any]:
    """Return the columns of one record; `twice` is the record at twice the batch, if any."""
    row: dict[str, Any] = {column: peaks.get(column, (None, ""))[0] for column in RATES}
    row["peak_source"] = "; ".join(f"{column}: {source}" for column, (_, source) in sorted(peaks.items())) or None
    row["batch_doubling_growth"] = twice.median_ms / record.median_ms - 1 if twice else None
    machine = _as_peaks(row)
    share = None
    if machine:
        seconds = record.median_ms / 1e3
        roof = _terms(record, machine)
        rates = {column: getattr(record, name) for column, (name, _) in RATES.items()}
        reached = _as_peaks(rates, getattr(record, _MATVEC))
        host_s = record.host_ms_median / 1e3 if record.host_ms_median is not None else None
        share = roof.larger_s / seconds
        flat = twice is not None and bottleneck.is_flat(
            twice.latency.high / record.latency.low - 1 if twice.latency and record.latency else None,
            _terms(twice, machine).larger_s / roof.larger_s - 1,
        )
        row["mfu_pct"] = 100 * (record.flops or 0) / seconds / machine.flops_per_s
        achieved = record.achieved_gb_per_s
        row["bandwidth_pct"] = None if achieved is None else 100 * achieved / row["peak_gb_per_s"]
        row["explained_share"] = share
        one_operator = record.workload in _PROBES and record.moved_bytes == record.bytes
        of_framework = _terms(record, reached) if reached else None
        row["regime"] = bottleneck.classify(seconds, roof, of_framework, host_s, flat, one_operator)
    raised = flags.with_flag(record.flags, "roofline_exceeded", flags.exceeds_roofline(share))
    row["flags"] = flags.with_flag(
        raised,
        "peak_above_datasheet",
        above_datasheet(record.device_name, record.dtype, row["peak_tflops"], row["peak_gb_per_s"]),
    )
    return row


def _as_peaks(row: dict[str, Any], matvec: float | None = None) -> Peaks | None:
    """Return columns of `RATES` as rates per second; None unless arithmetic and bandwidth are both known."""
    rates = {column: row[column] * RATES[column][1] if row[column] else None for column in RATES}
    if not rates["peak_tflops"] or not rates["peak_gb_per_s"]:
        return None
    return Peaks(
        flops_per_s=rates["peak_tflops"],
        bytes_per_s=rates["peak_gb_per_s"],
        source="",
        cached_bytes_per_s=rates["peak_cached_gb_per_s"],
        transcendentals_per_s=rates["peak_gtranscendentals_per_s"],
        matvec_bytes_per_s=matvec * 1e9 if matvec else None,
    )


def _terms(record: Record, peaks: Peaks) -> bottleneck.Terms:
    work = bottleneck.Work(
        record.flops or 0, record.transcendentals or 0, record.moved_bytes or 0, _product_bytes(record)
    )
    return bottleneck.terms(work, peaks, cached=_is_cached(record))


def _product_bytes(record: Record) -> int:
    """Return the bytes of matrix products; for a user's model, whose operators are unknown, all compulsory bytes."""
    found = _PRODUCTS.search(record.bytes_by_class or "")
    return int(found[1]) if found else (record.bytes or 0) if record.counted_by else 0
