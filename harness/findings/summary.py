"""The README's findings: one table and a few sentences; `docs/findings.md` has all of them, with hosts and cautions."""

from __future__ import annotations

from pathlib import Path

from experiments.geometric_mean import geometric_mean
from harness.findings import bert, cpu, models
from harness.findings.bert import span
from harness.findings.evidence import EXPERIMENTS, H200, letters, material, ms, one, points, verdict
from measurement.statistics import Interval
from reports import facts
from reports.content import ratio, text_of
from reports.points import Point
from reports.verdict import Verdict, wording

MODES = "inductor", "inductor-reduce-overhead"
CALLS = "`torch.compile(model)`", '`torch.compile(model, mode="reduce-overhead")`'
KERAS = EXPERIMENTS / "keras-io-q-h200"
KERAS_SWEEPS = {"gpu-predict": "prediction", "gpu-fit": "training"}
TORCHVISION = H200 / "vision-q-torchvision"
H200_PAGE, RESNET = "results/h200/README.md", "docs/experiments.md#vision-docs"
VIT = "torchvisions-vit-b16-whose-compiled-form-loses"
SIZES = {
    "BERT-base, 1 or 8 texts of 128 tokens": ((1, 128), (8, 128)),
    "BERT-base, 4 texts of 512 tokens": ((4, 512),),
    "BERT-base, 64 texts of 512 tokens": ((64, 512),),
}


def table() -> list[str]:
    """A row for each kind of work: eager mode's time, and what compiling brings, as the ends of all its intervals."""
    return [
        f"| in torch, in bf16 | eager mode takes | {' | '.join(CALLS)} | [H200](results/h200/README.md#the-machines) |",
        "| --- | --- | --- | --- | --- |",
        *(_bert(title, shapes) for title, shapes in SIZES.items()),
        _row("A token of 1, 8 or 64 texts from a Llama of 1.2B", points(*models.DECODING[:2])),
        _row("ResNet-50, 64 images, channels last", _channels_last()),
        _row("An LSTM, 8 texts of 128 tokens", points(models.AVERAGE, workload="lstm")),
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
    """What the table does not say: frameworks, losses, precision, the first call, processors."""
    return [_frameworks(), _tensorflow(), _losses(), _precision(), _first_call(), _processors()]


def _frameworks() -> str:
    short, long = (verdict(material(*folders), "library") for folders in (bert.SHORT, bert.LONG))
    llama = verdict(material(*models.DECODING), "plain")
    return (
        "- **Between frameworks compare milliseconds, not speedups**: nobody deploys JAX or TensorFlow operator by "
        f"operator. BERT-base as each library has it: {_fastest(short, 8)[:-1]}; {_fastest(long, 64)} A token of the "
        f"Llama: {_fastest(llama, 1)}"
    )


def _fastest(told: Verdict, batch: int) -> str:
    said = next(fastest.sentence for shape, fastest in told.fastest.items() if shape.batch == batch)
    return f"on {letters(told.setting.points)} {said[0].lower()}{said[1:]}"


def _tensorflow() -> str:
    alike = {"implementation": "library", "batch_size": 8}
    graph, compiled = (one(bert.SHORT[2], mode=mode, **alike) for mode in ("function", "function-xla"))
    return (
        "- **In TensorFlow ask for XLA**, `tf.function(model, jit_compile=True)`: BERT-base at batch 8, 128 tokens "
        f"takes {ms(compiled)} ms a call, with `tf.function(model)` alone {ms(graph)}."
    )


def _losses() -> str:
    lstm = one(models.SMALL_TRAINING, workload="lstm", mode=MODES[0])
    vit, resnet = one(TORCHVISION, mode=MODES[0]), models.pair(models.STRICT, "nchw", batch_size=16)[1]
    gains = [wording.spread([point.speedup]) for point in (lstm, vit, resnet)]
    return (
        f"- **Compiling can lose.** By default an LSTM's training comes to {gains[0]} of eager mode's speed "
        f"([it takes cuDNN's operator apart]({H200_PAGE}#what-makes-inductor-lose)); torchvision's ViT-B/16, in "
        f"batches of 64, to {gains[1]} ([eager mode alone has a fused attention]({H200_PAGE}#{VIT})); ResNet-50 in "
        f"strict float32, in batches of 16, to {gains[2]} ([the layout that the compiler chooses]({RESNET}))."
    )


def _precision() -> str:
    parts = [f"in {doing} {_tf32(KERAS / sweep)}" for sweep, doing in KERAS_SWEEPS.items()]
    return (
        "- **TF32 is not compiling.** A published gain that switches both on at once may be TF32's: with BERT-base, in "
        f"the shapes of keras.io's table, TF32 alone brings {'; '.join(parts)} "
        "([the table](docs/experiments.md#keras-io))."
    )


def _tf32(folder: Path) -> str:
    """What TF32 brings eager mode, two runs of one machine with their intervals' ends at their worst, and what then."""
    exact, rounded = (one(folder, framework="torch", mode="eager", dtype=dtype) for dtype in ("fp32", "tf32"))
    compiled = one(folder, framework="torch", dtype="tf32", mode=MODES[1])
    before, after = exact.latency, rounded.latency
    times = exact["latency_ms_median"] / rounded["latency_ms_median"]
    alone = Interval(times, before.low / after.high, before.high / after.low)
    return f"{wording.spread([alone])}, compiling on top of it {wording.spread([compiled.speedup])}"


def _first_call() -> str:
    small = [point for point in points(models.AVERAGE, compile_cache="cold") if point["mode"] in MODES]
    unrolled = [point for folder in models.UNROLLED for point in points(folder)]
    others = [_first_s(point) for point in small if point["workload"] != "lstm"]
    lstm, trained = (max(map(_first_s, each)) for each in (_of(small, "lstm"), unrolled))
    return (
        f"- **The first call compiles**: {text_of(min(others))} to {text_of(max(others))} s in inference of these "
        f"models, {text_of(lstm)} s of the LSTM, and {text_of(trained)} s of its training. The report says after how "
        "many calls that has paid for itself."
    )


def _of(measured: list[Point], workload: str) -> list[Point]:
    return [point for point in measured if point["workload"] == workload]


def _first_s(point: Point) -> float:
    return facts.first_s(point)


def _processors() -> str:
    told = next(v for v in material(cpu.TWO_CORES).verdicts if v.setting.points[0]["workload"] == "bert-base")
    torch = next(advice for advice in told.advice if advice.framework == "torch")
    frozen = one(cpu.OWN / "timm-resnet50", mode=cpu.CONSTANT)
    return (
        f"- **On CPU cores compiling brings less**: in torch at batch 1 BERT-base gains "
        f"{wording.spread(torch.speedups)} on two cores, and timm's ResNet-50 {wording.spread([frozen.speedup])} on "
        'four, with constant weights (`options={"freezing": True}`).'
    )
