"""What is said of two runs as such: the heading of each, and what differs between them but for their figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median

from measurement.text import times
from reports.numbers import text_of
from reports.points import machine_names, machine_of

OF_A_RUN = ("machine_id", "device_name", "framework", "framework_version", "git_revision", "profile", "launches")
SAME_HOST_WITHIN = 0.1
PROGRAM_DIFFERS = "program_differs"


def _kinds(columns: Mapping[str, list]) -> list[dict]:
    """Every machine, framework, version, revision, profile and number of launches that occur together in a run."""
    combinations = dict.fromkeys(zip(*map(columns.get, OF_A_RUN), strict=True))
    return [dict(zip(OF_A_RUN, values, strict=True)) for values in combinations]


def cautions(a: Mapping[str, list], b: Mapping[str, list]) -> list[str]:
    """What differs between the runs as such, by what their records say of them; machines and versions first."""
    kinds = [_kinds(columns) for columns in (a, b)]
    names = machine_names(map(machine_of, [*kinds[0], *kinds[1]]))
    machines = [
        {record.get("machine_id"): names[record.get("machine_id"), record.get("device_name")] for record in side}
        for side in kinds
    ]
    sentences = []
    if machines[0].keys() != machines[1].keys():
        sides = (f"{', '.join(side.values())} (machine {', '.join(map(str, side))})" for side in machines)
        sentences.append(
            f"Different machines: A on {', B on '.join(sides)}. The ratios tell of machines as much as of software."
        )
    versions = [_versions(side) for side in kinds]
    changed = [
        f"{framework} {versions[0][framework]} → {versions[1][framework]}"
        for framework in versions[0]
        if framework in versions[1] and versions[0][framework] != versions[1][framework]
    ]
    if changed:
        sentences.append(f"Different versions: {', '.join(changed)}.")
    for column, title in (("git_revision", "revisions of the suite"), ("profile", "profiles")):
        sides = [", ".join(sorted(map(str, {record.get(column) for record in side}))) for side in kinds]
        if sides[0] != sides[1]:
            sentences.append(f"Different {title}: {sides[0]} and {sides[1]}.")
    sentences += _other_programs(a, b)
    return sentences + _host_speeds(*(columns["host_loop_ms_median"] for columns in (a, b)))


def _other_programs(a: Mapping[str, list], b: Mapping[str, list]) -> list[str]:
    """Which run's graphs ran another program than eager mode, in how many cells; nothing where none did."""
    counts = [sum(PROGRAM_DIFFERS in (raised or "").split(";") for raised in side["flags"]) for side in (a, b)]
    if not any(counts):
        return []
    sides = " and ".join(f"{times(count, 'cell')} in {letter}" for letter, count in zip("AB", counts, strict=True))
    return [
        f"Another program than eager mode's: {sides} ({PROGRAM_DIFFERS}). Such a time is that program's, and so may be "
        "what moved; the column program_difference says how it differs."
    ]


def _host_speeds(a: list[float | None], b: list[float | None]) -> list[str]:
    """Which run's host was slower, by the loop that both timed in every round; nothing where they are alike."""
    times_ms = [[value for value in side if value is not None] for side in (a, b)]
    if not all(times_ms):
        return []
    ours, theirs = map(median, times_ms)
    if max(ours, theirs) <= (1 + SAME_HOST_WITHIN) * min(ours, theirs):
        return []
    return [
        f"A slower host: the same loop of Python took {text_of(ours)} ms in A and {text_of(theirs)} ms in B. What the "
        "host decides differs for that alone; a finding in both is the same finding on a slower host."
    ]


def version(columns: Mapping[str, list]) -> str | None:
    """`torch 2.13.0`; None for a run of several frameworks, or one that measured nothing."""
    names = ("framework", "framework_version")
    found = _versions(dict(zip(names, pair, strict=True)) for pair in zip(*map(columns.get, names), strict=True))
    return " ".join(*found.items()) if len(found) == 1 else None


def _versions(records: Iterable[dict]) -> dict[str, str]:
    by_framework: dict[str, set] = defaultdict(set)
    for record in records:
        if record.get("framework_version"):
            by_framework[record["framework"]].add(record["framework_version"])
    return {framework: ", ".join(sorted(versions)) for framework, versions in by_framework.items()}


def facts(columns: Mapping[str, list]) -> tuple[str, ...]:
    """What a heading says of a run: date, versions, revision of the suite, profile with launches, machine."""
    kinds = _kinds(columns)
    machines = sorted({f"{kind['device_name'] or 'unnamed'} ({str(kind['machine_id'])[:4]})" for kind in kinds})
    launches = sorted({kind["launches"] for kind in kinds if kind["launches"]})
    counts = "-".join(map(str, dict.fromkeys((launches[0], launches[-1])))) if launches else "no"
    date = min(filter(None, columns["started_at"]), default="").replace("T", " ")[:16]
    return tuple(
        filter(
            None,
            (
                date and f"{date} UTC",
                ", ".join(f"{name} {version}" for name, version in _versions(kinds).items()),
                ", ".join(sorted({f"suite {kind['git_revision']}" for kind in kinds if kind["git_revision"]})),
                f"{', '.join(sorted({str(kind['profile']) for kind in kinds}))}, "
                + (times(launches[-1], "launch", "launches") if len(launches) == 1 else f"{counts} launches"),
                ", ".join(machines),
            ),
        )
    )
