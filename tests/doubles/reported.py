"""A small fixed set of records with something for every section of a report, and runs made of such records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from analysis.points import Points
from measurement.kernels import CLASSES
from records.record import NAMES, SCHEMA_VERSION, Record
from reports import sections
from reports.report_data import ReportData

BASE = {
    "alpha": {(1, 128): 20.0, (1, 512): 90.0, (4, 128): 70.0},
    "beta": {(1, 128): 30.0, (1, 512): 145.0, (4, 128): 60.0},
}
SPEEDUPS = {"alpha": 1.25, "beta": 2.0}


def record(framework: str, mode: str, batch: int = 1, length: int = 128, threads: int = 2, **changes) -> Record:
    """A record that fits the schema; eager takes what `BASE` says, a graph less by `SPEEDUPS`."""
    latency = BASE[framework][batch, length] * 2 / threads
    speedup = 1.0 if mode == "eager" else SPEEDUPS[framework]
    latency = changes.pop("latency", latency / speedup)
    shape = f"batch_size={batch},seq_len={length}"
    low, high = (None, None) if mode == "eager" else (speedup * 0.98, speedup * 1.02)
    row = {
        "schema_version": SCHEMA_VERSION, "run_id": "a-run", "started_at": "2026-01-02T03:04:05Z",
        "machine_id": "abcd1234", "cpu_per_wall": 0.98 * threads,
        "cell": f"{framework}/bert/plain/inference/cpu/fp32/threads={threads}/{shape}/{mode}", "framework": framework,
        "framework_version": "1.2", "mode": mode, "workload": "bert", "implementation": "plain", "pass": "inference",
        "batch_size": batch, "seq_len": length, "parameters": "mask=none", "shapes": "static", "weights": "seed:0",
        "dtype": "fp32", "device": "cpu", "device_name": "A processor", "threads": threads,
        "status": "ok", "profile": "quick", "compile_cache": "cold", "launches": 3, "samples": 60,
        "first_call_s": 0.5 if mode == "eager" else 5.5, "latency_ms_median": latency,
        "latency_ms_ci_low": latency * 0.99, "latency_ms_ci_high": latency * 1.01, "speedup_vs_eager": speedup,
        "speedup_ci_low": low, "speedup_ci_high": high, "items_per_s": 1e3 * batch / latency,
        "tokens_per_s": 1e3 * batch * length / latency, "achieved_tflops": 0.4 / speedup, "peak_tflops": 1.0,
        "peak_gb_per_s": 20.0, "mfu_pct": 40 / speedup, "intensity": 30.0, "regime": "compute", "peak_memory_mb": 500.0,
        "explained_share": 0.4 / speedup, "framework_peak_tflops": 0.9,
        "git_revision": "0123456789", "target_half_width": 0.1,
    }  # fmt: skip
    if mode != "eager":
        row |= {"sign": "faster"}
    return Record.from_row(row | changes)


def failed(framework: str, mode: str, status: str, reason: str, **changes) -> Record:
    """A record without figures."""
    whole = record(framework, mode, **changes)
    figures = [name for name in NAMES if "_ms" in name]
    figures += ["speedup_vs_eager", "speedup_ci_low", "speedup_ci_high", "break_even_calls", "mfu_pct", "regime"]
    return whole | dict.fromkeys((*figures, "explained_share")) | {"status": status, "reason": reason}


def small_set() -> list[Record]:
    """Two frameworks, two modes, three shapes, a second thread count, an inconclusive cell and two that failed."""
    rows = [record(f, mode, *shape) for f in BASE for shape in BASE[f] for mode in ("eager", "graph")]
    rows += [record("alpha", mode, threads=1) for mode in ("eager", "graph")]
    wide = {"speedup_ci_low": 0.95, "speedup_ci_high": 1.6, "sign": "inconclusive"}
    rows[3] |= {"flags": "drift", **wide}
    tail = "Traceback\nSegmentation fault"
    crash = failed("beta", "graph-fast", "crash", "The worker died | by a signal.", stderr_tail=tail)
    wrong = failed("alpha", "graph-fast", "mismatch", "The outputs differ by 0.3.")
    return [*rows, crash | {"stderr_tail": tail}, wrong | {"latency_ms_median": 0.001}]


def elsewhere(rows: list[Record]) -> list[Record]:
    """The same records from another machine."""
    return [row | {"machine_id": "ffff", "device_name": "Another processor"} for row in rows]


def rows_of(records: Iterable[Record]) -> list[dict]:
    """Return all columns of records, to compare them by."""
    return [record.to_row() for record in records]


def lines(entries: Iterable[Record | dict]) -> bytes:
    """Return records or rows as a file of JSON lines."""
    rows = (entry.to_row() if isinstance(entry, Record) else entry for entry in entries)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def built(records: list[Record], across: bool = False, profiles=()) -> dict[str, sections.Section]:
    """The sections of a report on these records by key."""
    data = ReportData(Points(records, across), tuple(profiles))
    return {section.key: section for section in sections.build(data)}


def profile(mode: str, seconds: float) -> dict:
    """A profiled cell, as `explain` leaves it."""
    classes = dict.fromkeys(CLASSES, 0.0) | {"matmul": seconds * 0.75, "pointwise": seconds * 0.25}
    return {
        "cell": f"alpha/bert/plain/inference/cpu/fp32/threads=2/batch_size=1/{mode}", "framework": "alpha",
        "mode": mode, "workload": "bert", "implementation": "plain", "pass_name": "inference", "device": "cpu",
        "dtype": "fp32", "parameters": {}, "status": "explained",
        "latency_s": seconds, "flops": {"matmul": 10}, "classes": classes,
        "kernels": [["gemm", seconds, 1]], "trace": "t",
    }  # fmt: skip


def write_run(folder: Path, records: list[Record], profiles: list[dict] = ()) -> Path:
    """A run's folder."""
    folder.mkdir(parents=True)
    machine = {"machine_id": "abcd1234", "cpu": "A processor", "cpus_usable": 2, "memory_bytes": 2**33, "gpus": []}
    (folder / "machine.json").write_text(json.dumps(machine))
    for name, entries in (("records.jsonl", [record.to_row() for record in records]), ("explained.jsonl", profiles)):
        if entries:
            (folder / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder
