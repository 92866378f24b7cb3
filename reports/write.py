"""A report in all its forms: the terminal, `summary.md`, `report.md` and `report.html`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from measurement import durable
from records.record import Record
from reports import brief, ladder, markdown, page
from reports.content import Section
from reports.material import Material
from reports.numbers import listed
from reports.terminal import closing

BRIEF, MARKDOWN, PAGE = "summary.md", "report.md", "report.html"


def terminal(material: Material, records: Sequence[Record], console: Console) -> None:
    """Print remarks, the answers at every shape, and the ladders."""
    for remark in material.remarks:
        console.print(remark, highlight=False, markup=False)
    closing(material.answers, records, console)
    ladder.show(material.ladders, console)


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
