"""`compare` of three runs or more, or with HISTORY=1: how every cell went over runs, and where it stepped."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis import pairs, select, steps
from analysis.changes import SAME_WITHIN
from analysis.significance import Estimates
from commands import report
from measurement import durable
from measurement.refusals import UsageError, writing
from measurement.statistics import Interval
from plan.options import Option
from records.record import Record
from reports import markdown, page, terminal, trend
from reports.trend import Line, Mark, Moment

FEWEST_RUNS = 2


@dataclass(frozen=True)
class Loaded:
    """One run: when it began, how it differs from the others, and the cells of each of its machines."""

    moment: Moment
    cells: Mapping[str, Mapping[str, Record]]


def options() -> list[Option]:
    """Return the options of `compare` with HISTORY=1."""
    out = Option("out", "where the files go (default: the last run's folder)", "FOLDER")
    shown = Option("history", "print a line per cell over all runs, even for two runs", switch=True)
    return [report.runs_option("; a folder means all runs in it; a list: A,B,C"), report.FILTER, out, shown]


@report.uncollected()
def run(arguments: argparse.Namespace) -> int:
    """Show how every cell went over several runs: a line each, with intervals, and the steps in it."""
    console = terminal.console()
    names = [name for word in arguments.run for name in word.split(",") if name]
    loaded = [one for name in names for one in read(name, arguments.filter)]
    if len({one.moment.place for one in loaded}) < FEWEST_RUNS:
        raise UsageError("Name at least two runs: make compare RUN=<run>,<run>,<run>.")
    followed = of_runs(loaded)
    if followed is None:
        raise UsageError("No cell was measured twice on the same machine in these runs; choose runs of the same sweep.")
    trend.show(followed, console)
    folder = report.folder_for(arguments.out, Path(followed.moments[-1].place))
    section = trend.section(followed)
    files = {
        "history.md": markdown.report("History", [section]),
        "history.html": page.template.page("History", f"<main>{page.fragment(section)}</main>"),
    }
    for name, text in files.items():
        with writing(folder):
            durable.replace_text(folder / name, text)
        console.print(f"Written: {folder / name}", soft_wrap=True)
    return 0


def of_runs(loaded: Sequence[Loaded]) -> trend.History | None:
    """Return the history of all cells that two runs hold on one machine; None where there is none."""
    loaded = sorted({one.moment.place: one for one in loaded}.values(), key=lambda one: one.moment.began)
    lines, cautions = follow(loaded)
    return trend.History(tuple(one.moment for one in loaded), tuple(lines), tuple(cautions)) if lines else None


def read(name: str, filtered: str | None = None) -> list[Loaded]:
    """Return the runs that a name stands for: a folder of runs is each of them. Raises UsageError."""
    loaded, places = [], report.places(name)
    for place in places:
        source = report.read([str(place)], pairs.COLUMNS_READ)
        if len(places) == 1:  # a folder of runs may hold profiles of `explain` too
            source.check_measured()
        records = select.chosen(source.records, {}, filtered)
        machines = dict.fromkeys(str(record.machine_id) for record in records)
        cells = {name: pairs.cells_of(r for r in records if str(r.machine_id) == name) for name in machines}
        if cells:
            folder = place if place.is_dir() else place.parent
            loaded.append(Loaded(_moment(source.names[0], folder, records), cells))
    return loaded


def _moment(name: str, place: Path, records: Sequence[Record]) -> Moment:
    versions = {
        record.framework: record.framework_version for record in records if record.framework_version is not None
    }
    began = min((record.started_at for record in records if record.started_at), default="")
    revisions = dict.fromkeys(record.git_revision for record in records if record.git_revision)
    return Moment(name, str(place), began, versions, ", ".join(revisions))


def follow(loaded: Sequence[Loaded]) -> tuple[list[Line], list[str]]:
    """Return a line for each cell of each machine that two runs hold, and sentences on the other cells."""
    machines = list(dict.fromkeys(machine for one in loaded for machine in one.cells))
    keys = [
        (machine, cell)
        for machine in machines
        for cell in dict.fromkeys(c for one in loaded for c in one.cells.get(machine, ()))
    ]
    series = {key: _series(loaded, *key) for key in keys}
    series = {key: one for key, one in series.items() if sum(record is not None for record in one) >= FEWEST_RUNS}
    stepped = {key: _steps(one, "latency", len(series)) for key, one in series.items()}
    graphs = {key: one for key, one in series.items() if not any(record and record.is_baseline for record in one)}
    speedups = {key: _steps(one, "speedup", len(graphs)) for key, one in graphs.items()}
    lines = [
        Line(
            cell,
            tuple(record.latency if record else None for record in one),
            tuple(_marks(stepped[machine, cell], _alone(machine, cell, stepped, speedups))),
            machine[:4] if len(machines) > 1 else "",
        )
        for (machine, cell), one in series.items()
    ]
    several = f"Several machines: {', '.join(m[:4] for m in machines)}. Each has separate lines."
    return lines, [several] if len(machines) > 1 else []


def _series(loaded: Sequence[Loaded], machine: str, cell: str) -> list[Record | None]:
    """Return a cell's record in each run; None where it has no figures there."""
    records = [one.cells.get(machine, {}).get(cell) for one in loaded]
    return [record if record and not record.excluded and record.latency else None for record in records]


def _steps(one: Sequence[Record | None], figure: str, series: int) -> list[steps.Step]:
    """Return the steps of a cell's latency or speedup: of runs at full speed, whose intervals cover processes."""
    points = []
    for record in one:
        counts = record is not None and record.headline and not pairs.few_processes(record)
        interval = getattr(record, figure) if counts else None
        points.append(_point(interval, record.processes) if record and interval else None)
    return steps.steps(points, max(series, 1), SAME_WITHIN)


def _point(interval: Interval, processes: int | None) -> Estimates:
    ends = Interval(*(np.float64(end) for end in interval))
    return Estimates.from_arrays(ends, np.array(processes or 0))


def _alone(machine: str, cell: str, stepped: Mapping, speedups: Mapping) -> set[int]:
    """Return the runs at which a cell stepped more than all modes of its shape, by the speedups."""
    if (machine, cell) in speedups:
        return {step.at for step in speedups[machine, cell]}
    group = cell.rpartition("/")[0]
    others = [key for key in stepped if key[0] == machine and key[1] != cell and key[1].rpartition("/")[0] == group]
    return {step.at for key in others for step in speedups.get(key, ())}


def _marks(cell_steps: Sequence[steps.Step], alone: set[int]) -> list[Mark]:
    return [Mark(step.at, step.ratio, step.at not in alone) for step in cell_steps]
