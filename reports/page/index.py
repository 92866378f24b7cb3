"""The index of a site: the best figure of each workload on each device, with filters, and every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from analysis.answers import Answer, best
from analysis.rules import Choice
from reports import answers
from reports.numbers import plus_minus, text_of
from reports.page import template
from reports.page.report import attributes
from reports.report_data import ReportData

FILTERS = ("framework", "device", "workload")


@dataclass(frozen=True)
class Run:
    """A run with its page: the page's address, the run's name, start, command and data."""

    address: str
    name: str
    started: str
    command: str
    data: ReportData


@dataclass(frozen=True)
class Entry:
    """The best figure of a setting in a run, and the values by which the row is filtered."""

    run: Run
    answer: Answer
    choice: Choice
    tags: dict[str, tuple[str, ...]]

    @property
    def place(self) -> tuple:
        """Return the row's sort key: GPUs first, then by device, by workload, and the newest run first."""
        kind = self.choice.point.record.device_kind
        return kind == "cpu", self.tags["device"], self.tags["workload"], self.answer.setting.name


def index(runs: Sequence[Run], history: str = "") -> str:
    """Return the whole page; `history` is the section on cells that several runs measured."""
    newest = sorted(runs, key=lambda run: run.started, reverse=True)
    entries = sorted(_newest(newest), key=lambda entry: entry.place)
    parts = {
        "filters": "".join(_filter(name, entries) for name in FILTERS),
        "latest": "".join(map(_entry, entries)),
        "history": f"<details><summary>Cells of several runs</summary>{history}</details>" if history else "",
        "runs": "".join(map(_row, newest)),
        "script": template.asset("index.js"),
    }
    body = template.filled(template.asset("index.html"), parts)
    return template.page("Is compiling worth it? Published runs", body, "index")


def _newest(runs: Sequence[Run]) -> Iterable[Entry]:
    """Yield the best figure of each setting, of the newest run that has it; runs come the newest first."""
    seen = set()
    for run in runs:
        for found in run.data.answers:
            setting = found[0].setting
            frameworks = tuple(sorted({point.record.framework for point in setting.points}))
            key = setting.name, frameworks
            if key in seen or (figure := best(found)) is None:
                continue
            seen.add(key)
            record = figure[1].point.record
            tags = {
                "framework": frameworks,
                "device": (record.device_name or "an unnamed device",),
                "workload": (record.workload,),
            }
            yield Entry(run, *figure, tags)


def _filter(name: str, entries: Sequence[Entry]) -> str:
    values = dict.fromkeys(value for entry in entries for value in entry.tags[name])
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name.capitalize()} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _entry(entry: Entry) -> str:
    choice, facts = entry.choice, entry.answer.setting.facts
    point = choice.point
    (line,) = (line for line in answers.lines(entry.answer) if line.framework == choice.framework)
    what = [text for name, text in facts.items() if text and name not in ("machine", "device")]
    cells = (
        escape(", ".join([*what, entry.answer.shape.text])),
        escape(entry.tags["device"][0]),
        f"<b>{escape(point.record.framework)} {escape(line.mode)}</b>",
        f"{text_of(point.median_ms)} {plus_minus(point.latency)}",
        escape(line.gain),
        f'<a href="{escape(entry.run.address)}">{escape(entry.run.started[:10])}</a>',
    )
    titles = ("", "device", "best", "ms", "over eager", "run")
    return _line(cells, titles, attributes({name: "|".join(values) for name, values in entry.tags.items()}))


def _row(run: Run) -> str:
    points = run.data.points
    devices = ", ".join(dict.fromkeys(device or "an unnamed device" for _, device in points.machines))
    cells = (
        f'<a href="{escape(run.address)}">{escape(run.name)}</a>',
        escape(run.started[:10]),
        escape(devices),
        str(len(points.all)),
        f"<code>{escape(run.command)}</code>",
    )
    return _line(cells, ("", "started", "machine", "cells", "command"))


def _line(cells: Sequence[str], titles: Sequence[str], tags: str = "") -> str:
    shown = (
        f'<td data-title="{title}">{cell}</td>' if title else f"<td>{cell}</td>"
        for title, cell in zip(titles, cells, strict=True)
    )
    return f"<tr{tags}>{''.join(shown)}</tr>"
