"""The index of a site: what the newest runs say, by framework, workload and device, and every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from measurement.text import times
from reports.material import Material
from reports.page import template
from reports.verdict import wording


@dataclass(frozen=True)
class Run:
    """A run with its page: the page's address, the run's name, when it was begun, its command and what it holds."""

    address: str
    name: str
    begun: str
    command: str
    material: Material


def index(runs: Sequence[Run], history: str = "") -> str:
    """Return the whole page; `history` is the section on cells that several runs measured."""
    newest = sorted(runs, key=lambda run: run.begun, reverse=True)
    parts = {"latest": _latest(newest), "history": history, "runs": "".join(map(_row, newest))}
    body = template.filled(template.asset("index.html"), parts)
    return template.page("Is compiling worth it? Published runs", body, "index")


def _latest(runs: Sequence[Run]) -> str:
    """Return a row for each workload on a device, a column for each framework: the newest run's advice, linked."""
    cells: dict[tuple, dict[str, str]] = {}
    for run in runs:
        by_row: dict[tuple, dict[str, list[str]]] = {}
        for verdict in run.material.verdicts:
            first = verdict.setting.points[0].record
            device = first.device_name or "an unnamed device"
            model, threads = f"{first.workload} {first.implementation}", times(first.threads or 0, "thread")
            sizes = first.parameters if first.batch_size is not None else None
            row = model, first.pass_name, device, first.dtype, threads, (sizes or "").replace(";", ", ")
            for advice in verdict.advice:
                place = wording.where([judged.shape for judged in advice.judged])
                advised = f"<b>{escape(wording.short(advice))}</b> <small>{escape(place)}</small>"
                by_row.setdefault(row, {}).setdefault(advice.framework, []).append(advised)
        for row, frameworks in by_row.items():
            for framework, parts in frameworks.items():
                link = f'<a href="{escape(run.address)}">{escape(run.begun[:10])}</a>'
                cells.setdefault(row, {}).setdefault(framework, "<br>".join([*parts, link]))
    names = sorted({framework for row in cells.values() for framework in row})
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("what", *names))
    body = ""
    for row, texts in sorted(cells.items()):
        figures = "".join(f'<td data-title="{escape(name, quote=True)}">{texts.get(name, "")}</td>' for name in names)
        body += f"<tr><td>{escape(', '.join(filter(None, row)))}</td>{figures}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(run: Run) -> str:
    points = run.material.points
    devices = ", ".join(dict.fromkeys(device or "an unnamed device" for _, device in points.machines))
    cells = (
        f'<a href="{escape(run.address)}">{escape(run.name)}</a>',
        escape(run.begun[:10]),
        escape(devices),
        str(len(points.all)),
        f"<code>{escape(run.command)}</code>",
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
