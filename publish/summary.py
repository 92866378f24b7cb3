"""The README's findings: one table and a few sentences; `docs/findings.md` has more, with links to the runs."""

from __future__ import annotations

from analysis import facts
from analysis.points import Point
from measurement.statistics import Interval
from publish import findings
from publish.evidence import measured, pooled, precise, versions
from publish.findings import (
    BERT,
    CALLS,
    COLD,
    DEFAULT,
    IMAGES,
    MEAN,
    MEAN_TRAINING,
    MODES,
    REPLAYED,
    SHORT,
    TOKENS,
    TRAINING,
    TWO_CORES,
    Row,
)
from reports.numbers import range_of, ratio, span, text_of

TRAINED_LSTM = Row("lstm", (MEAN_TRAINING,), {"workload": "lstm"})
LSTM = Row("LSTM (`torch.lstm`), 8 × 128 tokens", (MEAN,), {"workload": "lstm"})
ROWS = [
    BERT[1]._replace(title="BERT-base (Hugging Face), 8 × 128 tokens"),
    BERT[3]._replace(title="BERT-base (Hugging Face), 64 × 512 tokens"),
    TOKENS[0]._replace(title="Llama 1.2B, one token, batch 1, context 1,024"),
    IMAGES[1]._replace(title="ResNet-50, 64 images, channels last"),
    LSTM,
    TRAINING[0]._replace(title="GPT-2 124M training, 32 × 1,024 tokens"),
]
MEANS = {"inference of {count} models": MEAN, "training of {count} models": MEAN_TRAINING}


def text() -> str:
    """Return one table and a few sentences."""
    return "\n".join([*table(), "", *sentences()])


def table() -> list[str]:
    """Return a row for each kind of work, over all its runs: eager mode's time and the speedups."""
    lines = findings.table("PyTorch, bf16, speedup over eager", "eager, ms", *CALLS)
    for row in ROWS:
        cells = [findings.speedup(row, mode) or "not measured" for mode in MODES]
        lines.append(findings.line(row.title, findings.latency(row, "eager"), *cells))
    for title, folder in MEANS.items():
        means = [findings.mean(folder, mode) for mode in MODES]
        title = f"Geometric mean, {title.format(count=means[0][1])}, batch 8, all `IMPL=plain`"
        lines.append(findings.line(title, "", *(precise(interval, "×") for interval, _ in means)))
    return lines


def times(interval: Interval) -> str:
    """Return a multiple with its interval: `5.27× (4.28–6.49)`."""
    return f"{ratio(interval.value)}× ({dashed(span(interval.low, interval.high, ratio))})"


def dashed(text: str) -> str:
    """Return a range with a dash."""
    return text.replace(" to ", "–")


def sentences() -> list[str]:
    """Return what the table does not say: frameworks, precision, the first call, processors, versions."""
    return [_frameworks(), _precision(), _first_call(), _processors(), _versions()]


def _frameworks() -> str:
    row = BERT[1]._replace(folders=SHORT)
    torch, jax, xla, graph = (_ms(row, mode) for mode in (REPLAYED, "jit", "function-xla", "function"))
    return (
        "- **Compare frameworks in milliseconds.** BERT-base at 8 × 128 tokens, each library's own model: "
        f"torch `reduce-overhead` {torch}, `jax.jit` {jax}, `tf.function(jit_compile=True)` {xla}, "
        f"`tf.function` without XLA {graph}."
    )


def _ms(row: Row, mode: str) -> str:
    (point,) = measured(*row.folders, **row.columns_of(mode))
    latency = point.latency
    return f"{text_of(latency.value)} ({dashed(span(latency.low, latency.high))}) ms" if latency else ""


def _precision() -> str:
    alone, compiled = findings.tf32_gains(findings.KERAS["training"])
    return (
        f"- **TF32 is a separate gain.** In BERT-base's training TF32 alone brings {times(alone)}, "
        f"and compiling in addition {times(compiled)}."
    )


def _first_call() -> str:
    small, trained = (
        [point for mode in MODES for point in measured(folder, mode=mode, **COLD) if point.record.workload != "lstm"]
        for folder in (MEAN, MEAN_TRAINING)
    )
    lstm = [point for mode in MODES for point in measured(*LSTM.folders, **LSTM.columns_of(mode))]
    return (
        f"- **The first call compiles**: {_seconds(small)} in inference at batch 8 (LSTM: {_seconds(lstm)}), "
        f"{_seconds(trained)} in training (LSTM: {findings.first_call(TRAINED_LSTM)} s)."
    )


def _seconds(points: list[Point]) -> str:
    known = (seconds for point in points if (seconds := facts.first_s(point)) is not None)
    return dashed(range_of(known, " s", "{:.2g}".format))


def _processors() -> str:
    gains = []
    for workload in ("bert-base", "mlp"):
        found = measured(TWO_CORES, framework="torch", workload=workload, mode=DEFAULT)
        gains.append(pooled(found, lambda point: point.speedup))
    bert_base, mlp = (times(gain) if gain else "" for gain in gains)
    return f"- **On two CPU cores** `torch.compile` has a speedup of {bert_base} in BERT-base and {mlp} in an MLP."


def _versions() -> str:
    tables = [point for row in ROWS for mode in MODES for point in measured(*row.folders, **row.columns_of(mode))]
    others = measured(*SHORT[1:], MEAN_TRAINING)
    rounded = measured(findings.KERAS["training"], framework="torch")
    return (
        f"- Versions: {versions([*tables, *others])}; TF32: {versions(rounded)}; CPU: {versions(measured(TWO_CORES))}."
    )
