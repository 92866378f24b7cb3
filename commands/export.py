"""The command `export`: a run in the formats that other tools read."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from commands import report
from measurement.refusals import DONE, UsageError
from plan.aliases import choose
from plan.options import Option
from records import recordfile, runs
from records.record import COLUMNS, FIELDS, Record

NANOSECONDS = 1e6  # in a millisecond
JSON_FORMATS = ("bmf", "github-action-benchmark", "pytorch-oss-v3", "json")
TABLES = ("csv", "parquet")
FORMATS = (*JSON_FORMATS, *TABLES)


def options() -> list[Option]:
    """Return the options of `export`."""
    return [
        Option("run", "a run's folder, or its name (default: newest)", nargs="?"),
        Option("format", f"one of {', '.join(FORMATS)}", "FORMAT"),
        Option("out", "the file (default: standard output; parquet needs one)", "FILE"),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Write a run's figures in a format that another tool reads."""
    name, out = arguments.format, arguments.out
    if name is None:
        raise UsageError(f"Name a format: FORMAT={'|'.join(FORMATS)}.")
    choose(name, FORMATS, "format")
    if name == "parquet" and not out:
        raise UsageError("FORMAT=parquet writes a binary file: name it, such as OUT=results.parquet.")
    source = report.read([arguments.run] if arguments.run else [])
    records = source.records
    if name in TABLES:
        _write_table(records, name, Path(out) if out else None)
        return DONE
    made: dict[str, Callable[[Sequence[Record], Iterable[Path]], Any]] = {
        "bmf": lambda records, _: bencher(records),
        "github-action-benchmark": lambda records, _: github_action(records),
        "pytorch-oss-v3": pytorch_oss,
        "json": lambda records, _: [
            {name: value for name, value in record.to_row().items() if value is not None} for record in records
        ],
    }
    text = json.dumps(made[name](records, source.folders), indent=1, ensure_ascii=False) + "\n"
    if out:
        Path(out).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return DONE


def bencher(records: Sequence[Record]) -> dict[str, Any]:
    """Return Bencher Metric Format: a benchmark for each cell, latency in ns with the ends of its 95 % CI.

    Schema: https://bencher.dev/bmf.json.
    """
    return {record.cell: _measures(record) for record in _measured(records)}


def _measures(record: Record) -> dict[str, dict[str, float]]:
    latency, speedup = record.latency, record.speedup if record.headline else None
    measures = {"latency": {"value": record.median_ms * NANOSECONDS}}
    if latency:
        measures["latency"] |= {"lower_value": latency.low * NANOSECONDS, "upper_value": latency.high * NANOSECONDS}
    if speedup:
        measures["speedup"] = {"value": speedup.value, "lower_value": speedup.low, "upper_value": speedup.high}
    return measures


def github_action(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return `customSmallerIsBetter` of github-action-benchmark: latency in ms, its CI's half-width as the range.

    Format: https://github.com/benchmark-action/github-action-benchmark.
    """
    entries = []
    for record in _measured(records):
        entry: dict[str, Any] = {"name": record.cell, "unit": "ms", "value": record.median_ms}
        if record.latency:
            entry["range"] = f"± {(record.latency.high - record.latency.low) / 2:.3g}"
        if record.speedup and record.headline:
            low, high = record.speedup.low, record.speedup.high
            entry["extra"] = f"{record.speedup.value:.3g}x speedup over eager ({low:.3g}–{high:.3g})"
        entries.append(entry)
    return entries


def pytorch_oss(records: Sequence[Record], folders: Iterable[Path]) -> list[dict[str, Any]]:
    """Return records of PyTorch's OSS benchmark database, version 3: latency in ms with the raw samples.

    Format: https://github.com/pytorch/pytorch/wiki/PyTorch-OSS-benchmark-infra.
    """
    samples: dict[str, list[float]] = {}
    for entry in (entry for folder in folders for entry in runs.Run(folder).samples()):
        samples.setdefault(entry["cell"], []).extend(1e3 * seconds for seconds in entry["seconds_per_call"])
    return [_pytorch_entry(record, samples.get(record.cell) or [record.median_ms]) for record in _measured(records)]


def _pytorch_entry(record: Record, samples: list[float]) -> dict[str, Any]:
    extra: dict[str, Any] = {"batch_size": record.batch_size, "seq_len": record.seq_len, "threads": record.threads}
    extra |= {"parameters": record.parameters, "speedup_vs_eager": record.speedup_vs_eager, "flags": record.flags}
    versions = json.loads(record.versions) if record.versions else {}
    return {
        "benchmark": {
            "name": "eager-vs-graph",
            "mode": record.pass_name,
            "dtype": record.dtype,
            "extra_info": {name: value for name, value in extra.items() if value is not None},
        },
        "model": {
            "name": record.workload,
            "type": record.implementation,
            "backend": f"{record.framework} {record.mode}",
        },
        "metric": {"name": "latency_ms", "benchmark_values": samples, "extra_info": {"unit": "ms"}},
        "runners": [{"name": record.machine_id, "type": record.device_name}],
        "dependencies": {name: {"version": version} for name, version in versions.items()},
    }


def _measured(records: Sequence[Record]) -> Iterator[Record]:
    """Yield the records that have figures and are not excluded."""
    return (record for record in records if record.latency_ms_median is not None and not record.excluded)


def _write_table(records: Sequence[Record], name: str, path: Path | None) -> None:
    if name == "csv":
        recordfile.write_csv(records, path or Path("/dev/stdout"))
        return
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("FORMAT=parquet needs pyarrow: pip install pyarrow.") from None
    kinds = {"str": pyarrow.string(), "int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_()}
    fields = [
        pyarrow.field(column.name, kinds[column.kind], metadata={"unit": column.unit, "meaning": column.meaning})
        for column in COLUMNS
    ]
    columns = [[getattr(record, FIELDS[column.name]) for record in records] for column in COLUMNS]
    arrays = [pyarrow.array(values, type=field.type) for values, field in zip(columns, fields, strict=True)]
    assert path is not None
    pyarrow.parquet.write_table(pyarrow.table(arrays, schema=pyarrow.schema(fields)), path)
