"""BERT under PaddleNLP: the dynamic graph against the exported one, and the same table for the other frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from experiments import tables
from experiments.evidence import Evidence, Records, gain_of, published, shape_of, value
from experiments.judge import (
    Cores,
    above,
    grows,
    inconclusive,
    series_along,
    shrinks,
    trend_of,
    used_more_cores,
    used_one_core,
)
from experiments.spec import PUBLISHED, Answer, Claim, Experiment, Published, Table, all_of
from measurement.text import times
from records.record import Record
from reports.numbers import text_of

SHAPE = ("threads", "batch_size", "seq_len")


def published_records(rows: Published) -> list[Record]:
    """Return the published rows as records: a dynamic and a static one of each. The source gives no intervals."""
    records = []
    for row in rows:
        shared = {
            "framework": "paddle",
            "workload": "bert-base",
            "device": "cpu" if row["device"] == "cpu" else "gpu:0",
            "threads": int(row["threads_static"]),
            "batch_size": int(row["batch_size"]),
            "seq_len": int(row["seq_len"]),
        }
        dynamic, static = float(row["dynamic_ms"]), float(row["static_ms"])
        records.append(published(shared | {"mode": "eager", "latency_ms_median": dynamic}))
        records.append(published(shared | {"mode": "inference", "latency_ms_median": static}, dynamic / static))
    return records


def series(records: Records, along: str) -> Iterator[tuple[str, list[Record]]]:
    """Return the records of a graph mode along one axis of the shape, all others fixed, each with a title."""
    fixed = [axis for axis in SHAPE if axis != along]
    for key in sorted({tuple(value(record, axis) for axis in fixed) for record in records.graph}):
        shape = dict(zip(fixed, key, strict=True))
        title = ", ".join(f"{name.split('_')[0]} {size}" for name, size in shape.items())
        for points in series_along(records.graph.where(**shape).included, along):
            yield title, points


def trend(judge: Callable, along: str, device: str, **criteria) -> Callable[[Evidence], Answer]:
    """Return a check that the gain in percent follows `judge` along an axis, in every series of the device."""

    def check(evidence: Evidence) -> Answer:
        ours = evidence.records.on(device).where(**criteria)
        return all_of(trend_of(judge, gain_of, title, points, along, " %") for title, points in series(ours, along))

    return check


def always_faster(evidence: Evidence) -> Answer:
    """Check that the graph is faster at every shape."""
    return all_of(above(_label(record), gain_of(record), 0, " %") for record in evidence.records.graph.included)


def two_threads(judge: Callable, eager: bool) -> Callable[[Evidence], Answer]:
    """Return a check of the cores kept busy by one side where two threads were asked for."""

    def check(evidence: Evidence) -> Answer:
        measured = evidence.records.on("cpu").where(threads=2).included
        chosen = measured.eager if eager else measured.graph
        points = [
            Cores(_label(record), record.cpu_per_wall, record.other_load_cores or 0.0)
            for record in chosen
            if record.cpu_per_wall is not None
        ]
        return judge(points) if points else inconclusive("no cell has a measured number of busy cores at two threads")

    return check


def _label(record: Record) -> str:
    return f"{shape_of(record)}, {_threads(record)}" if record.threads else shape_of(record)


def _threads(record: Record) -> str:
    return times(record.threads or 1, "thread")


CLAIMS = (
    Claim("The static graph is faster at every shape.", always_faster),
    Claim(
        "On the CPU the gain grows with the sequence length, at equal batch (one thread).",
        trend(grows, "seq_len", "cpu", threads=1),
        devices=("cpu",),
    ),
    Claim(
        "On the CPU the gain grows with the batch, at equal sequence length (one thread).",
        trend(grows, "batch_size", "cpu", threads=1),
        devices=("cpu",),
    ),
    Claim(
        "With two threads the dynamic graph uses one core only.",
        two_threads(used_one_core, eager=True),
        of="eager",
        devices=("cpu",),
    ),
    Claim("With two threads the static graph uses both.", two_threads(used_more_cores, eager=False), devices=("cpu",)),
    Claim(
        "On the GPU the gain shrinks as sequences grow, at equal batch.",
        trend(shrinks, "seq_len", "gpu"),
        devices=("gpu",),
    ),
    Claim(
        "On the GPU the gain shrinks as the batch grows, at equal sequence length.",
        trend(shrinks, "batch_size", "gpu"),
        devices=("gpu",),
    ),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return latencies, gains, and cores kept busy, the published ones first."""
    theirs, made = Records(published_records(published)), []
    for device in dict.fromkeys(record.device_kind for record in evidence.records):
        ours = Evidence(evidence.records.on(device))
        groups = {PUBLISHED: theirs.on(device), **tables.by_framework(ours)}
        # On a GPU the threads are the host's; the source's four are not ours.
        axes = SHAPE if device == "cpu" else SHAPE[1:]
        gains = {heading: records.graph for heading, records in groups.items()}
        made.append(tables.by_shape(f"Latency in ms (median), {device}", axes, groups, tables.latency))
        made.append(tables.by_shape(f"Gain in %, (eager - graph) / eager, {device}", axes, gains, tables.gain))
        if device == "cpu":
            cores = tables.by_framework(ours)
            made.append(
                tables.by_shape(
                    "Cores kept busy, CPU time over wall time",
                    axes,
                    cores,
                    lambda record: record.excluded or text_of(record.cpu_per_wall),
                )
            )
    return made


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="PaddleNLP's BERT-base: dynamic graph against exported static graph",
    source="static-vs-dynamic-graph blog, 2022-11-05",
    claims=CLAIMS,
    tables=make_tables,
    published_records=published_records,
)
