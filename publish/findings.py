"""What was found, as tables of committed records: the chapters of `docs/findings.md`, and rows of the README."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from analysis import facts
from analysis.significance import geometric_mean, ratio_of_latencies
from measurement.statistics import Interval
from publish.evidence import CPU, EXPERIMENTS, H200, by_process, links, measured, pooled, precise
from reports.numbers import text_of

DEFAULT, REPLAYED, CONSTANT = "inductor", "inductor-reduce-overhead", "inductor-freezing"
MODES = DEFAULT, REPLAYED
CALLS = "`torch.compile(m)`", '`mode="reduce-overhead"`'
# All three frameworks on one H200 for each length.
SHORT = tuple(H200 / f"{name}-h-short" for name in ("torch-2.13", "jax", "tensorflow"))
LONG = tuple(H200 / f"{name}-c-long" for name in ("torch-2.13", "jax", "tensorflow"))
TORCH = SHORT[0], H200 / "torch-2.13-d-long", H200 / "torch-2.13-d-short", H200 / "torch-2.13-c-short", LONG[0]
DECODING = tuple(H200 / name for name in ("ladder-i-torch-1b", "decode-i-torch-1b"))
JAX_DECODING = H200 / "decode-i-jax-1b"
MEAN, MEAN_TRAINING = (EXPERIMENTS / f"geometric-mean-h200/gpu-{name}" for name in ("inference", "training"))
GPT2, RESNET, RESNET_TRAINING = (
    H200 / "gpt2-training",
    H200 / "vision-h-torch-resnet",
    EXPERIMENTS / "cnn-training-h200",
)
KERAS = {"prediction": EXPERIMENTS / "keras-io-q-h200/gpu-predict", "training": EXPERIMENTS / "keras-io-q-h200/gpu-fit"}
UNROLLED = H200 / "lstm-p-torch-training"
TWO_CORES, OWN = CPU / "two-cores", CPU / "own-models"
EIGHT = ("bert-base", "gpt2-124m", "gpt-10m", "gpt-tiny", "lstm", "mlp", "resnet50", "vit-b16")
COLD: dict[str, Any] = {"compile_cache": "cold"}
EXCLUDED, MISSING = "excluded", ""


class Row(NamedTuple):
    """A kind of work: its title, the runs that measured it, and the values of their records' columns."""

    title: str
    folders: tuple[Path, ...]
    columns: dict[str, Any]

    def columns_of(self, mode: str, **columns: object) -> dict[str, Any]:
        """Return the columns of one mode's records."""
        return {**self.columns, "mode": mode, **columns}


def bert(batch: int, tokens: int) -> dict[str, Any]:
    """Return the columns of the library's BERT-base at a shape."""
    return {"implementation": "library", "dtype": "bf16", "batch_size": batch, "seq_len": tokens}


BERT = [
    Row(f"BERT-base {batch}×{tokens}", TORCH, bert(batch, tokens))
    for batch, tokens in ((1, 128), (8, 128), (4, 512), (64, 512))
]
LAYOUTS = {"first": "image=224;layout=nchw", "last": "image=224;layout=nhwc"}
IMAGES = [
    Row(f"ResNet-50 batch 64, channels {name}", (RESNET,), {"batch_size": 64, "parameters": layout})
    for name, layout in LAYOUTS.items()
]
TOKENS = [
    Row(f"Llama 1.2B decoding, batch {batch}", DECODING, {"batch_size": batch, "workload": "llama-1b"})
    for batch in (1, 64)
]
TRAINING = [
    Row("GPT-2 124M training, 32×1,024", (GPT2,), {}),
    *(
        Row(
            f"ResNet-50 training, batch 256, channels {name}",
            (RESNET_TRAINING / "gpu-resnet",),
            {"parameters": f"{layout};accumulate=1", "dtype": "bf16"},
        )
        for name, layout in LAYOUTS.items()
    ),
]


def text() -> str:
    """Return all findings, a chapter a table."""
    return "\n".join(line for title, body in chapters().items() for line in ("", f"## {title}", "", *body)) + "\n"


def chapters() -> dict[str, list[str]]:
    """Return the lines of every chapter."""
    return {
        "PyTorch on a GPU": gains("bf16", (*MODES, "cuda-graph"), [*BERT, *TOKENS, *IMAGES, *TRAINING]),
        "Eight models at batch 8": eight(),
        "Frameworks in milliseconds": frameworks(),
        "TF32": tf32(),
        "On a CPU": [*two_cores(), "", *gains("CPU, fp32, batch 1", (DEFAULT, CONSTANT), own_models())],
    }


