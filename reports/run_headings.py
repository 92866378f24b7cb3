"""Headings of a comparison of two runs: each run's facts, and differences of versions, machine and settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from analysis.pairs import Kind, kinds_of
from analysis.points import machine_names
from measurement.flags import PROGRAM_DIFFERS
from measurement.text import times
from records.process import ProcessRecord
from records.record import Record
from reports.numbers import text_of

SAME_HOST_WITHIN = 0.1


def cautions(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """Return sentences on differences between the runs as a whole, from their records; machines and versions first."""
    kinds = [kinds_of(records) for records in (a, b)]
    names = machine_names((kind.machine_id, kind.device_name) for kind in (*kinds[0], *kinds[1]))
    machines = [{kind.machine_id: names[kind.machine_id, kind.device_name] for kind in side} for side in kinds]
    sentences = []
    if machines[0].keys() != machines[1].keys():
        named = [f"{', '.join(side.values())} (machine {', '.join(map(str, side))})" for side in machines]
        sentences.append(
            f"Different machines: A on {', B on '.join(named)}. The ratios depend on the machines as well as on the "
            f"software."
        )
    released = [versions(side) for side in kinds]
    changed = [
        f"{framework} {released[0][framework]} → {released[1][framework]}"
        for framework in released[0]
        if framework in released[1] and released[0][framework] != released[1][framework]
    ]
    if changed:
        sentences.append(f"Different versions: {', '.join(changed)}.")
    for column, title in (("git_revision", "revisions of the suite"), ("profile", "profiles")):
        sides = [", ".join(sorted(map(str, {getattr(kind, column) for kind in side}))) for side in kinds]
        if sides[0] != sides[1]:
            sentences.append(f"Different {title}: {sides[0]} and {sides[1]}.")
    sentences += _other_programs(a, b)
    return sentences + _host_speeds(a, b)


def _other_programs(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """Return which run's graphs ran another program than eager mode, in how many cells; nothing where none did."""
    counts = [sum(PROGRAM_DIFFERS in record.raised for record in side) for side in (a, b)]
    if not any(counts):
        return []
    sides = " and ".join(f"{times(count, 'cell')} in {letter}" for letter, count in zip("AB", counts, strict=True))
    return [
        f"Other operators than eager mode's: {sides} ({PROGRAM_DIFFERS}). These cells measure another program; the "
        f"column program_difference names the difference."
    ]


def _host_speeds(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """Return which run's control loop took longer, that of every round; nothing where they are alike."""
    times_ms = [[ms for record in side if (ms := record.host_loop_ms_median) is not None] for side in (a, b)]
    if not all(times_ms):
        return []
    ours, theirs = map(median, times_ms)
    if max(ours, theirs) <= (1 + SAME_HOST_WITHIN) * min(ours, theirs):
        return []
    return [
        f"The control loop took {text_of(ours)} ms in A and {text_of(theirs)} ms in B, so a host or its Python is "
        f"slower. This alone changes times that the host limits."
    ]


def version(records: Iterable[Record]) -> str | None:
    """Return `torch 2.13.0`; None for a run of several frameworks, or one that measured nothing."""
    found = versions(records)
    return " ".join(*found.items()) if len(found) == 1 else None


def versions(records: Iterable[Record | ProcessRecord | Kind], separator: str = ", ") -> dict[str, str]:
    """Return the versions of each framework in some records."""
    by_framework: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.framework_version:
            by_framework[record.framework].add(record.framework_version)
    return {framework: separator.join(sorted(found)) for framework, found in by_framework.items()}


def facts(records: Sequence[Record]) -> tuple[str, ...]:
    """Return a run's heading: date, versions, revision of the suite, profile with processes, machine."""
    kinds = kinds_of(records)
    machines = sorted({f"{kind.device_name or 'unnamed'} ({str(kind.machine_id)[:4]})" for kind in kinds})
    processes = sorted({kind.processes for kind in kinds if kind.processes})
    counts = "-".join(map(str, dict.fromkeys((processes[0], processes[-1])))) if processes else "no"
    date = min((record.started_at for record in records if record.started_at), default="").replace("T", " ")[:16]
    return tuple(
        filter(
            None,
            (
                date and f"{date} UTC",
                ", ".join(f"{name} {version}" for name, version in versions(kinds).items()),
                ", ".join(sorted({f"suite {kind.git_revision}" for kind in kinds if kind.git_revision})),
                f"{', '.join(sorted({str(kind.profile) for kind in kinds}))}, "
                + (times(processes[-1], "process", "processes") if len(processes) == 1 else f"{counts} processes"),
                ", ".join(machines),
            ),
        )
    )
