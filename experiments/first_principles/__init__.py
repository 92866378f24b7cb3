"""Separate compute, bandwidth and overhead by small experiments: chains, cosines, tiny additions, doubled batches."""

from __future__ import annotations

from pathlib import Path

from experiments import tables
from experiments.evidence import Evidence
from experiments.first_principles import chain, operators, overhead
from experiments.spec import Experiment, Published, Table

# The published quantities that are measured here as well, each as text for one framework's graph mode.
MEASURED_AS = {
    "achieved rate at repeat=1": chain.rate_of_one,
    "A100 fp32 peak without FMA": chain.highest("tflops"),
    "runtime stays flat up to repeat": chain.flat_up_to,
    "Python additions per second": overhead.python_rate,
    "PyTorch additions per second": overhead.rate,
    "FLOP share of non-matmul operators in BERT": operators.outside,
}
LATENCIES = {
    "pointwise-chain": ("elements", "repeat"),
    "fused-cos": ("elements", "repeat"),
    "op-overhead": ("additions",),
    "mlp": ("width", "depth", "batch_size"),
}


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return the published quantities with their values here, then the latencies of every experiment."""
    sides = evidence.sides()
    rows = [
        (row["experiment"], row["quantity"], row["value"], row["unit"], *_ours(row["quantity"], sides))
        for row in published
    ]
    columns = ("experiment", "quantity", "published", "unit", *sides)
    made = [Table("Published quantities, and their values here", columns, tuple(rows))]
    for workload, axes in LATENCIES.items():
        groups = {name: records.where(workload=workload) for name, records in tables.by_framework(evidence).items()}
        groups = {name: records for name, records in groups.items() if len(records)}
        if groups:
            made.append(tables.by_shape(f"{workload}: latency in ms (median)", axes, groups, tables.latency))
    return made + operators.make_tables(evidence)


def _ours(quantity: str, sides: dict[str, Evidence]) -> list[str]:
    measure = MEASURED_AS.get(quantity)
    return [measure(side) if measure else "" for side in sides.values()]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Compute, bandwidth, overhead: pointwise chains, fused cosines, tiny additions, doubled batches",
    source="first-principles post, 2022",
    claims=(*chain.CLAIMS, *overhead.CLAIMS, *operators.CLAIMS),
    tables=make_tables,
)
