"""`report` with GATHER=FILE: the records of several runs in one CSV."""

from __future__ import annotations

import argparse
from pathlib import Path

from commands import report
from measurement.refusals import UsageError, writing
from measurement.text import times
from plan.options import Option
from records import jsonfiles, recordfile
from records import record as schema
from reports import terminal

GATHERED = "gathered.csv"


def options() -> list[Option]:
    """Return the options of `report` with GATHER=FILE."""
    return [report.runs_option(), Option("gather", "write the records of several runs into this CSV", "FILE")]


@report.uncollected()
def run(arguments: argparse.Namespace) -> int:
    """Merge the records of several runs, of one machine or many, into one CSV, and their samples into another file."""
    console = terminal.console()
    if not arguments.run:
        raise UsageError("Name the runs to gather: make report RUN=<run>,<run> GATHER=<file>.")
    source = report.read(arguments.run)
    path = Path(arguments.gather)
    path = path / GATHERED if path.is_dir() else path
    if path.name == recordfile.TABLE and (path.parent / recordfile.RECORDS).exists():
        raise UsageError(f"GATHER={path} is the table of a run; name another file.")
    if path.suffix != ".csv":
        raise UsageError(f"GATHER={path} must end in .csv.")
    columns = source.columns
    rows = dict.fromkeys(zip(*map(columns.get, schema.NAMES), strict=True))
    if again := sum(map(len, source.loaded)) - len(rows):
        source.remarks.append(f"{times(again, 'record')} in several runs, kept once.")
    samples = list(source.samples())
    with writing(path, "GATHER"):
        path.parent.mkdir(parents=True, exist_ok=True)
        recordfile.write_rows(rows, path)
        if samples:
            jsonfiles.write_compressed(path.with_suffix(".samples.jsonl.gz"), samples)
    for remark in source.remarks:
        console.print(remark, style="yellow", soft_wrap=True)
    machines = times(len(set(columns["machine_id"])), "machine")
    counted = f"{times(len(rows), 'record')} of {times(len(source.names), 'run')} and {machines}"
    console.print(f"{counted}: {path} (columns: {recordfile.schema_path(path).name})", soft_wrap=True)
    return 0
