"""What was found, as tables of committed records and rankings of frameworks: the chapters of `docs/findings.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from analysis import facts
from analysis.modes import labels
from analysis.points import Point
from analysis.significance import ratio_of_latencies
from experiments.geometric_mean import geometric_mean
from measurement.statistics import Interval
from publish import picture
from publish.evidence import (
    CPU,
    EXPERIMENTS,
    H200,
    fits,
    gain,
    letters,
    material,
    ms,
    one,
    place,
    unsure,
    verdict,
    versions,
)
from reports import numbers
from reports.numbers import estimate, ratio, text_of
from reports.verdict import Fastest, Verdict, wording

DEFAULT, REPLAYED, CONSTANT = "inductor", "inductor-reduce-overhead", "inductor-freezing"
# All three frameworks on one H200 for each length; torch's own figures are of more hosts.
SHORT = tuple(H200 / f"{name}-h-short" for name in ("torch-2.13", "jax", "tensorflow"))
LONG = tuple(H200 / f"{name}-c-long" for name in ("torch-2.13", "jax", "tensorflow"))
TORCH = SHORT[0], H200 / "torch-2.13-d-long", H200 / "torch-2.13-d-short", H200 / "torch-2.13-c-short", LONG[0]
FUSED = "mask=none;attention=fused"
GPT2 = H200 / "gpt2-training"
# Torch and JAX on the two GPUs of one host, and at batch 1 a second time.
DECODING = tuple(H200 / name for name in ("ladder-i-torch-1b", "decode-i-torch-1b", "decode-i-jax-1b"))
DECODING_AGAIN = tuple(EXPERIMENTS / f"decode-claims-h200/{name}" for name in ("gpu-graphs", "gpu-jax"))
SUMMED, TUNED = H200 / "decode-n-jax-7b", H200 / "decode-e-torch-1b-tuned"
MEAN, MEAN_TRAINING = (EXPERIMENTS / f"geometric-mean-h200/gpu-{name}" for name in ("inference", "training"))
RESNET, RESNET_TRAINING = H200 / "vision-h-torch-resnet", EXPERIMENTS / "cnn-training-h200/gpu-resnet"
STRICT, TF32 = (EXPERIMENTS / f"vision-docs-h200/{name}" for name in ("gpu", "gpu-tf32"))
KERAS = {"prediction": EXPERIMENTS / "keras-io-q-h200/gpu-predict", "training": EXPERIMENTS / "keras-io-q-h200/gpu-fit"}
UNROLLED = tuple(H200 / f"lstm-p-torch-training{form}" for form in ("", "-replayed"))
TWO_CORES, OWN = CPU / "two-cores", CPU / "own-models"
FROZEN = tuple(OWN / name for name in ("timm-resnet50", "timm-vit", "lstm-tagger", "distilbert"))
FIGURES = "ms (95 %) · × eager (95 %)"
MASKS = (
    "Compare milliseconds, not speedups. These are the libraries' models: TensorFlow's and JAX's add a mask of ones "
    "and write attention out, torch's has no mask and the fused operator."
)
PUBLISHED = (
    "PyTorch's authors published 2.27× for inference and 1.41× for training (ASPLOS 2024), of over 180 models on an "
    "A100: inference by max-autotune with frozen weights in CUDA graphs, training without the optimizer, which is "
    "counted here."
)
MODES = ("eager", DEFAULT, REPLAYED)
TELLING = ("layout=", "product=")  # parameters that a row is named by

Row = tuple[str, list[Point], Path]  # a title, the points of all modes, their folder


def text() -> str:
    """Return all findings, a chapter a table or two."""
    return "\n".join(line for title, body in chapters().items() for line in ("", f"## {title}", "", *body)) + "\n"


def chapters() -> dict[str, list[str]]:
    """Return the lines of every chapter."""
    bert, plain = rows(*TORCH, implementation="library", dtype="bf16"), {"workload": "resnet50"}
    bert.sort(key=lambda row: (row[1][0].record.seq_len or 0, row[1][0].record.batch_size or 0))
    return {
        "BERT-base": [
            *table(f"torch, {FIGURES}", (*MODES, "cuda-graph"), bert),
            "",
            *table(f"TensorFlow, {FIGURES}", ("eager", "function", "function-xla"), rows(SHORT[2], LONG[2])),
            "",
            *(f"- {line}" for line in rankings()),
        ],
        "Training": [
            *table(
                f"torch, {FIGURES}",
                MODES,
                [*rows(GPT2, RESNET_TRAINING), *with_mean(rows(MEAN_TRAINING))],
            ),
            "",
            PUBLISHED,
        ],
        "Decoding": [
            *table(f"torch, a token of each text, {FIGURES}", MODES, rows(*DECODING[:2])),
            "",
            *table("JAX, a token, ms (95 %)", ("jit",), rows(SUMMED)),
            "",
            f"- On different GPUs of {ranked(verdict(material(*DECODING), 'plain'), *DECODING)}",
            f"- A second pair of runs, of {place(decoding_again()[0].setting.points, *DECODING_AGAIN)}: "
            + decoding_again()[1].sentence,
        ],
        "Other models' inference": table(
            f"torch, {FIGURES}",
            MODES,
            [*with_mean(rows(MEAN)), *rows(RESNET), *rows(STRICT, **plain), *rows(TF32, **plain)],
        ),
        "TF32 beside compiling": tf32(),
        "The first call": table(
            "torch, seconds with empty caches",
            (DEFAULT, REPLAYED, "inductor-whole-iteration", "inductor-max-autotune"),
            rows(MEAN, MEAN_TRAINING, *UNROLLED, RESNET_TRAINING, TUNED, compile_cache="cold"),
            first_call,
        ),
        "Processors": [
            *two_cores(),
            "",
            *table(f"torch, {FIGURES}", ("eager", DEFAULT, CONSTANT), rows(*FROZEN)),
        ],
        "How to read these figures": [caption()],
    }


def rows(*folders: Path, **columns: object) -> list[Row]:
    """Return a row for each model and shape of each folder, with the points whose columns have these values."""
    groups: dict[tuple[str, Path], list[Point]] = {}
    for folder in folders:
        for point in material(folder).points.all:
            if point.record.framework != "numpy" and fits(point, columns):
                groups.setdefault((title(point), folder), []).append(point)
    return [(name, measured, folder) for (name, folder), measured in groups.items()]


def title(point: Point) -> str:
    """Return the model, its shape, and what else tells it from its neighbours: `resnet50, batch 64, nhwc`."""
    record = point.record
    telling = [part.partition("=")[2] for part in record.other_parameters if part.startswith(TELLING)]
    dtype = [str(record.dtype)] if record.dtype != "bf16" and record.implementation != "own" else []
    model = record.workload + (" library" if record.implementation == "library" else "")
    sizes = [f"batch {record.batch_size}", *([f"{record.seq_len} tokens"] if record.seq_len else [])]
    return ", ".join([model, *sizes, *telling, *dtype, *(["training"] if record.pass_name == "training" else [])])


def with_mean(of_models: list[Row]) -> list[Row]:
    """Return the rows with one of their geometric mean below, whose points are those of all."""
    measured = [point for _, of_model, _ in of_models for point in of_model]
    return [*of_models, ("**geometric mean**", measured, of_models[0][2])]


def figure(point: Point) -> str:
    """Return `0.564 (0.552 to 0.576) · 7.07× (6.58 to 7.59)~`; `~` where the profile promises more certainty."""
    time = ms(point) + ("~" if point.record.is_noisy("latency") else "")
    if point.eager or point.speedup is None:
        return time
    return f"{time} · {estimate(point.speedup, '×', ratio)}" + ("~" if point.record.is_noisy("ratio") else "")


def first_call(point: Point) -> str:
    """Return the seconds of the first call; empty where they are not known."""
    seconds = facts.first_s(point)
    return "" if seconds is None else text_of(seconds)


def table(head: str, modes: Sequence[str], of_table: list[Row], cell: Callable[[Point], str] = figure) -> list[str]:
    """Return a table with a column a mode; cells without a figure are empty, excluded ones say why."""
    lines = [f"| {head} | where | {' | '.join(modes)} |", f"| --- | --- |{' --- |' * len(modes)}"]
    for name, measured, folder in of_table:
        by_mode = {mode: [point for point in measured if point.record.mode == mode] for mode in modes}
        if not (counting := [point for mode in modes for point in by_mode[mode] if not point.excluded]):
            continue
        unlike = "" if all(point.record.parity_reference == "numpy" for point in counting) else " †"
        if any(cells := [_cell(by_mode[mode], cell) for mode in modes]):
            known = "" if versions(counting) in usual_versions() else f", {versions(counting)}"
            lines.append(f"| {name}{unlike} | {place(counting, folder)}{known} | {' | '.join(cells)} |")
    return lines


def _cell(found: list[Point], cell: Callable[[Point], str]) -> str:
    counting = [point for point in found if not point.excluded]
    if len(counting) > 1:
        gains = [point.speedup for point in counting if point.speedup]
        return estimate(geometric_mean(gains), "×", ratio) if gains else ""
    return cell(counting[0]) if counting else f"`{found[0].excluded}`" if found else ""


def span(measured: list[Point]) -> str:
    """Return the range that holds the intervals of all these speedups: `3.63 to 8.66×`."""
    whole = wording.hull([point.speedup for point in measured if point.speedup])
    return f"{numbers.span(whole.low, whole.high, ratio)}×"


def bert_verdicts() -> tuple[Verdict, Verdict, Verdict]:
    """Return the verdicts on short and long texts with the libraries' models, and on long ones with the suite's own."""
    short, long = (verdict(material(*folders), "library") for folders in (SHORT, LONG))
    return short, long, verdict(material(*LONG), "plain", FUSED)


@cache
def usual_versions() -> str:
    """Return the versions of BERT-base's rankings, which rows of other versions name."""
    return versions([point for one in bert_verdicts() for point in one.setting.points])


