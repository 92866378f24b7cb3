"""The answer of a finished run as one JSON object, for scripts, CI and agents (docs/ci.md)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from analysis import modes
from analysis.answers import Answer, Trust, by_setting
from analysis.points import Points
from measurement.refusals import DONE, FINDING, INCOMPLETE
from measurement.statistics import INCONCLUSIVE
from records import figures
from records.record import Record
from reports import answers

# Columns of a figure, by their names in the CSV: docs/columns.md.
FIGURES = (
    *("cell", "framework", "mode", "workload", "pass", "batch_size", "seq_len", "parameters", "device", "dtype"),
    *("threads", "status", "reason", "flags", "program", "launches", "latency_half_width", "speedup_half_width"),
    *("sign", "first_call_s", "compiler_start_s", "break_even_calls", "break_even_low", "break_even_high"),
    *("bound_replay", "bound_roofline", "peak_memory_mb", "regime", "build_s", "artefact_bytes", "power_w"),
    *("idle_power_w", "energy_source", *figures.ALL),
)


def answered(records: Sequence[Record], folder: Path) -> dict[str, Any]:
    """Return verdicts, figures with intervals, conditions, versions, and the run's folder."""
    found = [answer for of_setting in by_setting(Points(records), modes.labels()) for answer in of_setting]
    versions: dict[str, str] = {}
    for record in records:
        versions |= json.loads(record.versions) if record.versions else {}
    return {
        "verdicts": [sentence for answer in found for sentence in sentences(answer)],
        "choices": [choice for answer in found for choice in _choices(answer)],
        "figures": [{name: value for name, value in record.to_row().items() if name in FIGURES} for record in records],
        "conditions": Trust.from_records(records).conditions,
        "versions": versions,
        "suite": next((record.git_revision for record in records if record.git_revision), None),
        "run": str(folder),
    }


def sentences(answer: Answer) -> list[str]:
    """Return a sentence for each framework at a shape, and who is fastest."""
    shared, (own,) = answers.heading([answer.setting])
    place = ", ".join(filter(None, (own, answer.shape.text, shared)))
    said = [f"{place}: {choice.framework}: {answers.what_to_do(choice)}" for choice in answer.choices]
    gains = [line.gain for line in answers.lines(answer) if line.framework]
    said = [f"{words} ({gain})." if gain else f"{words}." for words, gain in zip(said, gains, strict=True)]
    return [*said, *filter(None, [answers.fastest(answer)])]


def _choices(answer: Answer) -> list[dict[str, Any]]:
    return [
        {
            "shape": answer.shape.text,
            "framework": choice.framework,
            "answer": choice.kind,
            "mode": choice.point.record.mode,
            "call": choice.words.call,
            "cell": choice.point.record.cell,
        }
        for choice in answer.choices
    ]


def code(answer: dict[str, Any], records: Sequence[Record], limit: float | None) -> int:
    """Return the exit code: FINDING where a headline speedup's CI lies below 1 / (1 + limit), INCOMPLETE without any.

    Excluded cells and those of a slowed host decide nothing.
    """
    ends = [record.speedup.high for record in records if record.headline and record.speedup]
    if limit is not None and ends and min(ends) < 1 / (1 + limit):
        return FINDING
    kinds = {choice["answer"] for choice in answer["choices"]}
    return INCOMPLETE if not kinds - {INCONCLUSIVE} else DONE


@contextlib.contextmanager
def on_stderr() -> Iterator[None]:
    """Have everything that is printed meanwhile on standard error, also by other processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.close(kept)
