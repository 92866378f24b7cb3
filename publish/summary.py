"""The README's findings: one table and a few sentences; `docs/findings.md` has all of them, with hosts and cautions."""

from __future__ import annotations

import json
from pathlib import Path

from analysis import facts
from analysis.points import Point
from experiments.geometric_mean import geometric_mean
from measurement.statistics import Interval
from publish import findings
from publish.evidence import gain, letters, material, ms, one, points, verdict, versions
from publish.findings import DECODING, DEFAULT, MEAN, MEAN_TRAINING, REPLAYED, RESNET, SHORT, TWO_CORES, span
from reports import numbers
from reports.numbers import multiple, range_of, ratio
from reports.verdict import Verdict, wording

MODES = DEFAULT, REPLAYED
CALLS = "`torch.compile(model)`: inductor", '`mode="reduce-overhead"`: inductor-reduce-overhead'
HOSTS = "results/h200/README.md#the-machines"
SIZES = {
    "BERT-base, 1 or 8 texts of 128 tokens": ((1, 128), (8, 128)),
    "BERT-base, 4 texts of 512 tokens": ((4, 512),),
    "BERT-base, 64 texts of 512 tokens": ((64, 512),),
}


def text() -> str:
    """Return one table and a few sentences."""
    return "\n".join([*table(), "", *sentences()])


def table() -> list[str]:
    """Return a row for each kind of work: eager mode's time, and compiling's gain as the ends of all its intervals."""
    return [
        f"| torch, bf16 | eager mode takes (medians) | {' | '.join(CALLS)} | [host]({HOSTS}) |",
        "| --- | --- | --- | --- | --- |",
        *(_bert(title, shapes) for title, shapes in SIZES.items()),
        _row("A token of 1, 8 or 64 texts from a Llama of 1.2B", points(*DECODING[:2])),
        _row("ResNet-50, 64 images, channels last", _channels_last()),
        _row("An LSTM (`torch.lstm`), 8 texts of 128 tokens", points(MEAN, workload="lstm")),
        _row("Training a GPT-2 of 124M, 32 texts of 1024 tokens", points(findings.GPT2)),
        _mean("Inference of {count} models at batch 8, geometric mean", MEAN),
        _mean("Training of {count} models at batch 8, geometric mean", MEAN_TRAINING),
    ]


def _bert(title: str, shapes: tuple) -> str:
    return _row(title, [point for point in _bert_points() if (point.record.batch_size, point.record.seq_len) in shapes])


def _bert_points() -> list[Point]:
    return points(*findings.TORCH, implementation="library", dtype="bf16")


def _channels_last() -> list[Point]:
    alike = points(RESNET, workload="resnet50", batch_size=64)
    return [point for point in alike if "layout=nhwc" in point.record.other_parameters]


def _row(title: str, measured: list[Point]) -> str:
    by_mode = {mode: [point for point in measured if point.record.mode == mode] for mode in ("eager", *MODES)}
    cells = [span(by_mode[mode]) if by_mode[mode] else "not measured" for mode in MODES]
    return f"| {title} | {wording.milliseconds(by_mode['eager'])} | {' | '.join(cells)} | {letters(measured)} |"


def _mean(title: str, folder: Path) -> str:
    means = [geometric_mean(gain(point) for point in points(folder, mode=mode)) for mode in MODES]
    ends = [f"{numbers.span(mean.low, mean.high, ratio)}×" for mean in means]
    title = title.format(count=len(points(folder, mode=MODES[0])))
    return f"| {title} | | {' | '.join(ends)} | {letters(points(folder))} |"


def sentences() -> list[str]:
    """Return what the table does not say: versions, frameworks, losses, precision, the first call, processors."""
    return [_versions(), _frameworks(), _tensorflow(), _losses(), _precision(), _first_call(), _processors()]


def _versions() -> str:
    """Return which versions the figures are of, and where they differ."""
    tables = [*_bert_points(), *points(RESNET, findings.GPT2, *DECODING[:2], MEAN, MEAN_TRAINING)]
    others = points(*SHORT[1:], DECODING[2])
    libraries = {
        record.framework: f"{json.loads(record.versions or '{}')['transformers']} with {record.framework}"
        for record in (point.record for point in (*_bert_points(), *others))
        if record.implementation == "library"
    }
    rounded = [point for folder in findings.KERAS.values() for point in findings.tf32_gains(folder)[2]]
    return (
        f"- **Versions**: {versions([*tables, *others])}; for TF32 {versions(rounded)}; on two CPU cores "
        f"{versions(points(TWO_CORES))}. transformers {', '.join(libraries.values())}. An `nn.LSTM` stays eager "
        "under `torch.compile` by default; the row is of `torch.lstm`."
    )


