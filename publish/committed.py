"""`results/README.md`: contents of each committed folder, with machine, date and command.

It is made from the folders' own files, so that a folder that is new or gone needs no edit.
"""

from __future__ import annotations

import json
from pathlib import Path

from commands.published import UNPUBLISHED, command, folders, plans
from measurement.text import as_code, in_markdown
from records import jsonfiles, runs, starts, streams

RECORDS = (runs.RECORDS, runs.EXPLAINED, starts.JOURNAL.lines, streams.JOURNAL.lines)
NOT_RECORDED = "not recorded"  # of profiles
HEAD = """# Published results

Made from the folders' own files by `python -m publish`. Pages: {pages}.
README and findings show the edition alone; pages of older folders say why these are kept.
A run has its plan, `machine.json`, `records.jsonl` and perhaps `samples.jsonl.gz` (raw samples).
An older folder may hold several runs, with their plans in `joined.json` or `reproduction.json`.
[results.schema.json](results.schema.json), a Table Schema, describes the columns; earlier records lack later columns.
Profiles of `make explain` record neither machine nor revision.

| folder | machine | command | started (UTC) | suite | records | samples |
|---|---|---|---|---|---|---|
"""


def page(results: Path) -> str:
    """Return the page for all folders under `results`."""
    pages = sorted(path.parent.relative_to(results).as_posix() for path in results.glob("*/**/README.md"))
    links = ", ".join(f"[{name}]({name}/README.md)" for name in pages if not name.startswith(f"{UNPUBLISHED}/"))
    return HEAD.format(pages=links) + "".join(
        "| " + " | ".join(row(folder, results)) + " |\n" for folder in folders(results)
    )


def row(folder: Path, results: Path) -> list[str]:
    """Return the cells of one folder's row."""
    asked = plans(folder)
    entries = [entry for name in RECORDS for entry in jsonfiles.lines(folder / name)]
    place = folder.relative_to(results)
    return [
        f"[{place}]({place})",
        in_markdown(machine(folder, entries)),
        "<br>".join(as_code(command(target, plan["given"], entries)) for target, plan in asked),
        min(plan["started_at"] for _, plan in asked).replace("T", " ").removesuffix("Z"),
        ", ".join(sorted({str(entry["git_revision"]) for entry in entries if entry.get("git_revision")}))
        or NOT_RECORDED,
        str(len(entries)),
        "yes" if (folder / runs.COMPRESSED_SAMPLES).exists() else "no",
    ]


def machine(folder: Path, entries: list[dict]) -> str:
    """Return the processor, its CPUs, the GPUs, and the ids that records have: several where runs were joined."""
    facts = json.loads(path.read_text()) if (path := folder / runs.MACHINE).exists() else {}
    if not facts:
        return (
            ", ".join(sorted({entry["device_name"] for entry in entries if entry.get("device_name")})) or NOT_RECORDED
        )
    names = [gpu["name"] for gpu in facts["gpus"]]
    gpus = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    others = sorted({entry["machine_id"] for entry in entries if entry.get("machine_id")} - {facts["machine_id"]})
    return "; ".join(
        [f"{facts['cpu']}, {facts['cpus_usable']} CPUs", *gpus, " and ".join([facts["machine_id"], *others])]
    )
