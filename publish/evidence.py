"""The committed records behind the findings: which count, over all runs of a cell, and where they lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from analysis import modes
from analysis.paired import baselines, speedups_by_process
from analysis.points import Point, Points
from analysis.significance import over_runs
from commands import published
from measurement.places import RESULTS, SUITE
from measurement.statistics import Interval
from records import recordfile
from records.record import FIELDS, Record
from records.runs import Run
from records.shapes import SampleLine
from reports.numbers import ratio, text_of
from reports.report_data import ReportData

H200, EXPERIMENTS, CPU = RESULTS / "h200", RESULTS / "experiments", RESULTS / "cpu"
ACROSS = "across processes"  # intervals of three processes or more


@cache
def report_data(*folders: Path) -> ReportData:
    """Return what the runs in these folders hold."""
    records = [record for folder in folders for record in recordfile.load(folder / "records.jsonl").records]
    return ReportData(Points(records), known=modes.labels(), commands=tuple(map(_command, folders)))


def _command(folder: Path) -> str:
    return published.command("bench", json.loads((folder / "plan.json").read_text())["given"])


def measured(*folders: Path, excluded: bool = False, **columns: object) -> list[Point]:
    """Return the points of three processes or more whose columns have these values; those excluded if asked for."""
    return [
        point
        for folder in folders
        for point in report_data(folder).points.all
        if bool(point.excluded) == excluded
        and fits(point, columns)
        and (excluded or point.record.interval_scope == ACROSS)
    ]


def fits(point: Point, columns: Mapping[str, object]) -> bool:
    """Return whether a point's columns have these values."""
    return all(getattr(point.record, FIELDS[name]) == value for name, value in columns.items())


def pooled(points: Iterable[Point], figure: Callable[[Point], Interval | None]) -> Interval | None:
    """Return a figure over all runs of a cell, by random effects; None without a run that has it."""
    known = [(interval, point.record.processes) for point in points if (interval := figure(point))]
    return over_runs(*zip(*known, strict=True)) if known else None


def by_process(folder: Path, record: Record) -> dict[tuple, float]:
    """Return ln of a record's speedup in each process of its run."""
    eager = baselines(point.record for point in report_data(folder).points.all)
    return speedups_by_process(_samples(folder), record, eager.get(record.cell.rpartition("/")[0], ""))


@cache
def _samples(folder: Path) -> list[SampleLine]:
    return Run(folder).samples()


def precise(interval: Interval, unit: str = "") -> str:
    """Return a figure with half its interval's width, which no line break separates: `5.27× ±8 %`."""
    width = 100 * (interval.high - interval.low) / 2 / interval.value
    show = ratio if unit else text_of
    return f"{show(interval.value)}{unit} ±{max(width, 0.1):.{0 if width >= 1 else 1}f} %".replace(" ", "\u00a0")


@cache
def hosts() -> dict[str, str]:
    """Return the letter of each host of the H200 runs by its `machine_id`."""
    return json.loads((H200 / "hosts.json").read_text(encoding="utf-8"))


def letters(points: Iterable[Point]) -> str:
    """Return the hosts of these points: `H`, `C, D and H`. Raises KeyError for a host without a letter."""
    *others, last = sorted({hosts()[str(point.record.machine_id)] for point in points})
    return f"{', '.join(others)} and {last}" if others else last


def links(points: Sequence[Point], folders: Sequence[Path]) -> str:
    """Return links to the runs that these points are of, or to all of the folders: `[1](…) [2](…)`."""
    held = [folder for folder in folders if any(point in report_data(folder).points.all for point in points)] or folders
    return " ".join(f"[{place}](../{folder.relative_to(SUITE).as_posix()})" for place, folder in enumerate(held, 1))


def processes(points: Iterable[Point]) -> str:
    """Return how many processes: `3 processes`, `2 or 3 processes`."""
    return f"{' or '.join(map(str, sorted({point.record.processes or 0 for point in points})))} processes"


def versions(points: Iterable[Point]) -> str:
    """Return frameworks and their versions, each once: `torch 2.13.0, jax 0.11.2`."""
    return ", ".join(dict.fromkeys(f"{point.record.framework} {point.record.framework_version}" for point in points))
