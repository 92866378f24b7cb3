"""Published figures: charts of an edition's records, for the README and `docs/findings.md`.

A chart names tables of the edition, and columns by the values of a record's columns. Each cell shows one record. Parts
that an edition lacks have no row, column or chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.points import Point, Points
from analysis.rounds import CALLS, Arm
from analysis.streams import Arm as StreamArm
from commands import start, stream
from commands.rounds import Form
from measurement.starts import WAYS
from measurement.statistics import ENOUGH_PROCESSES, Interval
from measurement.streams import COLD, STRATEGIES
from measurement.text import times
from publish import place
from records import recordfile
from records.process import ProcessRecord
from records.record import FIELDS, Record
from records.streams import StreamRecord
from reports.numbers import SLOWED, with_width
from reports.rounds import named
from reports.run_headings import versions

NOTHING = "No table of this edition has been measured."
HEAD = "model, batch × tokens"
NAMES = {
    "bert-base": "BERT-base",
    "gpt2-124m": "GPT-2 124M",
    "llama-1b": "Llama 1.2B",
    "llama-7b": "Llama 7B",
    "llama-8b": "Llama 8B",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "lstm": "LSTM",
    "mlp": "MLP",
    "opt-125m": "OPT-125M",
    "qwen3-0.6b": "Qwen3-0.6B",
    "resnet50": "ResNet-50",
    "roberta": "RoBERTa",
    "vit-b16": "ViT-B/16",
}


class Column(NamedTuple):
    """A column of a chart: its head, the figure (of `place.COLUMNS`), and the values of its records' columns."""

    head: str
    figure: str
    values: Mapping[str, object]


class Chart(NamedTuple):
    """A chart: its title, patterns of the tables' names, columns, and the titles of its rows; all without any."""

    title: str
    tables: Sequence[str]
    columns: Sequence[Column]
    titles: Sequence[str] = ()


class Row(NamedTuple):
    """A row of a chart: its name, the records by their column's head, and the tables of these."""

    title: str
    points: dict[str, Point]
    tables: set[str]


def _gain(head: str, framework: str, mode: str) -> Column:
    return Column(head, "speedup", {"framework": framework, "mode": mode})


