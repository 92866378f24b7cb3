"""The README's findings: one table and a few sentences; `docs/findings.md` has every run, with hosts and cautions."""

from __future__ import annotations

from pathlib import Path

from analysis import facts
from analysis.points import Point
from experiments.geometric_mean import geometric_mean
from measurement.statistics import Interval
from publish import findings
from publish.evidence import gain, ms, one, points, versions
from publish.findings import DECODING, DEFAULT, MEAN, MEAN_TRAINING, REPLAYED, RESNET, SHORT, TWO_CORES
from reports.numbers import range_of, ratio, span, text_of

MODES = DEFAULT, REPLAYED
CALLS = "`torch.compile(m)`", '`mode="reduce-overhead"`'
LONG = findings.TORCH[1]
LIBRARY = {"implementation": "library", "dtype": "bf16"}
ROWS: dict[str, tuple[Path, dict[str, object]]] = {
    "BERT-base (Hugging Face), 8 × 128 tokens": (SHORT[0], {**LIBRARY, "batch_size": 8}),
    "BERT-base (Hugging Face), 64 × 512 tokens": (LONG, {**LIBRARY, "batch_size": 64}),
    "Llama 1.2B, one token, batch 1, context 1,024": (DECODING[0], {"batch_size": 1}),
    "ResNet-50, 64 images, channels last": (RESNET, {"workload": "resnet50", "batch_size": 64}),
    "LSTM (`torch.lstm`), 8 × 128 tokens": (MEAN, {"workload": "lstm"}),
    "GPT-2 124M training, 32 × 1,024 tokens": (findings.GPT2, {}),
}
MEANS = {"inference of {count} models, batch 8": MEAN, "training of {count} models, batch 8": MEAN_TRAINING}


def text() -> str:
    """Return one table and a few sentences."""
    return "\n".join([*table(), "", *sentences()])


def table() -> list[str]:
    """Return a row for each kind of work, of one run of three processes: eager mode's time and the speedups."""
    return [
        f"| PyTorch, bf16, speedup over eager (95 % interval) | eager, ms | {' | '.join(CALLS)} |",
        "| --- | --- | --- | --- |",
        *(_row(title, folder, columns) for title, (folder, columns) in ROWS.items()),
        *(_mean(title, folder) for title, folder in MEANS.items()),
    ]


def _row(title: str, folder: Path, columns: dict[str, object]) -> str:
    by_mode = {point.record.mode: point for point in points(folder, **columns) if _last(point)}
    cells = [times(gain(by_mode[mode])) if mode in by_mode else "not measured" for mode in MODES]
    return f"| {title} | {text_of(by_mode['eager'].median_ms)} | {' | '.join(cells)} |"


def _last(point: Point) -> bool:
    """Return whether images have their channels last, where there are images."""
    return "layout=nchw" not in (point.record.other_parameters or "")


def _mean(title: str, folder: Path) -> str:
    means = [geometric_mean(gain(point) for point in points(folder, mode=mode)) for mode in MODES]
    title = title.format(count=len(points(folder, mode=MODES[0])))
    return f"| Geometric mean, {title} | | {' | '.join(map(times, means))} |"


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
    alike = {"implementation": "library", "batch_size": 8}
    modes = zip(SHORT, ("inductor-reduce-overhead", "jit", "function-xla"), strict=True)
    torch, jax, xla = (_ms(one(folder, mode=mode, **alike)) for folder, mode in modes)
    graph = _ms(one(SHORT[2], mode="function", **alike))
    return (
        "- **Compare frameworks in milliseconds.** BERT-base at 8 × 128 tokens, each library's own model: "
        f"torch `reduce-overhead` {torch}, `jax.jit` {jax}, `tf.function(jit_compile=True)` {xla}, "
        f"`tf.function` without XLA {graph}."
    )


def _ms(point: Point) -> str:
    return f"{dashed(ms(point))} ms"


def _precision() -> str:
    (alone, compiled, _) = findings.tf32_gains(findings.KERAS["training"])
    return (
        f"- **TF32 is not the compiler's gain.** In BERT-base's training TF32 alone brings {times(alone)}, "
        f"compiling on top of it {times(compiled)}."
    )


def _first_call() -> str:
    small, trained = (
        [point for point in points(folder, compile_cache="cold") if point.record.mode in MODES and _not_lstm(point)]
        for folder in (MEAN, MEAN_TRAINING)
    )
    lstm = [point for point in points(MEAN, workload="lstm") if point.record.mode in MODES]
    return (
        f"- **The first call compiles**: {_seconds(small)} in inference at batch 8 (LSTM: {_seconds(lstm)}), "
        f"{_seconds(trained)} in training. The report says when that pays for itself."
    )


def _not_lstm(point: Point) -> bool:
    return point.record.workload != "lstm"


def _seconds(measured: list[Point]) -> str:
    known = (seconds for point in measured if (seconds := facts.first_s(point)) is not None)
    return dashed(range_of(known, " s", "{:.2g}".format))


def _processors() -> str:
    bert_base, mlp = (
        gain(one(TWO_CORES, framework="torch", workload=workload, mode=DEFAULT, batch_size=1))
        for workload in ("bert-base", "mlp")
    )
    return f"- **On two CPU cores** `torch.compile` brings BERT-base {times(bert_base)} and an MLP {times(mlp)}."


def _versions() -> str:
    tables = [point for folder, columns in ROWS.values() for point in points(folder, **columns)]
    others = points(*SHORT[1:], MEAN_TRAINING)
    rounded = findings.tf32_gains(findings.KERAS["training"])[2]
    return f"- Versions: {versions([*tables, *others])}; TF32: {versions(rounded)}; CPU: {versions(points(TWO_CORES))}."