def gains(head: str, modes: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return a table of eager mode's latency and the speedup of each mode, over all runs of a row."""
    calls = [{DEFAULT: CALLS[0], REPLAYED: CALLS[1]}.get(mode, f"`{mode}`") for mode in modes]
    lines = table(f"{head}: speedup over eager", "eager, ms", *calls, "runs")
    for row in rows:
        cells = [latency(row, "eager"), *(speedup(row, mode) for mode in modes)]
        lines.append(line(row.title, *cells, links(measured(*row.folders, **row.columns_of("eager")), row.folders)))
    return lines


def table(*head: str) -> list[str]:
    """Return the first two lines of a table."""
    return [line(*head), line(*("---" for _ in head))]


def line(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def speedup(row: Row, mode: str) -> str:
    """Return a mode's speedup over all runs: `5.27× ±8 %`; `excluded`, or empty where nothing was measured."""
    return _cell(row, mode, lambda point: point.speedup if point.record.headline else None, "×")


def latency(row: Row, mode: str, **columns: Any) -> str:
    """Return a mode's milliseconds over all runs: `0.768 ±1 %`."""
    return _cell(row, mode, lambda point: point.latency, "", **columns)


def _cell(row: Row, mode: str, figure: Callable, unit: str, **columns: Any) -> str:
    columns = row.columns_of(mode, **columns)
    if interval := pooled(measured(*row.folders, **columns), figure):
        return precise(interval, unit)
    return EXCLUDED if measured(*row.folders, excluded=True, **columns) else MISSING


def mean(folder: Path, mode: str) -> tuple[Interval, int]:
    """Return the geometric mean of a mode's speedups, and of how many workloads."""
    parts = [point.record for point in measured(folder, mode=mode) if point.speedup]
    return geometric_mean(parts, partial(by_process, folder)), len(parts)


def eight() -> list[str]:
    """Return a table of eight workloads' speedups at batch 8 in inference and training, and of their first calls."""
    kinds = ("inference", "training")
    head = (*(f"{kind}: {call}" for kind in kinds for call in CALLS), *(f"first call, {kind}, s" for kind in kinds))
    lines = table("bf16, speedup over eager", *head)
    for workload in EIGHT:
        rows = [Row(workload, (folder,), {"workload": workload}) for folder in (MEAN, MEAN_TRAINING)]
        gains = [speedup(row, mode) for row in rows for mode in MODES]
        lines.append(line(workload, *gains, *map(first_call, rows)))
    means = [precise(mean(folder, mode)[0], "×") for folder in (MEAN, MEAN_TRAINING) for mode in MODES]
    return [
        *lines,
        line("**geometric mean**", *means, "", ""),
        "",
        f"All models are `IMPL=plain`, also BERT-base. First calls are those of {CALLS[0]} with empty caches. "
        f"Runs: {links([], (MEAN, MEAN_TRAINING, UNROLLED))}.",
    ]


def first_call(row: Row) -> str:
    """Return the seconds of the default graph's first call with empty caches; an LSTM's training has its own run."""
    unrolled = row.title == "lstm" and row.folders == (MEAN_TRAINING,)
    points = measured(*((UNROLLED,) if unrolled else row.folders), **row.columns_of(DEFAULT, **COLD))
    return text_of(next((seconds for point in points if (seconds := facts.first_s(point)) is not None), None))


def frameworks() -> list[str]:
    """Return a table of the frameworks' best graphs in milliseconds, on one host a row."""
    modes = (REPLAYED, "jit", "function-xla", "function")
    names = ("torch `reduce-overhead`", "`jax.jit`", "`tf.function`, XLA", "`tf.function`")
    lines = table("bf16, ms per call", *names)
    short = [row._replace(folders=SHORT) for row in BERT if row.columns["seq_len"] == 128]
    for row in (*short, *(row._replace(folders=(*DECODING, JAX_DECODING)) for row in TOKENS)):
        lines.append(line(row.title, *(latency(row, mode) for mode in modes)))
    return [*lines, "", f"Runs: {links([], (*SHORT, *DECODING, JAX_DECODING))}."]


def tf32_gains(folder: Path) -> tuple[Interval, Interval]:
    """Return what TF32 alone brings BERT-base in a folder, and what compiling brings on top of it."""
    row = Row("", (folder,), {"framework": "torch"})
    exact, rounded = (measured(folder, **row.columns_of("eager", dtype=dtype)) for dtype in ("fp32", "tf32"))
    alone = ratio_of_latencies(exact[0].record, rounded[0].record)
    compiled = pooled(measured(folder, **row.columns_of(REPLAYED, dtype="tf32")), lambda point: point.speedup)
    if alone is None or compiled is None:
        raise ValueError(f"{folder} has no speedup.")
    return alone, compiled


def tf32() -> list[str]:
    """Return a table of eager mode in TF32 over strict float32, and of compiling on top."""
    lines = table("BERT-base, torch 2.11", "TF32 alone", "`reduce-overhead` on top", "runs")
    for name, folder in KERAS.items():
        lines.append(line(name, *(precise(gain, "×") for gain in tf32_gains(folder)), links([], (folder,))))
    return lines


def two_cores() -> list[str]:
    """Return a table of BERT-base and an MLP on two cores in every framework."""
    graphs = {"torch": DEFAULT, "jax": "jit", "tensorflow": "function-xla", "paddle": "to_static"}
    lines = table(
        "two cores, fp32, batch 1: speedup over eager", *(f"{name} `{mode}`" for name, mode in graphs.items())
    )
    for workload in ("bert-base", "mlp"):
        rows = [Row(workload, (TWO_CORES,), {"workload": workload, "framework": name}) for name in graphs]
        lines.append(line(workload, *(speedup(row, mode) for row, mode in zip(rows, graphs.values(), strict=True))))
    return [*lines, "", f"Run: {links([], (TWO_CORES,))}."]


def own_models() -> list[Row]:
    """Return the rows of four models outside the suite."""
    names = {"timm-resnet50": "timm ResNet-50", "timm-vit": "timm ViT-B/16", "lstm-tagger": "LSTM tagger"}
    return [
        Row(title, (OWN / name,), {"batch_size": 1}) for name, title in {**names, "distilbert": "DistilBERT"}.items()
    ]
