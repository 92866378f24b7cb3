"""`report` with WATCH=1: how far a run is, from any machine that sees its folder."""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from execution.progress import duration
from execution.submission import SUBMITTED
from launchers import slurm
from measurement import files
from measurement.places import shown
from measurement.text import times
from plan.options import Option
from records import jsonfiles, manifest, runs

EVERY = 5.0  # seconds between two looks


@dataclass
class Sight:
    """Incremental reader of a run's folder: it reads all records again once they were rewritten."""

    folder: Path
    place: int = 0  # in records.jsonl
    last: bytes = b""  # the line that ends there
    statuses: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)  # cells with a record

    def look(self) -> None:
        """Read the records added since. Raises UsageError.

        They are rewritten whenever a run's table is made: read all again where the last line read lies elsewhere now.
        """
        path = self.folder / runs.RECORDS
        if not path.is_file():
            return
        with jsonfiles.opened(path) as file:
            file.seek(self.place - len(self.last))
            if file.read(len(self.last)) != self.last:
                vars(self).update(vars(Sight(self.folder)))
                file.seek(0)
            for line in files.lines(file, jsonfiles.MOST_OF_A_LINE):
                if line.endswith(b"\n"):  # else it is being written
                    self.place += len(line)
                    self.last = line
                    self._count(jsonfiles.json_object(line) or {})

    def _count(self, record: dict) -> None:
        cell = record.get("cell")
        if isinstance(cell, str) and cell not in self.seen:
            self.seen.add(cell)
            self.statuses[str(record.get("status"))] += 1
            self.nodes[str(record.get("node") or "")] += 1

    def lines(self) -> list[str]:
        """Return how far the run is."""
        plan = manifest.read(self.folder / manifest.PLAN) if (self.folder / manifest.PLAN).exists() else {}
        planned = len(plan.get("cells", []))
        counts = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        first = f"{len(self.seen)} of {times(planned, 'cell')}" if plan else "not started yet"
        text = [f"{first}{f' ({counts})' if counts else ''} · {self._job()}"]
        text += self._pace(str(plan.get("started_at")), planned) if self.seen and len(self.seen) < planned else []
        if nodes := [f"{name} {count}" for name, count in sorted(self.nodes.items()) if name]:
            text.append("by node: " + ", ".join(nodes))
        return text

    def ended(self) -> bool:
        """Return whether all planned cells have a record."""
        path = self.folder / manifest.PLAN
        return path.exists() and len(self.seen) >= len(manifest.read(path).get("cells", []))

    def _job(self) -> str:
        """Return the state of the run's Slurm job as text, running or queued."""
        places = [path for name in (runs.MACHINE, SUBMITTED) if (path := self.folder / name).is_file()]
        number = next(filter(str.isdigit, map(_job_in, places)), None)
        if number is None:
            return "not in a Slurm job"
        if shutil.which("squeue") is None:
            return f"job {number} (squeue is not available here)"
        state = slurm.output_of("squeue", "--noheader", f"--jobs={number}", "--format=%T %r")
        return f"job {number}: {state.lower() if state else 'not in the queue'}"

    def _pace(self, started: str, planned: int) -> list[str]:
        """Return how long it took so far and may still take; nothing where the plan has no time of its begin."""
        try:
            begun_at = datetime.datetime.strptime(started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
        except ValueError:
            return []
        seconds = (datetime.datetime.now(datetime.UTC) - begun_at).total_seconds()
        left = seconds * (planned - len(self.seen)) / len(self.seen)
        return [f"{duration(seconds)} since the start; about {duration(left)} left at this pace"]


def _job_in(path: Path) -> str:
    """Return the number of the job that a file names, or an empty text."""
    with jsonfiles.opened(path) as file:
        return str((jsonfiles.json_object(file.read(jsonfiles.MOST_OF_A_FILE)) or {}).get("job", ""))


def folder_of(name: str | None) -> Path:
    """Return the folder of a run, which may still wait for its job. Raises UsageError."""
    submitted = runs.found(name, SUBMITTED) if name and name != "newest" else None
    return submitted or runs.Run.open(name).folder


def options() -> list[Option]:
    """Return the options of `report` with WATCH=1."""
    return [
        Option("run", f"a run's folder, or its name in {shown(runs.RUNS)} (default: newest)", nargs="?"),
        Option("watch", "show the progress of a run; on a terminal, until it ends", switch=True),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Print how far a run is: once, or on a terminal again and again until it is done."""
    sight = Sight(folder_of(arguments.run))
    print(sight.folder)
    while True:
        sight.look()
        print("\n".join(sight.lines()), flush=True)
        if not sys.stdout.isatty() or sight.ended():
            return 0
        time.sleep(EVERY)
