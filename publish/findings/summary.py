"""The README's findings: one table and a few sentences; `docs/findings.md` has all of them, with hosts and cautions."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.geometric_mean import geometric_mean
from measurement.statistics import Interval
from publish.findings import bert, cpu, losses, models
from publish.findings.bert import span
from publish.findings.evidence import H200, letters, material, ms, one, points, verdict
from publish.picture import versions
from reports import facts
from reports.content import ratio, text_of
from reports.points import Point
from reports.verdict import Verdict, wording

MODES = tuple(models.AVERAGED)
CALLS = "`torch.compile(model)`: inductor", '`mode="reduce-overhead"`: inductor-reduce-overhead'
HOSTS = "results/h200/README.md#the-machines"
SIZES = {
    "BERT-base, 1 or 8 texts of 128 tokens": ((1, 128), (8, 128)),
    "BERT-base, 4 texts of 512 tokens": ((4, 512),),
    "BERT-base, 64 texts of 512 tokens": ((64, 512),),
}


def table() -> list[str]:
    """A row for each kind of work: eager mode's time, and what compiling brings, as the ends of all its intervals."""
    return [
        f"| torch, bf16 | eager mode takes (medians) | {' | '.join(CALLS)} | [host]({HOSTS}) |",
        "| --- | --- | --- | --- | --- |",
        *(_bert(title, shapes) for title, shapes in SIZES.items()),
        _row("A token of 1, 8 or 64 texts from a Llama of 1.2B", points(*models.DECODING[:2])),
        _row("ResNet-50, 64 images, channels last", _channels_last()),
        _row("An LSTM (`torch.lstm`), 8 texts of 128 tokens", points(models.AVERAGE, workload="lstm")),
        _row("Training a GPT-2 of 124M, 32 texts of 1024 tokens", points(H200 / "gpt2-training")),
        _mean("Inference of {count} models at batch 8, geometric mean", models.AVERAGE),
        _mean("Training of {count} models at batch 8, geometric mean", models.SMALL_TRAINING),
    ]


def _bert(title: str, shapes: tuple) -> str:
    return _row(title, [point for point in bert.figures() if (point["batch_size"], point["seq_len"]) in shapes])


def _channels_last() -> list[Point]:
    alike = points(models.RESNET, workload="resnet50", batch_size=64)
    return [point for point in alike if "layout=nhwc" in point["parameters"]]


def _row(title: str, measured: list[Point]) -> str:
    by_mode = {mode: [point for point in measured if point["mode"] == mode] for mode in ("eager", *MODES)}
    cells = [span(by_mode[mode]) if by_mode[mode] else "not measured" for mode in MODES]
    return f"| {title} | {wording.milliseconds(by_mode['eager'])} | {' | '.join(cells)} | {letters(measured)} |"


def _mean(title: str, folder: Path) -> str:
    means = [geometric_mean(point.speedup for point in points(folder, mode=mode)) for mode in MODES]
    ends = [f"{ratio(mean.low)} to {ratio(mean.high)}×" for mean in means]
    title = title.format(count=len(points(folder, mode=MODES[0])))
    return f"| {title} | | {' | '.join(ends)} | {letters(points(folder))} |"


def sentences() -> list[str]:
    """What the table does not say: versions, frameworks, losses, precision, the first call, processors."""
    return [_versions(), _frameworks(), _tensorflow(), _losses(), _precision(), _first_call(), _processors()]


def _versions() -> str:
    """Which versions the figures are of, and where they differ."""
    tables = [*bert.figures(), *points(models.RESNET, H200 / "gpt2-training", *models.DECODING[:2])]
    tables += points(models.AVERAGE, models.SMALL_TRAINING)
    others = points(*bert.SHORT[1:], models.DECODING[2])
    libraries = {
        point["framework"]: f"{json.loads(point['versions'])['transformers']} with {point['framework']}"
        for point in (*bert.figures(), *others)
        if point["implementation"] == "library"
    }
    rounded = [point for precision in losses.precisions() for point in precision.points]
    return (
        f"- **Versions**: {versions([*tables, *others])}; for TF32 {versions(rounded)}; on two CPU cores "
        f"{versions(points(cpu.TWO_CORES))}. transformers {', '.join(libraries.values())}. An `nn.LSTM` stays eager "
        "under `torch.compile` by default; the row is of `torch.lstm`."
    )