def rankings() -> list[str]:
    """Return sentences on who is fastest with BERT-base where all three frameworks ran."""
    short, long, alike = bert_verdicts()
    return [
        f"{MASKS} On {ranked(short, *SHORT)}",
        f"On {ranked(long, *LONG)}",
        f"With the suite's own model and fused attention in both, on {ranked(alike, *LONG[:2])}",
    ]


def ranked(of_setting: Verdict, *folders: Path) -> str:
    """Return where a setting was measured, and who is fastest at each of its shapes."""
    sentences = " ".join(fastest.sentence for fastest in of_setting.fastest.values())
    return f"{place(of_setting.setting.points, *folders)}: {sentences}"


def decoding_again() -> tuple[Verdict, Fastest]:
    """Return the verdict on the second pair of decoding runs, and its ranking at batch 1."""
    return next(
        (one, fastest)
        for one in material(*DECODING_AGAIN).verdicts
        if (one.setting.points[0].record.workload, one.setting.points[0].record.pass_name) == ("llama-1b", "decode")
        for shape, fastest in one.fastest.items()
        if shape.batch == 1
    )


def tf32_gains(folder: Path) -> tuple[Interval, Interval, list[Point]]:
    """Return what TF32 alone brings BERT-base in a folder, what compiling brings on top of it, and the points."""
    exact, rounded = (one(folder, framework="torch", mode="eager", dtype=dtype) for dtype in ("fp32", "tf32"))
    compiled = one(folder, framework="torch", dtype="tf32", mode=REPLAYED)
    alone = ratio_of_latencies(exact.record, rounded.record)
    if alone is None:
        raise ValueError(f"{folder} has no intervals of eager mode.")
    return alone, gain(compiled), [exact, rounded, compiled]