def _frameworks() -> str:
    short, _, alike = findings.bert_verdicts()
    llama, again = verdict(material(*DECODING), "plain"), findings.decoding_again()[1]
    return (
        "- **Between frameworks compare milliseconds, not speedups**: nobody deploys JAX or TensorFlow operator by "
        "operator. Intervals hold no difference between GPUs, hosts and runs.\n"
        f"  - BERT-base as each library has it, {_fastest(short, 8)}\n  - The suite's own BERT-base, "
        f"attention fused in both, {_fastest(alike, 64)}\n  - A token of the Llama, {_fastest(llama, 1)} A second pair "
        f"of runs: {again.sentence[0].lower()}{again.sentence[1:]}"
    )


def _fastest(ranking: Verdict, batch: int) -> str:
    said = next(fastest.sentence for shape, fastest in ranking.fastest.items() if shape.batch == batch)
    return f"on {letters(ranking.setting.points)}: {said[0].lower()}{said[1:]}"


def _tensorflow() -> str:
    alike = {"implementation": "library", "batch_size": 8}
    graph, compiled = (one(SHORT[2], mode=mode, **alike) for mode in ("function", "function-xla"))
    return (
        "- **In TensorFlow ask for XLA**, `tf.function(model, jit_compile=True)`: BERT-base at batch 8, 128 tokens "
        f"takes {ms(compiled)} ms a call, with `tf.function(model)` alone {ms(graph)}."
    )


def _losses() -> str:
    lstm = one(MEAN, workload="lstm", mode=DEFAULT)
    (resnet,) = points(findings.STRICT, workload="resnet50", mode=DEFAULT, batch_size=16)
    losses = (
        f"an LSTM (`torch.lstm`) at a batch of 8, {multiple(gain(lstm))} ([other batches]"
        "(results/h200/README.md#an-lstm)); ResNet-50 in strict float32 at a batch of 16, "
        f"{multiple(gain(resnet))} ([the layout that it chooses](docs/experiments.md#vision-docs))"
    )
    return f"- **Compiling by default can lose.** Shares of eager mode's speed: {losses}."


def _precision() -> str:
    passes = {name: findings.tf32_gains(folder) for name, folder in findings.KERAS.items()}
    gains = "; ".join(
        f"in {name} TF32 alone brings {multiple(alone)}, compiling on top of it {multiple(compiled)}"
        for name, (alone, compiled, _) in passes.items()
    )
    hosts = letters(point for *_, measured in passes.values() for point in measured)
    return (
        "- **TF32's gain is not the compiler's.** With "
        f"BERT-base, on {hosts}, {gains} ([the table](docs/experiments.md#keras-io))."
    )


def _first_call() -> str:
    small, trained = (
        [point for point in points(folder, compile_cache="cold") if point.record.mode in MODES and _not_lstm(point)]
        for folder in (MEAN, MEAN_TRAINING)
    )
    lstm = [point for point in points(MEAN, workload="lstm") if point.record.mode in MODES]
    unrolled = [point for folder in findings.UNROLLED for point in points(folder)]
    return (
        f"- **The first call compiles**, which takes {_seconds(small)} in inference of seven models at batch 8, "
        f"{_seconds(lstm)} of an LSTM; {_seconds(trained)} in training, {_seconds(unrolled)} of the LSTM, on two cores."
        " The report says after how many calls that has paid for itself."
    )


def _not_lstm(point: Point) -> bool:
    return point.record.workload != "lstm"


def _seconds(measured: list[Point]) -> str:
    return range_of((seconds for point in measured if (seconds := facts.first_s(point)) is not None), " s")


def _processors() -> str:
    bert_base, mlp = (_torch_on_two_cores(workload) for workload in ("bert-base", "mlp"))
    frozen = one(findings.OWN / "timm-resnet50", mode=findings.CONSTANT)
    return (
        f"- **On CPU cores compiling brings less, or loses**: in torch at batch 1 BERT-base comes to "
        f"{wording.spread(bert_base)} on two cores, an MLP to {wording.spread(mlp)}; with constant weights "
        f'(`options={{"freezing": True}}`) timm\'s ResNet-50 comes to {multiple(gain(frozen))} on four.'
    )


def _torch_on_two_cores(workload: str) -> list[Interval]:
    return [gain(point) for point in points(TWO_CORES, framework="torch", workload=workload, mode=MODES[0])]