EAGER = Column("eager, ms", "ms", {"framework": "torch", "mode": "eager"})
DEFAULT = _gain("`torch.compile(m)`", "torch", "inductor")
REPLAYED = _gain('`mode="reduce-overhead"`', "torch", "inductor-reduce-overhead")
FIRST_CALL = Column("first call of `torch.compile(m)`, s", "first call, s", DEFAULT.values)
FREEZING, CAPTURED, AOT, ONNX, OPENVINO = (
    _gain(f"`{mode}`", "torch", mode)
    for mode in ("inductor-freezing", "cuda-graph", "aot-inductor", "onnx-runtime", "openvino")
)
PADDLE = _gain("Paddle `inference` over its eager mode", "paddle", "inference")
FROZEN = ": speedup over eager mode; forms other than `torch.compile` freeze weights"
ON_GPU = (
    "gpu-bert-*short-*",
    "gpu-bert-*long-*",
    "gpu-decode-*",
    "gpu-qwen3*",
    "gpu-lstm-*",
    "gpu-vision-*",
    "gpu-gpt2-training",
)
ON_CPU = ("cpu-language", "cpu-decode", "cpu-vision")
BY_FRAMEWORK = {
    "`torch.compile(m)`": ("torch", "inductor"),
    "torch `reduce-overhead`": ("torch", "inductor-reduce-overhead"),
    "`jax.jit`": ("jax", "jit"),
    "`tf.function`, XLA": ("tensorflow", "function-xla"),
    "`tf.function`": ("tensorflow", "function"),
    "Paddle `to_static`": ("paddle", "to_static"),
}
CHARTS = (
    Chart("PyTorch: speedup over eager mode", ON_GPU, (EAGER, DEFAULT, REPLAYED, CAPTURED, FIRST_CALL)),
    Chart(
        "Frameworks: ms per call",
        ON_GPU,
        [Column(head, "ms", {"framework": name, "mode": mode}) for head, (name, mode) in BY_FRAMEWORK.items()][1:],
    ),
    Chart(
        "PyTorch: training",
        ("gpu-scaling-*",),
        (
            EAGER,
            DEFAULT,
            *(
                Column(f"{head}: of one GPU's speed", "of one rank's speed", column.values)
                for head, column in {"eager": EAGER, "compiled": DEFAULT}.items()
            ),
        ),
    ),
    Chart(f"Deployed forms{FROZEN}", ("gpu-forms-*",), (EAGER, DEFAULT, REPLAYED, AOT, ONNX)),
    Chart(
        "Energy, and eager mode's over the mode's",
        ("gpu-energy-*",),
        (
            EAGER._replace(head="eager, J per call", figure="J per call"),
            *(column._replace(figure="eager's energy over it") for column in (DEFAULT, REPLAYED)),
            Column("`jax.jit`, J per call", "J per call", {"framework": "jax", "mode": "jit"}),
        ),
    ),
    Chart(
        "TF32: ms per call",
        ("gpu-mlp-torch",),
        [
            Column(f"{head}, ms", "ms", {"framework": "torch", "mode": mode, "dtype": dtype})
            for head, mode, dtype in (
                ("eager, fp32", "eager", "fp32"),
                ("eager, TF32", "eager", "tf32"),
                ("`reduce-overhead`, TF32", "inductor-reduce-overhead", "tf32"),
            )
        ],
    ),
    Chart(
        "Frameworks on a CPU: speedup over eager mode", ON_CPU, [_gain(head, *of) for head, of in BY_FRAMEWORK.items()]
    ),
    Chart("PyTorch on a CPU: speedup over eager mode", (*ON_CPU, "cpu-models"), (EAGER, DEFAULT, FREEZING, FIRST_CALL)),
    Chart(
        f"Deployed forms on a CPU{FROZEN}",
        ("cpu-forms*",),
        (EAGER, DEFAULT, FREEZING, AOT, ONNX, OPENVINO, PADDLE),
    ),
)
# Charts of the README, of the first place that has them.
SUMMARY = (
    Chart(
        "PyTorch: speedup over eager mode",
        ON_GPU,
        (EAGER, DEFAULT, REPLAYED, FIRST_CALL),
        (
            "BERT-base, 1 × 128 tokens",
            "BERT-base (library), 8 × 128 tokens",
            "BERT-base, 64 × 512 tokens",
            "Llama 1.2B decode, batch 1",
            "Qwen3-0.6B generate, batch 1",
            "ResNet-50, batch 64",
            "LSTM, 8 × 128 tokens",
            "GPT-2 124M training, 32 × 1,024 tokens",
        ),
    ),
    Chart(
        "PyTorch on a CPU: speedup over eager mode",
        ON_CPU,
        (EAGER, DEFAULT, FREEZING, FIRST_CALL),
        ("BERT-base, 1 × 128 tokens", "ResNet-50, batch 1", "MLP, batch 1"),
    ),
)


MANY = CALLS[1:]  # calls, for which a column shows the strategy to take


class Rounds(NamedTuple):
    """A chart of processes in rounds, a column by strategy, and then the strategy to take by calls.

    It has a title, tables, a command, the arms of a cell by name, and a cell's choice for a number of calls.
    """

    title: str
    tables: Sequence[str]
    form: Form
    strategies: Iterable[str]
    arms: Callable[[Any], Mapping[str, tuple[Arm, Interval | None]]]
    choice: Callable[[Any, int], Sequence[str]]


ROUNDS = (
    Rounds(
        "Fresh processes: seconds from exec to the first correct answer",
        ("*-start*",),
        start.FORM,
        WAYS,
        lambda cell: {one.name: (one, one.first) for one in cell.strategies},
        lambda cell, calls: cell.choice(calls),
    ),
    Rounds(
        "Calls of varying lengths: seconds for all of them, with cold caches",
        ("*-stream*",),
        stream.FORM,
        STRATEGIES,
        lambda cell: {arm.name: (arm, arm.total) for arm in cell.with_caches(COLD)},
        lambda cell, calls: cell.choice(COLD, calls),
    ),
)


def places() -> list[Path]:
    """Return the folders of the edition's machines, those with a GPU first."""
    folders = (path for path in (recordfile.RESULTS / place.EDITION).glob("*/") if any(path.glob("*/")))
    return sorted(folders, key=lambda path: (not any(path.glob("gpu-*/")), path.name))


