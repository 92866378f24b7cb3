"""Claims of threads on decoding: compiling against CUDA graphs alone, and one framework against another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments import tables
from experiments.evidence import Evidence, value
from experiments.judge import Estimate, above, below, between, inconclusive, ratio_of
from experiments.spec import ALL, Answer, Claim, Experiment, Published, Table, all_of
from measurement.statistics import Interval
from records.record import Record

CUDA_GRAPHS = {"framework": "torch", "mode": "cuda-graph"}
COMPILED_TOO = {"framework": "torch", "mode": "inductor-reduce-overhead"}
TORCH, JAX = {"framework": "torch", "mode": "eager"}, {"framework": "jax", "mode": "jit"}
TOKENS = ("decode", "generate")  # the passes that generate tokens
# Gain that #1649 may call none: the gate by which its tracker, sglang-omni#1608, judges another change.
NO_BENEFIT = 1.02
AXES = ("workload", "pass", "dtype", "batch_size", "parameters")


def ratios(
    evidence: Evidence, this: Mapping[str, Any], other: Mapping[str, Any], **criteria
) -> Iterator[tuple[str, Estimate]]:
    """Yield (name of the shape, time of `this` over time of `other`) for each shape that both have.

    The ratio has an interval: over rounds where both were interleaved, else over the two latencies. If different
    machines measured a shape, a sentence replaces its ratio.
    """
    records = evidence.records.where(**criteria).included
    pairs = [(a, b) for a in records.where(**this) for b in records.where(**other) if not differ(a, b)]
    found = [(named(a), evidence.paired(a, b) or ratio_of(a, b)) for a, b in pairs]
    known = {name for name, ratio in found if isinstance(ratio, Interval)}
    yield from dict.fromkeys(one for one in found if one[0] not in known or isinstance(one[1], Interval))


def differ(this: Record, other: Record) -> bool:
    """Return whether they have different shapes."""
    return any(value(this, axis) != value(other, axis) for axis in (*AXES, "device"))


def named(record: Record) -> str:
    """Return a record's workload, pass, dtype and batch as text."""
    return f"{record.workload} {record.pass_name} {record.dtype} batch {record.batch_size}"


def check_of(
    judged: Callable[[str, Estimate], Answer], this: Mapping[str, Any], other: Mapping[str, Any], **criteria
) -> Callable[[Evidence], Answer]:
    """Return a check that applies `judged` to every ratio of times of tokens."""

    def check(evidence: Evidence) -> Answer:
        named_ratios = list(ratios(evidence, this, other, **{"pass": TOKENS, **criteria}))
        if not named_ratios:
            return inconclusive(
                "not run here: " + " and ".join(f"{side['framework']} {side['mode']}" for side in (this, other))
            )
        return all_of(judged(name, ratio) for name, ratio in named_ratios)

    return check


CLAIMS = (
    Claim(
        "With CUDA graphs, compiling changes the time by less than 3 % (sglang-omni#752 and #579).",
        check_of(lambda name, ratio: between(name, ratio, 0.97, 1.03, "×"), CUDA_GRAPHS, COMPILED_TOO),
        of=ALL,
        devices=("gpu",),
    ),
    Claim(
        "With CUDA graphs, compiling makes a token less than 2 % faster (sglang-omni#1649: no reproducible benefit).",
        check_of(lambda name, ratio: below(name, ratio, NO_BENEFIT, "×"), CUDA_GRAPHS, COMPILED_TOO),
        of=ALL,
        devices=("gpu",),
    ),
    Claim(
        "At batch 1 compiling brings more than CUDA graphs alone (sglang#1008: 1.15 times the tokens).",
        check_of(lambda name, ratio: above(name, ratio, 1, "×"), CUDA_GRAPHS, COMPILED_TOO, batch_size=1),
        of=ALL,
        devices=("gpu",),
    ),
    Claim(
        "At batch 128 compiling costs time (sglang#1008: 0.96 times the tokens).",
        check_of(lambda name, ratio: below(name, ratio, 1, "×"), CUDA_GRAPHS, COMPILED_TOO, batch_size=128),
        of=ALL,
        devices=("gpu",),
    ),
    Claim(
        "A token takes 4 to 5 times as long in torch's eager mode as in JAX's jit (keras-hub#2593: 4.5).",
        check_of(lambda name, ratio: between(name, ratio, 4, 5, "×"), TORCH, JAX),
        of=ALL,
    ),
    Claim(
        "A token takes more than 10 times as long in JAX's jit as in torch's eager mode (llama-2-jax#15: 14).",
        check_of(lambda name, ratio: above(name, ratio, 10, "×"), JAX, TORCH),
        of=ALL,
    ),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return our latencies, and the published ratios in a separate table."""
    groups = tables.by_framework(evidence)
    latencies = [tables.by_shape("Latency in ms (median)", AXES, groups, tables.latency)] if groups else []
    columns = ("source", "claim", "this", "other", "ratio")
    rows = tuple(tuple(row[name] for name in columns) for row in published)
    return [*latencies, Table("Values in the sources", columns, rows)]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Claims on decoding: CUDA graphs and compiling, torch and JAX",
    source="sglang-omni#752, #579 and #1649, sglang#1008, keras-hub#2593, llama-2-jax#15",
    claims=CLAIMS,
    tables=make_tables,
)
