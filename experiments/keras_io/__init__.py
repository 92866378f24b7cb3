"""BERT in the Keras 3 benchmarks: native PyTorch eager and compiled, TensorFlow and JAX, training and inference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from experiments import gains, tables
from experiments.evidence import Evidence, Records, exactly, published, rate_of, speedup_of
from experiments.judge import between, greater_of, inconclusive, ratio_of
from experiments.spec import PUBLISHED, Answer, Claim, Experiment, Published, Table, all_of
from records.record import Record

# The compiled arms that the source compares: its mode of torch.compile (on a CPU the default replaces it), and those
# that Keras compiles with.
COMPILED = {"torch": ("inductor-reduce-overhead", "inductor"), "tensorflow": ("function-xla",), "jax": ("jit",)}
AXES = ("pass", "dtype", "batch_size", "seq_len")


def published_records(rows: Published) -> list[Record]:
    """Return the published rows as records: means of 100 steps, without intervals in the source."""
    records = []
    for row in rows:
        names = ("framework", "workload", "pass", "mode", "dtype")
        sizes = {name: int(row[name]) for name in ("batch_size", "seq_len")}
        records.append(published({name: row[name] for name in names} | sizes | exactly(float(row["step_ms"]))))
    return records


def compiled(records: Records, framework: str) -> Record | None:
    """Return the framework's compiled arm, the first of them that was measured."""
    arms = (records.find_one(framework=framework, mode=mode) for mode in COMPILED[framework])
    return next(filter(None, arms), None)


def same_arithmetic(pass_name: str, times: float) -> Callable[[Evidence], Answer]:
    """Return a check that compiled torch is about so many times as fast as eager torch in the same dtype."""

    def check(evidence: Evidence) -> Answer:
        answers = []
        for dtype in evidence.records.values("dtype"):
            record = compiled(evidence.records.where(dtype=dtype, **{"pass": pass_name}), "torch")
            if record and speedup_of(record):
                name = f"{gains.named(record)} {dtype}"
                answers.append(between(name, speedup_of(record), *gains.about(times), "×"))
        return all_of(answers)

    return check


def as_published(pass_name: str, published: float) -> Callable[[Evidence], Answer]:
    """Return a check that compiled torch in TF32 is about so many times as fast as eager torch in strict float32."""

    def check(evidence: Evidence) -> Answer:
        ours = evidence.records.where(framework="torch", **{"pass": pass_name})
        eager, graph = ours.find_one(mode="eager", dtype="fp32"), compiled(ours.where(dtype="tf32"), "torch")
        if eager is None or graph is None:
            return inconclusive("eager in fp32 and compiled in tf32 were not both measured at one shape on one machine")
        return between(gains.named(eager), ratio_of(eager, graph), *gains.about(published), "×")

    return check


def faster(pass_name: str, first: str, *others: str) -> Callable[[Evidence], Answer]:
    """Return a check that `first`, compiled, takes less time than each of `others`, in every dtype that both have."""

    def check(evidence: Evidence) -> Answer:
        answers = []
        for dtype in evidence.records.values("dtype"):
            ours = evidence.records.where(dtype=dtype, **{"pass": pass_name})
            this, theirs = compiled(ours, first), {name: compiled(ours, name) for name in others}
            if this and any(theirs.values()):
                answers += [_beside(this, theirs[name], dtype, name) for name in others]
        return all_of(answers)

    return check


def _beside(this: Record, other: Record | None, dtype: str, name: str) -> Answer:
    if other is None:
        return inconclusive(f"{name} was not measured in {dtype}")
    names = [f"{record.framework} {dtype} calls a second" for record in (this, other)]
    rate = lambda record: rate_of(record, 1e3 / record.latency.value) if record.latency else None  # noqa: E731
    return greater_of(rate, names[0], this, names[1], other)


CLAIMS = (
    Claim(
        "Compiled, native PyTorch trains BERT 3.43 times as fast as in eager mode.",
        same_arithmetic("training", 3.43),
        of="all",
    ),
    Claim(
        "Compiled, it trains 3.43 times as fast if compiling also enables TF32, as in the source.",
        as_published("training", 3.43),
        of="all",
        devices=("gpu",),
    ),
    Claim(
        "Compiled, native PyTorch predicts with BERT 2.52 times as fast as in eager mode.",
        same_arithmetic("inference", 2.52),
        of="all",
    ),
    Claim(
        "Compiled, it predicts 2.52 times as fast if compiling also enables TF32.",
        as_published("inference", 2.52),
        of="all",
        devices=("gpu",),
    ),
    Claim("TensorFlow trains BERT faster than JAX.", faster("training", "tensorflow", "jax"), of="all"),
    Claim("Compiled PyTorch trains it faster than both.", faster("training", "torch", "tensorflow", "jax"), of="all"),
    Claim("JAX predicts faster than TensorFlow.", faster("inference", "jax", "tensorflow"), of="all"),
    Claim("TensorFlow predicts faster than compiled PyTorch.", faster("inference", "tensorflow", "torch"), of="all"),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return milliseconds a step, and how many times as fast as eager mode in the same dtype."""
    groups = {PUBLISHED: Records(published_records(published)), **tables.by_framework(evidence)}
    graphs = {name: records.graph for name, records in groups.items() if name != PUBLISHED}
    return [
        tables.by_shape("Milliseconds a step (median)", AXES, groups, tables.latency),
        tables.by_shape("Times as fast as eager in the same dtype", AXES, graphs, gains.ratio),
    ]


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="BERT's training and prediction in the Keras 3 benchmarks",
    source="keras.io, Keras 3 benchmarks, 2024; an A100, means of 100 steps",
    claims=CLAIMS,
    tables=make_tables,
    published_records=published_records,
)