def rows(chart: Chart, folder: Path) -> list[Row]:
    """Return the rows of a chart from one folder: those with two figures of fast hosts, since fewer compare nothing.

    Raises ValueError where two records would share a cell, or two machines a row.
    """
    found: dict[str, Row] = {}
    for table in tables(chart.tables, folder):
        for point in Points(place.benches(table)).all:
            for column in chart.columns:
                if all(getattr(point.record, FIELDS[name]) == value for name, value in column.values.items()):
                    row = found.setdefault(name_of(point.record), Row(name_of(point.record), {}, set()))
                    if column.head in row.points:
                        raise ValueError(f"{table} has two records of {row.title} in {column.head}.")
                    row.points[column.head] = point
                    row.tables.add(table.name)
                    check_machine(f"{table}, {row.title}", [one.record for one in row.points.values()])
    chosen = [found[title] for title in chart.titles if title in found] if chart.titles else found.values()
    return [row for row in chosen if sum(map(_compares, _cells(chart, row))) > 1]


def check_machine(name: str, records: Iterable[Record | ProcessRecord]) -> None:
    """Raise ValueError where several machines measured records that a reader compares."""
    machines = {record.machine_id for record in records} - {None}
    if len(machines) > 1:
        raise ValueError(f"{name}: measured on several machines ({', '.join(sorted(map(str, machines)))}).")


def tables(patterns: Sequence[str], folder: Path) -> list[Path]:
    """Return the tables of a place that fit a pattern."""
    return [table for pattern in patterns for table in sorted(folder.glob(f"{pattern}/"))]


def name_of(record: Record) -> str:
    """Return the name of a record's row: model, pass and shape, the same for all modes and frameworks."""
    model = _model(record.workload, record.implementation == "library")
    computed = "" if record.pass_name == "inference" else f" {record.pass_name}"
    return ", ".join((f"{model}{computed}", _shape(record.batch_size, record.seq_len), *_on_ranks(record)))


def served_name(records: Sequence[ProcessRecord]) -> str:
    """Return the name of a row of processes in rounds: framework, model, the shape or the calls, and policies."""
    one = records[0]
    shape = dict(pair.split("=", 1) for pair in one.cell.rpartition("/")[2].split(","))
    calls = next((f"{r.number:,} calls, {r.lengths}" for r in records if isinstance(r, StreamRecord) and r.number), "")
    shown = f"batch {shape['batch_size']}, {calls}" if calls else _shape(int(shape["batch_size"]), shape.get("seq_len"))
    model = _model(one.workload, "/library/" in one.cell)
    return ", ".join(filter(None, (f"{one.framework} {model}", shown, one.policies)))


def _model(workload: str, library: bool) -> str:
    """Return a model's name, with its origin if it is not this suite's: `BERT-base (library)`."""
    source, _, path = workload.rpartition(":")
    name, origin = path.rpartition("/")[2].removesuffix(".py"), "library" if library else source
    return NAMES.get(name, name) + (f" ({origin})" if origin else "")


def _shape(batch: int | None, length: int | str | None) -> str:
    return f"{batch} × {int(length):,} tokens" if length else f"batch {batch}"


def _on_ranks(record: Record) -> list[str]:
    """Return how training is divided between GPUs: `fsdp on 2 ranks`, `checkpoint full`."""
    ranks, kept = record.parameter("ranks"), record.parameter("checkpoint")
    return [
        *([f"{record.parameter('strategy')} on {ranks} ranks"] if ranks else []),
        *([f"checkpoint {kept}"] if kept not in (None, "none") else []),
    ]


def _cells(chart: Chart, row: Row) -> list[str]:
    return [_cell(row.points.get(column.head), column.figure) for column in chart.columns]


def _cell(point: Point | None, figure: str) -> str:
    """Return a record's figure, why it has none, or nothing for a record of fewer than three processes."""
    if point is None or not (point.excluded or enough(point)):
        return ""
    return "excluded" if point.excluded else place.COLUMNS[figure](point).replace(" ", "\u00a0")


def _compares(cell: str) -> bool:
    """Return whether a cell shows a figure that no host slowed."""
    return any(map(str.isdigit, cell)) and SLOWED not in cell.replace("\u00a0", " ")


def enough(point: Point) -> bool:
    """Return whether a record has enough processes to be published."""
    return (point.record.processes or 0) >= ENOUGH_PROCESSES


