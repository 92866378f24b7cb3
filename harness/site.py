"""`make site`: a page for every published run and an index, as files that any static host serves as they are."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from harness import ladders, modes, recordfile, runs
from harness.report import folder_for
from reports import published, sections, select, terminal
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
    pages = []
    for folder in published.folders(recordfile.RESULTS):
        if (folder / RECORDS).exists():
            pages.append(_page(folder, out))
    (out / "index.html").write_text(index(pages), encoding="utf-8")
    console.print(f"Written: {out / 'index.html'} and {times(len(pages), 'page')} of runs", highlight=False)
    return 0


def _page(folder: Path, out: Path) -> Run:
    """Write a run's page, its table of records beside it."""
    place = folder.relative_to(recordfile.RESULTS)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    command = published.command("bench", plan["given"])
    records = select.newest(list(recordfile.json_lines(folder / RECORDS)))
    machine = folder / "machine.json"
    facts = json.loads(machine.read_text(encoding="utf-8")) if machine.exists() else {}
    machines = {facts["machine_id"]: facts} if facts else {}
    own = tuple(ladders.of_run(runs.Run(folder), records))
    material = Material(Points(records), (), machines, (), modes.words(), (command,), own)
    target = out / place
    target.mkdir(parents=True, exist_ok=True)
    home = "../" * len(place.parts) + "index.html"
    title = f"Is compiling worth it? {subject(material)}"
    text = html(title, material, sections.build(material), place.as_posix(), home)
    (target / "index.html").write_text(text, encoding="utf-8")
    if (folder / TABLE).exists():
        shutil.copyfile(folder / TABLE, target / TABLE)
    return Run(f"{place.as_posix()}/index.html", place.as_posix(), plan["started_at"], command, material)
