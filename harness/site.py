"""`make site`: a page for every published run and an index, as files that any static host serves as they are."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path

from harness import history, modes, recordfile
from harness.report import folder_for
from reports import published, sections, select, terminal, trend, trend_page
from reports.content import times
from reports.material import Material
from reports.page import html, index
from reports.page.index import Run
from reports.points import Points
from reports.write import subject

RECORDS, TABLE = "records.jsonl", "results.csv"


def site(arguments: argparse.Namespace) -> int:
    """Write the index and the pages into a folder. Raises UsageError."""
    console = terminal.console()
    out = folder_for(arguments.out, Path(arguments.out))
    runs = []
    for folder in published.folders(recordfile.RESULTS):
        if (folder / RECORDS).exists():
            runs.append(_page(folder, out))
    (out / "index.html").write_text(index(runs, _history()), encoding="utf-8")
    console.print(f"Written: {out / 'index.html'} and {times(len(runs), 'page')} of runs", highlight=False)
    return 0


def _history() -> str:
    """The cells that several published runs measured on one machine: a section for each machine."""
    runs = defaultdict(list)
    for folder in published.folders(recordfile.RESULTS):
        if (folder / RECORDS).exists():
            for run in history.read(str(folder)):
                runs[run.machine].append(run)
    sections = []
    for machine, own in runs.items():
        shared = Counter(cell for run in own for cell in run.cells)
        told = history.of_runs([run for run in own if any(shared[cell] > 1 for cell in run.cells)])
        if told:
            title = f"{trend.TITLE}, machine {machine[:4]}"
            sections.append(trend_page.section(told, modes.words(), title, f"history-{machine[:4]}"))
    return "".join(sections)


def _page(folder: Path, out: Path) -> Run:
    """Write a run's page, its table of records beside it."""
    place = folder.relative_to(recordfile.RESULTS)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    command = published.command("bench", plan["given"])
    records = select.newest(list(recordfile.json_lines(folder / RECORDS)))
    machine = folder / "machine.json"
    facts = json.loads(machine.read_text(encoding="utf-8")) if machine.exists() else {}
    machines = {facts["machine_id"]: facts} if facts else {}
    material = Material(Points(records), (), machines, (), modes.words(), (command,))
    target = out / place
    target.mkdir(parents=True, exist_ok=True)
    home = "../" * len(place.parts) + "index.html"
    title = f"Is compiling worth it? {subject(material)}"
    text = html(title, material, sections.build(material), place.as_posix(), home)
    (target / "index.html").write_text(text, encoding="utf-8")
    if (folder / TABLE).exists():
        shutil.copyfile(folder / TABLE, target / TABLE)
    return Run(f"{place.as_posix()}/index.html", place.as_posix(), plan["started_at"], command, material)