def facts(records: Sequence[Record | ProcessRecord]) -> str:
    """Return devices, threads of a CPU, dtypes and versions of frameworks: `NVIDIA H100, bf16, torch 2.13.0`."""
    known = dict.fromkeys(text for one in records for text in (one.device_name, _threads(one), one.dtype) if text)
    return ", ".join((*known, *(f"{name} {which}" for name, which in versions(records, " and ").items())))


def _threads(record: Record | ProcessRecord) -> str:
    return times(record.threads, "thread") if record.device == "cpu" and record.threads else ""


def lines(chart: Chart, folder: Path, route: str) -> list[str]:
    """Return a chart as a table in Markdown, with the tables that it shows; no lines without a row.

    `route` leads from the page to `results`.
    """
    found = rows(chart, folder)
    if not found:
        return []
    heads = (HEAD, *(column.head for column in chart.columns))
    names = dict.fromkeys(name for row in found for name in sorted(row.tables))
    records = [point.record for row in found for point in row.points.values()]
    cells = [[row.title, *_cells(chart, row)] for row in found]
    return [heading(chart.title, folder), "", *place.filled(heads, cells), "", source(records, names, folder, route)]


def source(records: Sequence[Record | ProcessRecord], names: Iterable[str], folder: Path, route: str) -> str:
    """Return the line below a chart: the facts of its records, and links to its tables."""
    links = ", ".join(f"[{name}]({route}/{place.EDITION}/{folder.name}/{name})" for name in names)
    return f"{facts(records)}. Tables: {links}."


def rounds_lines(chart: Rounds, folder: Path) -> list[str]:
    """Return a chart of processes in rounds, as `lines` does; a row with fewer than two figures is omitted."""
    read = {table.name: chart.form.journal.read(table) for table in tables(chart.tables, folder)}
    cells = [cell for records in read.values() for cell in chart.form.cells(list(records))]
    rows, records = [], []
    for cell in cells:
        check_machine(f"{folder.name}, {cell.name}", cell.records)
        arms = chart.arms(cell)
        texts = [_arm(*arms[name]) if name in arms else "" for name in chart.strategies]
        if sum(map(_compares, texts)) > 1:
            taken = [named(chart.choice(cell, calls), list(chart.strategies)).partition(" (")[0] for calls in MANY]
            rows.append([served_name(cell.records), *texts, *taken])
            records += cell.records
    if not rows:
        return []
    names = [name for name, found in read.items() if any(one in records for one in found)]
    heads = ("framework and model", *(f"`{name}`" for name in chart.strategies))
    return [
        heading(chart.title, folder),
        "",
        *place.filled((*heads, *(f"use for {calls:,} calls" for calls in MANY)), rows),
        "",
        source(records, names, folder, "../results"),
    ]


def _arm(arm: Arm, figure: Interval | None) -> str:
    """Return a strategy's figure and its failures, or its status; nothing for fewer than three processes."""
    problem = arm.reason.partition(":")[0]
    if not arm.records or figure is None:
        return problem
    fell_back = f"eager from call {arm.fell_back}" if isinstance(arm, StreamArm) and arm.fell_back else ""
    return ", ".join(filter(None, (with_width(figure).replace(" ", "\u00a0"), problem, fell_back)))


def heading(title: str, folder: Path) -> str:
    """Return the heading of a table of a place."""
    return f"### {title} ({folder.name})"


def means(folder: Path) -> list[str]:
    """Return the geometric means over the models of a place; no lines without any."""
    found = place.means(place.measured(folder))
    return [heading("Geometric mean over models", folder), "", *found] if found else []


def summary() -> str:
    """Return the charts of the README, each of the first place that has it."""
    return joined(next(filter(None, (lines(chart, p, "results") for p in places())), []) for chart in SUMMARY)


def chapters() -> str:
    """Return all charts of all places, except those that repeat another's tables (`h100-second`) and are compared."""
    tables = {folder: {path.name for path in folder.glob("*/")} for folder in places()}
    kinds = [folder for folder, names in tables.items() if not names & tables.get(place.before(folder), set())]
    parts = (
        *(lines(chart, folder, "../results") for chart in CHARTS for folder in kinds),
        *(rounds_lines(chart, folder) for chart in ROUNDS for folder in kinds),
        *map(means, kinds),
    )
    return joined(parts)


def joined(parts: Iterable[list[str]]) -> str:
    """Return the parts that have lines, with a blank line between them."""
    return "\n\n".join("\n".join(part) for part in parts if part) or NOTHING
