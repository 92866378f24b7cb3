"""gpt-fast: tokens a second of Llama-2-7B at batch 1, compiled, and their share of the bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from experiments import tables
from experiments.evidence import Evidence, Records, exactly, published, rate_of
from experiments.judge import above, between, inconclusive, ratio_of
from experiments.spec import PUBLISHED, Answer, Claim, Experiment, Published, Table, all_of
from measurement.statistics import Interval
from records.record import Record

AXES = ("workload", "dtype", "quant", "product", "batch_size")
USUAL = (None, "matmul")  # how products are written; None in records from before that choice


def published_records(rows: Published) -> list[Record]:
    """Return a compiled record of each row, whose figures have no interval in the sources."""
    records = []
    for row in rows:
        rate = float(row["tokens_per_s"])
        share = 100 * float(row["gb_per_s"]) / float(row["datasheet_gb_per_s"])
        ours: dict[str, Any] = {"workload": row["workload"], "dtype": row["dtype"], "run_id": row["source"]}
        ours |= {"batch_size": int(row["batch_size"]), "parameters": f"quant={row['quant']};product=matmul"}
        ours |= {"mode": "inductor-reduce-overhead", "pass": "generate", **exactly(1e3 / rate)}
        records.append(published(ours | {"tokens_per_s": rate, "datasheet_bandwidth_pct": share}))
    return records


def bandwidth(record: Record) -> Interval | None:
    """Return the share of the data sheet's bandwidth in percent, with the interval of its latency."""
    return rate_of(record, record.datasheet_bandwidth_pct)


def reaches(percent: float) -> Callable[[Evidence], Answer]:
    """Return a check that graphs generate with at least so much of the data sheet's bandwidth, in bf16 at batch 1."""

    def check(evidence: Evidence) -> Answer:
        graphs = evidence.records.graph.where(
            workload="llama-7b", dtype="bf16", quant="none", batch_size=1, product=USUAL
        )
        records = list(graphs.included)
        if not records:
            return inconclusive("not run here")
        return all_of(
            above(f"{record.tokens_per_s:.0f} tokens/s,", bandwidth(record), percent, " %") for record in records
        )

    return check


def int8_is_faster(evidence: Evidence) -> Answer:
    """Check that weights in int8 give about one and a half times as many tokens a second."""
    graphs = evidence.records.graph.where(workload="llama-7b", dtype="bf16", product=USUAL).included
    answers = []
    for run, mode in product(graphs.values("run_id"), graphs.values("mode")):
        small, large = (graphs.find_one(run_id=run, mode=mode, quant=quant) for quant in ("int8", "none"))
        if small and large:
            answers.append(between(f"int8 over bf16 in {mode}", ratio_of(large, small), 1.4, 1.6, "×"))
    return all_of(answers) if answers else inconclusive("not run here")


CLAIMS = (
    Claim("Compiled, tokens take 68 % or more of the data sheet's bandwidth (README).", reaches(68), devices=("gpu",)),
    Claim("They take 80 % or more (PyTorch's target, on an A100-40GB).", reaches(80), devices=("gpu",)),
    Claim("Weights in int8 give 1.5 times as many tokens a second.", int8_is_faster, devices=("gpu",)),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return two tables, tokens per second and shares of bandwidth in %, each with the published values."""
    theirs = Records(published_records(published))
    runs = dict.fromkeys(record.run_id for record in theirs)
    groups = {f"{PUBLISHED} ({run})": theirs.where(run_id=run) for run in runs} | tables.by_framework(evidence)
    shown = {"Tokens a second": "tokens_per_s", "% of the data sheet's bandwidth": "datasheet_bandwidth_pct"}
    return [tables.by_shape(title, AXES, groups, tables.column(name)) for title, name in shown.items()]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="gpt-fast: Llama-2-7B, a short prompt and 200 tokens at batch 1",
    source="README of pytorch-labs/gpt-fast, and the targets in pytorch/benchmarks/gpt_fast",
    claims=CLAIMS,
    tables=make_tables,
    published_records=published_records,
)
