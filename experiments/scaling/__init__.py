"""Published speedups of compiled training on several GPUs, and the time that ranks lose to communication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import gains, tables
from experiments.evidence import Evidence, Records, exactly, published
from experiments.spec import PUBLISHED, Claim, Experiment, Published, Table
from records.record import Record


def published_records(rows: Published) -> list[Record]:
    """Return the published rows as records; of rates the sources give ratios, without intervals."""
    records = []
    for row in rows:
        ratio = float(row["relative_rate"])
        record = {name: row[name] for name in ("workload", "pass", "parameters", "mode")} | exactly(1e3 / ratio)
        records.append(published(record, None if row["mode"] == "eager" else ratio))
    return records


SHARDED: dict[str, Any] = {"mode": "inductor", "strategy": "fsdp", "workload": ("gpt2-124m", "toy-qwen3")}
CLAIMS = (
    Claim(
        "Compiled by block, FSDP2 trains 8.31 % faster on two GPUs.",
        gains.times_as_fast(*gains.about_gain(1.0831), **SHARDED),
        devices=("gpu",),
    ),
    Claim(
        "Compiled, ResNet-50 trains 33.6 % faster on several GPUs.",
        gains.times_as_fast(*gains.about_gain(1.336), mode="inductor", workload="resnet50", strategy="ddp"),
        devices=("gpu",),
    ),
    Claim(
        "Compiled, BERT trains 26.8 % faster on several GPUs.",
        gains.times_as_fast(*gains.about_gain(1.2675), mode="inductor", workload="bert-base", strategy="ddp"),
        devices=("gpu",),
    ),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return how many times as fast as eager mode, items a second and rank, and memory."""
    ours = tables.by_framework(evidence)
    theirs = {PUBLISHED: Records(published_records(published)), **ours}
    graphs = {name: records.graph for name, records in theirs.items()}
    axes = ("workload", "ranks", "strategy", "checkpoint")
    return [
        tables.by_shape("Times as fast as eager", axes, graphs, gains.ratio),
        tables.by_shape("Items a second and rank", axes, ours, tables.rate),
        tables.by_shape("Peak memory of a rank in MB", axes, ours, tables.column("peak_memory_mb")),
    ]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Training on several GPUs: eager and compiled, DDP and FSDP2",
    source="pull requests of VeOmni (2026) and composer (2023)",
    claims=CLAIMS,
    tables=make_tables,
    published_records=published_records,
    edition=("gpu-scaling-bert", "gpu-scaling-torch", "gpu-scaling-vision"),
)
