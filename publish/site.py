"""`report` with SITE=FOLDER: a page for every run of the edition and an index, as files for any static host."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from analysis import modes, select
from analysis.points import COLUMNS_READ, Points
from commands import history, published, report
from commands.report import folder_for
from measurement import durable
from measurement.text import times
from plan.options import Option
from publish.place import EDITION
from records import recordfile, runs
from reports import sections, terminal, trend
from reports.page import fragment, html, index
from reports.page.index import Run
from reports.report_data import ReportData
from reports.write import subject


def options() -> list[Option]:
    """Return the options of `report` with SITE=FOLDER."""
    return [Option("site", "write the published runs as pages for a static host", "FOLDER")]


def run(arguments: argparse.Namespace) -> int:
    """Write the index and the pages into a folder. Raises UsageError."""
    console = terminal.console()
    out = folder_for(arguments.site, Path(arguments.site))
    pages = [_page(folder, out) for folder in folders()]
    durable.replace_text(out / "index.html", index(pages, _history()))
    console.print(f"Written: {out / 'index.html'} and {times(len(pages), 'page')} of runs")
    return 0


def folders() -> list[Path]:
    """Return the runs of the edition that hold records of `bench`."""
    every = published.folders(recordfile.RESULTS / EDITION)
    return [folder for folder in every if (folder / runs.RECORDS).exists()]


def read(*names: Path) -> ReportData:
    """Return the data of the runs in these folders. Raises UsageError for a run that is damaged."""
    source = report.read(list(map(str, names)), COLUMNS_READ)
    records = select.combined(source.records)
    remarks, ladders = tuple(source.remarks), tuple(source.ladders(records))
    return ReportData(Points(records), (), source.machines, remarks, modes.labels(), tuple(source.commands), ladders)


def _history() -> str:
    """Return the cells that several published runs measured on one machine: a section for each machine."""
    machines = defaultdict(list)
    for folder in folders():
        for run in history.read(str(folder)):
            for machine, cells in run.cells.items():
                machines[machine].append(replace(run, cells={machine: cells}))
    parts = []
    for machine, of_machine in machines.items():
        shared = Counter(cell for run in of_machine for cell in run.cells[machine])
        followed = history.of_runs([run for run in of_machine if any(shared[cell] > 1 for cell in run.cells[machine])])
        if followed:
            title = f"{trend.TITLE}, machine {machine[:4]}"
            parts.append(fragment(trend.section(followed, title, f"history-{machine[:4]}")))
    return "".join(parts)


def _page(folder: Path, out: Path) -> Run:
    """Write a run's page. Raises UsageError for a run that is damaged."""
    place = folder.relative_to(recordfile.RESULTS)
    data = read(folder)
    target = out / place
    target.mkdir(parents=True, exist_ok=True)
    home = "../" * len(place.parts) + "index.html"
    title = f"Is compiling worth it? {subject(data)}"
    durable.replace_text(target / "index.html", html(title, data, sections.build(data), place.as_posix(), home))
    started = str(runs.Run(folder).read(runs.PLAN).get("started_at", ""))
    (command, *_) = *data.commands, ""
    return Run(f"{quote(place.as_posix())}/index.html", place.as_posix(), started, command, data)
