"""A report in all its forms: the terminal, `summary.md`, `report.md` and `report.html`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from measurement import durable
from measurement.text import listed
from records.record import Record
from reports import brief, ladder, markdown, page
from reports.content import Section
from reports.report_data import ReportData
from reports.terminal import closing

BRIEF, MARKDOWN, PAGE = "summary.md", "report.md", "report.html"


def terminal(data: ReportData, records: Sequence[Record], console: Console) -> None:
    """Print remarks, the answers at every shape, and the ladders."""
    for remark in data.remarks:
        console.print(remark)
    closing(data.answers, records, console)
    ladder.show(data.ladders, console)


def subject(data: ReportData) -> str:
    """Return the subject of a report in a few words: models and machines."""
    points = data.points
    workloads = list(dict.fromkeys(point.record.workload for point in points.all))
    devices = list(dict.fromkeys(device for _, device in points.machines if device))
    return " on ".join(listed(names) for names in (workloads, devices) if names) or "profiles"


def files(folder: Path, heading: str, data: ReportData, built: list[Section]) -> list[Path]:
    """Write all files into the folder; returns their paths."""
    title = f"Is compiling worth it? {subject(data)}"
    texts = {
        BRIEF: brief.summary(title, data),
        MARKDOWN: markdown.report(f"{title} ({heading})", built),
        PAGE: page.html(title, data, built, heading),
    }
    for name, text in texts.items():
        durable.replace_text(folder / name, text)
    return [folder / name for name in texts]
