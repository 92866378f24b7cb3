"""The committed records behind the findings, and where they were measured: host, processes, folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from analysis import modes
from analysis.points import Point, Points
from commands import published
from measurement.statistics import Interval
from records import recordfile
from records.record import FIELDS
from reports.material import Material
from reports.numbers import estimate, text_of
from reports.verdict import Verdict

ROOT = Path(__file__).resolve().parent.parent
H200, EXPERIMENTS, CPU = ROOT / "results/h200", ROOT / "results/experiments", ROOT / "results/cpu"


@cache
def material(*folders: Path) -> Material:
    """Return what the runs in these folders hold."""
    records = [record for folder in folders for record in recordfile.load(folder / "records.jsonl").records]
    return Material(Points(records), known=modes.labels(), commands=tuple(map(_command, folders)))


def _command(folder: Path) -> str:
    return published.command("bench", json.loads((folder / "plan.json").read_text())["given"])


def points(*folders: Path, **columns: object) -> list[Point]:
    """Return the points of these runs that are not excluded and whose columns have these values."""
    every = [point for point in material(*folders).points.all if not point.excluded]
    return [point for point in every if fits(point, columns)]


def fits(point: Point, columns: Mapping[str, object]) -> bool:
    """Return whether a point's columns have these values."""
    return all(getattr(point.record, FIELDS[name]) == value for name, value in columns.items())


def one(*folders: Path, **columns: object) -> Point:
    """Return the only point that fits. Raises ValueError where none or several do."""
    (point,) = points(*folders, **columns)
    return point


def verdict(content: Material, implementation: str, parameters: str = "") -> Verdict:
    """Return the verdict on an implementation's largest bf16 setting, or on the one with `parameters`."""
    firsts = ((one, one.setting.points[0]) for one in content.verdicts)
    return next(
        one
        for one, first in firsts
        if (first.record.implementation, first.record.dtype) == (implementation, "bf16")
        and parameters in ("", first.record.parameters)
    )


@cache
def hosts() -> dict[str, str]:
    """Return the letter of each host of the H200 runs by its `machine_id`."""
    return json.loads((H200 / "hosts.json").read_text(encoding="utf-8"))


def letters(measured: Iterable[Point]) -> str:
    """Return the hosts of these points: `H`, `C, D and H`. Raises KeyError for a host without a letter."""
    *others, last = sorted({hosts()[str(point.record.machine_id)] for point in measured})
    return f"{', '.join(others)} and {last}" if others else last


def place(measured: Iterable[Point], *folders: Path) -> str:
    """Return where and how often something was measured, with a link to each folder of records.

    `[H](../results/h200/jax-h-short), 3 processes`; of several folders `H, [torch](…), [jax](…), 3 processes`.
    """
    measured = list(measured)
    names = [points(folder)[0].record.framework for folder in folders]
    names = names if len(set(names)) == len(names) else [folder.name for folder in folders]
    links = [f"[{name}]({path(folder)})" for name, folder in zip(names, folders, strict=True)]
    known = all(point.record.machine_id in hosts() for point in measured)
    host = letters(measured) if known else "records"
    where = f"[{host}]({path(folders[0])})" if len(folders) == 1 else ", ".join([host, *links])
    return f"{where}, {processes(measured)}"


def path(folder: Path) -> str:
    """Return a folder as `docs/findings.md` links it."""
    return f"../{folder.relative_to(ROOT).as_posix()}"


def processes(measured: Iterable[Point]) -> str:
    """Return how many processes: `3 processes`, `2 or 3 processes`."""
    return f"{' or '.join(map(str, sorted({point.record.launches or 0 for point in measured})))} processes"


def gain(point: Point) -> Interval:
    """Return the speedup over eager of a point that has one. Raises ValueError."""
    if point.speedup is None:
        raise ValueError(f"{point.series} at {point.shape} has no speedup.")
    return point.speedup


def unsure(measured: list[Point]) -> str:
    """Return how many of the figures cannot be relied on: `all 21 figures are noisy or disturbed`."""
    count = sum(point.record.status != "ok" for point in measured)
    share = f"all {count}" if count == len(measured) else f"{count} of the {len(measured)}"
    return f"{share} figures are noisy or disturbed"


def ms(point: Point) -> str:
    """Return a median in ms with its 95 % interval: `0.564 (0.552 to 0.576)`."""
    return estimate(point.latency) or text_of(point.median_ms)


def versions(measured: list[Point]) -> str:
    """Return frameworks and their versions, each once: `torch 2.13.0, jax 0.11.2`."""
    return ", ".join(dict.fromkeys(f"{point.record.framework} {point.record.framework_version}" for point in measured))
