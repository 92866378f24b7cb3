"""Four tables of deployed forms of models; they contradict each other on the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from analysis.significance import independent_ratio
from experiments import gains
from experiments.evidence import Evidence, exactly, published, speedup_of
from experiments.gains import named_with_dtype
from experiments.judge import above, inconclusive
from experiments.spec import Answer, Claim, Experiment, Published, all_of
from measurement.statistics import Interval
from records.record import Record
from reports.numbers import SLOWED

GPU, CPU = ("gpu",), ("cpu",)
# Models of the sources, and this suite's in their place.
IMAGES = ("resnet50", "vit-b16", "vit-s", "imtalker", "convnext-base")
TEXT = ("bert-base", "qwen-1.5b")


def faster(
    mode: str, other: str, device: str, times: float = 1, models: Sequence[str] = IMAGES
) -> Callable[[Evidence], Answer]:
    """Return a check that on a device a mode is more than `times` as fast as another for all measured `models`."""

    def check(evidence: Evidence) -> Answer:
        pairs = [pair for pair in _pairs(evidence, mode, other, device) if pair[0].workload in models]
        if not pairs:
            return inconclusive(f"{mode} and {other} were not measured together")
        return all_of(
            above(f"{named_with_dtype(a)}: {mode} over {other}", _ratio(evidence, a, b), times, "×") for a, b in pairs
        )

    return check


def _pairs(evidence: Evidence, mode: str, other: str, device: str) -> Iterator[tuple[Record, Record]]:
    """Yield the records of both modes of one cell's shape and machine."""
    records = evidence.records.on(device).included
    for this in records.where(mode=mode):
        names = ("machine_id", "device_name", "framework", "workload", "batch_size", "dtype")
        alike = {name: getattr(this, name) for name in names}
        if beside := records.find_one(mode=other, seq_len=this.seq_len, parameters=this.parameters, **alike):
            yield this, beside


def _ratio(evidence: Evidence, this: Record, other: Record) -> Interval | str | None:
    """Return how many times as fast `this` is as `other`, or why that is not known."""
    if this.slowed or other.slowed:
        return SLOWED
    if paired := evidence.paired(other, this):
        return paired
    ours, theirs = (Interval(1, 1, 1) if r.is_baseline else speedup_of(r) for r in (this, other))
    return independent_ratio(ours, theirs, (this.processes, other.processes)) if ours and theirs else None


def published_records(rows: Published) -> list[Record]:
    """Return a record of each row, with its speedup over the eager row of the same source and hardware."""
    records = []
    for _, of_model in groupby(rows, key=lambda row: (row["source"], row["hardware"], row["workload"])):
        listed = list(of_model)
        eager = _speed(listed[0])
        for row in listed:
            columns: dict[str, Any] = {name: row[name] for name in ("workload", "pass", "mode")}
            columns |= {"device_name": row["hardware"], "batch_size": int(row["batch_size"]), "dtype": row["dtype"]}
            columns |= {"device": "cpu"} if row["hardware"] == "cpu" else {}
            columns |= exactly(float(row["ms"])) if row["ms"] else {}
            records.append(published(columns, None if row["mode"] == "eager" else _speed(row) / eager))
    return records


def _speed(row: dict[str, str]) -> float:
    return float(row["times_eager_fp32"]) if row["times_eager_fp32"] else 1 / float(row["ms"])


CLAIMS = (
    Claim("On a GPU torch.compile is faster than ONNX Runtime.", faster("inductor", "onnx-runtime", "gpu"), "all", GPU),
    Claim("TensorRT is faster than torch.compile.", faster("tensorrt", "inductor", "gpu"), "all", GPU),
    Claim(
        "On a GPU an AOTInductor package is more than twice as fast as torch.compile.",
        faster("aot-inductor", "inductor", "gpu", times=2, models=TEXT),
        "all",
        GPU,
    ),
    Claim("On a CPU OpenVINO is slower than eager mode.", faster("eager", "openvino", "cpu"), "all", CPU),
    Claim("On a CPU torch.compile is faster than ONNX Runtime.", faster("inductor", "onnx-runtime", "cpu"), "all", CPU),
)

EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Forms in which models are deployed: compiled, AOTInductor, ONNX Runtime, OpenVINO and TensorRT",
    source="lightning-pose's page on inference speed, bigai-nlco/IMTalker#5, pytorch#149582 and openvino#21048",
    claims=CLAIMS,
    tables=partial(gains.make_tables, axes=("workload", "dtype", "batch_size"), as_records=published_records),
    published_records=published_records,
    edition=("cpu-forms", "gpu-forms"),
)
