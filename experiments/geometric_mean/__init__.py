"""Mean speedup of compiling over models, always with the models that it includes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from analysis.significance import geometric_mean
from experiments.evidence import Evidence, speedup_of
from experiments.judge import between
from experiments.spec import PUBLISHED, Answer, Claim, Experiment, Published, Sweep, Table, Verdict
from measurement.flags import HOST_SLOWED
from records.record import Record
from reports.numbers import estimate, text_of

HERE = Path(__file__).parent
FEWEST = 8  # workloads, below which a mean is not formed
ABOUT = 0.05  # of a published mean, which is over other models


def parts_of(records: Iterable[Record]) -> dict[str, Record]:
    """Return the record of each workload that has a speedup for a headline."""
    return {record.workload: record for record in records if record.headline and record.speedup}


def missing(records: Iterable[Record], pass_name: str) -> dict[str, str]:
    """Return why each workload that has no speedup has none: those of the records, and those that the sweeps name."""
    records = list(records)
    known = {record.workload: _why(record) for record in records}
    return {
        name: known.get(name, "not measured") for name in (*known, *planned(pass_name)) if name not in parts_of(records)
    }


def _shown(record: Record | None) -> str:
    return estimate(speedup_of(record)) if record else ""


def _why(record: Record) -> str:
    reason = (record.reason if record.excluded == record.status else None) or record.excluded
    return reason or ("no interval" if record.headline else HOST_SLOWED)


def planned(pass_name: str) -> tuple[str, ...]:
    """Return the workloads that the sweep files measure in this pass."""
    sweeps = [Sweep.read(path) for path in sorted(HERE.glob("*.toml"))]
    workload_lists = [part.flags["workload"] for part in sweeps if part.flags.get("pass", "inference") == pass_name]
    return tuple(dict.fromkeys(name for names in workload_lists for name in names))


def average(pass_name: str, published: float) -> Callable[[Evidence], Answer]:
    """Return a check that the mean over the workloads is about the published one."""

    def check(evidence: Evidence) -> Answer:
        records = evidence.records.graph.where(**{"pass": pass_name})
        parts = parts_of(records)
        if len(parts) < FEWEST:
            why = ", ".join(f"{name} ({reason})" for name, reason in missing(records, pass_name).items())
            numbers = f"{len(parts)} of at least {FEWEST} workloads have a speedup; without: {why}"
            return Answer(Verdict.OPEN, numbers, measured=bool(parts))
        low, high = published * (1 - ABOUT), published * (1 + ABOUT)
        answer = between("geometric mean", geometric_mean(parts.values(), evidence.by_process), low, high, "×")
        made_of = ", ".join(f"{name} {text_of(part.speedup_vs_eager)}×" for name, part in parts.items())
        return replace(answer, numbers=f"{answer.numbers} of {made_of}")

    return check


CLAIMS = (
    Claim("On average compiling makes inference 2.27 times as fast.", average("inference", 2.27)),
    Claim("On average compiling makes training 1.41 times as fast.", average("training", 1.41), devices=("gpu",)),
    Claim(
        "In mixed precision compiled training is 51 % faster on average.", average("training", 1.51), devices=("gpu",)
    ),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return every workload's speedup and below them their mean, a table for each device and pass."""
    made = []
    sides = {name: side.records.graph for name, side in evidence.sides().items()}
    for device in dict.fromkeys(record.device_kind for record in evidence.records):
        for pass_name in dict.fromkeys(record.pass_name or "" for record in evidence.records.on(device)):
            columns = {name: parts_of(side.on(device).where(**{"pass": pass_name})) for name, side in sides.items()}
            lacking = {
                name: missing(side.on(device).where(**{"pass": pass_name}), pass_name) for name, side in sides.items()
            }
            workloads = dict.fromkeys(
                record.workload for record in evidence.records.on(device).where(**{"pass": pass_name})
            )
            rows = [
                (
                    name,
                    *(_shown(parts.get(name)) or lacking[side].get(name, "") for side, parts in columns.items()),
                    "",
                )
                for name in workloads
            ]
            means = [
                geometric_mean(parts.values(), evidence.by_process) if len(parts) >= FEWEST else None
                for parts in columns.values()
            ]
            theirs = ", ".join(row["times_as_fast"] for row in published if row["pass"] == pass_name)
            rows.append(("geometric mean", *map(estimate, means), theirs))
            title = f"Times as fast as eager, {pass_name}, {device}"
            made.append(Table(title, ("workload", *columns, PUBLISHED), tuple(rows)))
    return made


EXPERIMENT = Experiment(
    folder=HERE,
    title="The average over many models",
    source="PyTorch 2 (ASPLOS 2024), and the announcement of PyTorch 2.0",
    claims=CLAIMS,
    tables=make_tables,
)