def _frameworks() -> str:
    short, alike = verdict(material(*bert.SHORT), "library"), verdict(material(*bert.LONG), "plain", bert.FUSED)
    llama, again = verdict(material(*models.DECODING), "plain"), models.decoding_again()[1]
    return (
        "- **Between frameworks compare milliseconds, not speedups**: nobody deploys JAX or TensorFlow operator by "
        "operator. Intervals hold no difference between GPUs, hosts and runs.\n"
        f"  - BERT-base as each library has it, {_fastest(short, 8)}\n  - The suite's own BERT-base, "
        f"attention fused in both, {_fastest(alike, 64)}\n  - A token of the Llama, {_fastest(llama, 1)} A second pair "
        f"of runs: {again.sentence[0].lower()}{again.sentence[1:]}"
    )


def _fastest(told: Verdict, batch: int) -> str:
    said = next(fastest.sentence for shape, fastest in told.fastest.items() if shape.batch == batch)
    return f"on {letters(told.setting.points)}: {said[0].lower()}{said[1:]}"


def _tensorflow() -> str:
    alike = {"implementation": "library", "batch_size": 8}
    graph, compiled = (one(bert.SHORT[2], mode=mode, **alike) for mode in ("function", "function-xla"))
    return (
        "- **In TensorFlow ask for XLA**, `tf.function(model, jit_compile=True)`: BERT-base at batch 8, 128 tokens "
        f"takes {ms(compiled)} ms a call, with `tf.function(model)` alone {ms(graph)}."
    )


def _losses() -> str:
    told = "; ".join(loss.short() for loss in losses.losses())
    return f"- **Compiling by default can lose.** Shares of eager mode's speed: {told}."


def _precision() -> str:
    passes = losses.precisions()
    told = "; ".join(precision.told() for precision in passes)
    hosts = letters(point for precision in passes for point in precision.points)
    return (
        "- **TF32's gain is not the compiler's.** With "
        f"BERT-base, on {hosts}, {told} ([the table](docs/experiments.md#keras-io))."
    )


def _first_call() -> str:
    small, trained = (
        [point for point in points(folder, compile_cache="cold") if point["mode"] in MODES and _not_lstm(point)]
        for folder in (models.AVERAGE, models.SMALL_TRAINING)
    )
    lstm = [point for point in points(models.AVERAGE, workload="lstm") if point["mode"] in MODES]
    unrolled = [point for folder in models.UNROLLED for point in points(folder)]
    return (
        f"- **The first call compiles**, which takes {_seconds(small)} in inference of seven models at batch 8, "
        f"{_seconds(lstm)} of an LSTM; {_seconds(trained)} in training, {_seconds(unrolled)} of the LSTM, on two cores."
        " The report says after how many calls that has paid for itself."
    )


def _not_lstm(point: Point) -> bool:
    return point["workload"] != "lstm"


def _seconds(measured: list[Point]) -> str:
    ends = [text_of(end(map(facts.first_s, measured))) for end in (min, max)]
    return f"{ends[0]} to {ends[1]} s"


def _processors() -> str:
    bert_base, mlp = (_torch_on_two_cores(workload) for workload in ("bert-base", "mlp"))
    frozen = one(cpu.OWN / "timm-resnet50", mode=cpu.CONSTANT)
    return (
        f"- **On CPU cores compiling brings less, or loses**: in torch at batch 1 BERT-base comes to "
        f"{wording.spread(bert_base)} on two cores, an MLP to {wording.spread(mlp)}; with constant weights "
        f'(`options={{"freezing": True}}`) timm\'s ResNet-50 comes to {wording.spread([frozen.speedup])} on four.'
    )


def _torch_on_two_cores(workload: str) -> list[Interval]:
    return [point.speedup for point in points(cpu.TWO_CORES, framework="torch", workload=workload, mode=MODES[0])]
