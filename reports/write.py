"""A report's three forms: the terminal, `report.md` and `report.html`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from reports import markdown, page
from reports.content import Section
from reports.material import Material
from reports.points import machine_names, machine_of
from reports.terminal import summary

MARKDOWN, PAGE = "report.md", "report.html"


def terminal(built: list[Section], records: list[dict], console: Console) -> None:
    """Print the answer and remarks, then the table of every machine."""
    for section in built:
        if section.key in ("answer", "machines"):
            for sentence in section.sentences:
                console.print(sentence, highlight=False, markup=False)
    machines = machine_names(records)
    for machine, name in machines.items():
        if len(machines) > 1:
            console.print(f"\n[bold]{name}[/bold]", highlight=False)
        own = [record for record in records if machine_of(record) == machine] if len(machines) > 1 else records
        summary(own, console)


def files(folder: Path, heading: str, material: Material, built: list[Section]) -> list[Path]:
    """Write both files into the folder; returns their paths."""
    title = f"Eager against graph: {heading}"
    texts = {MARKDOWN: markdown.report(title, built), PAGE: page.html(title, material, built)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
