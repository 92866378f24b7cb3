"""A report in all its forms: the terminal, `summary.md`, `report.md` and `report.html`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console

from analysis.points import machine_names
from measurement import durable
from measurement.text import times
from records.record import Record
from reports import brief, ladder, markdown, page, verdict
from reports.content import Section
from reports.material import Material
from reports.numbers import listed
from reports.terminal import summary

BRIEF, MARKDOWN, PAGE = "summary.md", "report.md", "report.html"
MOST_SENTENCES = 12  # more than this scrolls by unread


def terminal(material: Material, records: Sequence[Record], console: Console) -> None:
    """Print what to do and remarks, then the table of every machine."""
    for remark in material.remarks:
        console.print(remark, highlight=False, markup=False)
    answer(material.verdicts, console)
    ladder.show(material.ladders, console)
    machines = machine_names(record.machine for record in records)
    for machine, name in machines.items():
        if len(machines) > 1:
            console.print(f"\n{name}", style="bold", highlight=False)
        of_machine = [record for record in records if record.machine == machine] if len(machines) > 1 else records
        summary(of_machine, console, material.remarks)


def answer(verdicts: list[verdict.Verdict], console: Console) -> None:
    """Print what to do, a sentence a line."""
    sentences = verdict.sentences(verdicts)
    for sentence in islice(sentences, MOST_SENTENCES):
        console.print(sentence, highlight=False, markup=False)
    if next(sentences, None):
        console.print(f"`make report` writes the rest, of {times(len(verdicts), 'setting')}.", highlight=False)


def subject(material: Material) -> str:
    """Return what was measured on what, in a few words."""
    points = material.points
    workloads = list(dict.fromkeys(point.record.workload for point in points.all))
    devices = list(dict.fromkeys(device for _, device in points.machines if device))
    return " on ".join(listed(names) for names in (workloads, devices) if names) or "profiles"


def files(folder: Path, heading: str, material: Material, built: list[Section]) -> list[Path]:
    """Write all files into the folder; returns their paths."""
    title = f"Is compiling worth it? {subject(material)}"
    texts = {
        BRIEF: brief.summary(title, material),
        MARKDOWN: markdown.report(f"{title} ({heading})", built),
        PAGE: page.html(title, material, built, heading),
    }
    for name, text in texts.items():
        durable.replace(folder / name, text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in texts]
