"""Published training throughput of ResNet-50 and BERT: eager, compiled, and in mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import gains, tables
from experiments.evidence import Evidence, Records, exactly, published, rate_of
from experiments.judge import above, between, inconclusive, ratio_of
from experiments.spec import PUBLISHED, Answer, Claim, Experiment, Published, Table, all_of
from measurement.statistics import Interval
from records.record import Record

A100_IMAGES_PER_S = 2470
MIXED = ("bf16", "amp")


def published_records(rows: Published) -> list[Record]:
    """Return the published rows as records; ratios compare throughputs, for which the sources give no intervals."""
    eager = {(row["source"], row["workload"]): float(row["items_per_s"]) for row in rows if row["mode"] == "eager"}
    records = []
    for row in rows:
        record: dict[str, Any] = {name: row[name] for name in ("workload", "pass", "parameters", "dtype", "mode")}
        rate, batch = float(row["items_per_s"]), int(row["batch_size"]) if row["batch_size"] else None
        record |= {"items_per_s": rate, "batch_size": batch, **exactly(1e3 * (batch or 1) / rate)}
        ratio = None if row["mode"] == "eager" else rate / eager[row["source"], row["workload"]]
        records.append(published(record, ratio))
    return records


def faster(ratio: float, **criteria) -> Callable[[Evidence], Answer]:
    """Return a check that a graph mode trains about `ratio` times as fast as eager wherever `criteria` was measured."""
    return gains.times_as_fast(*gains.about(ratio), **criteria)


def throughput(record: Record) -> Interval | None:
    """Return items per second, from the interval of the latency."""
    return rate_of(record, record.items_per_s)


def best_arm(evidence: Evidence) -> Answer:
    """Check that the fastest mode of all trains ResNet-50 in mixed precision at the published rate or above."""
    records = evidence.records.where(workload="resnet50", dtype=MIXED).included
    rates = {record: rate for record in records if (rate := throughput(record))}
    if not rates:
        return inconclusive("no training of resnet50 in mixed precision was measured")
    best = max(rates, key=lambda record: rates[record].value)
    name = " ".join(filter(None, (best.framework, best.mode, gains.named(best))))
    return above(name, rates[best], gains.about(A100_IMAGES_PER_S)[0], " images/s")


def mixed_over_tf32(evidence: Evidence) -> Answer:
    """Check that eager torch trains ResNet-50 about 2.63 times as fast in mixed precision as in TF32."""
    eager = evidence.records.eager.where(framework="torch", workload="resnet50")
    answers = []
    for layout in dict.fromkeys(record.parameter("layout") for record in eager):
        ours = eager.where(layout=layout)
        mixed, tf32 = ours.find_one(dtype=MIXED), ours.find_one(dtype="tf32")
        if mixed and tf32:
            ratio = ratio_of(mixed, tf32, throughput)
            answers.append(between(gains.named(mixed), ratio, *gains.about(2.63), "×"))
    return all_of(answers)


CLAIMS = (
    Claim("Compiled, ResNet-50 trains 33.6 % faster.", faster(1.336, workload="resnet50")),
    Claim("Compiled, BERT trains 26.8 % faster.", faster(1.2675, workload="bert-base")),
    Claim(
        "With channels last, compiling does not speed up ResNet-50's training.",
        faster(1.0, workload="resnet50", layout="nhwc"),
    ),
    Claim(
        "ResNet-50 trains at 2470 images a second in mixed precision, which an A100 reached.",
        best_arm,
        of="all",
        devices=("gpu",),
    ),
    Claim("In eager mode mixed precision is 2.63 times as fast as TF32.", mixed_over_tf32, of="all", devices=("gpu",)),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return items per second, and the speedup over eager mode."""
    groups = {PUBLISHED: Records(published_records(published)), **tables.by_framework(evidence)}
    graphs = {name: records.graph for name, records in groups.items()}
    axes = ("workload", "layout", "dtype", "batch_size")
    return [
        tables.by_shape("Images or sequences a second", axes, groups, tables.column("items_per_s")),
        tables.by_shape("Times as fast as eager", axes, graphs, gains.ratio),
    ]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Training ResNet-50 and BERT: images and sequences a second, eager and compiled",
    source="composer's and PaddlePaddle's pull requests on torch.compile, 2023; NVIDIA's DeepLearningExamples",
    claims=CLAIMS,
    tables=make_tables,
    published_records=published_records,
)