def tf32() -> list[str]:
    """Return a table of eager mode in strict float32 and in TF32, and of compiling on top."""
    lines = ["| BERT-base, torch, ms (95 %) | where | fp32 | TF32 | TF32 alone | compiled on top |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name, folder in KERAS.items():
        alone, compiled, measured = tf32_gains(folder)
        gains = [estimate(each, "×", ratio) for each in (alone, compiled)]
        cells = [f"{place(measured, folder)}, {versions(measured)}", *map(ms, measured[:2]), *gains]
        lines.append(f"| {name}, as [keras.io's table](experiments.md#keras-io) | {' | '.join(cells)} |")
    return [*lines, "", "Strict float32 and TF32 are runs of their own, mostly of a GPU at its power cap."]


def two_cores() -> list[str]:
    """Return who is fastest with BERT-base on two cores, and what torch's and Paddle's users should take."""
    by_workload = {one.setting.points[0].record.workload: one for one in material(TWO_CORES).verdicts}
    lines = [f"- On two virtual cores of an AMD EPYC, {ranked(by_workload['bert-base'], TWO_CORES)}"]
    for workload, of_workload in by_workload.items():
        advice = [one for one in of_workload.advice if one.framework in ("torch", "paddle")]
        lines += [f"- {workload}: {wording.sentence(one)} {wording.cautions(one)}".rstrip() for one in advice]
    return lines


def caption() -> str:
    """Return how the tables are to be read."""
    measured = [point for one in bert_verdicts() for point in one.setting.points]
    return (
        "A letter is a [host](../results/h200/README.md#the-machines), its link leads to the records. Medians of "
        "milliseconds a call, and times as fast as eager from samples taken in turn in each process, so not the "
        "quotient of two medians. `~`: the interval is wider than the run's settings promise; an interval of two "
        "processes holds for these two alone. †: no reference of NumPy at this size, outputs are compared with the "
        "framework's own eager mode. The name of a flag stands where a cell is excluded. A mode *pays for itself* "
        "after so many calls that they, its first one included, take less time than eager mode's. First calls are of "
        "the processes that compiled; later ones of a run load that from the cache. Constant weights are "
        f"`{labels()['torch', CONSTANT].call}`. The picture shows the row of {picture.SHAPE.text} on "
        f"{letters(picture.drawn(material(*SHORT)))}, and the other frameworks there. Versions unless said: "
        f"{usual_versions()}. In BERT-base's rankings {unsure(measured)}."
    )
