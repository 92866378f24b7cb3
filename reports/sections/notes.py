"""Notes of a report: measured versions and machines, warnings of cells, and cells without figures."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from operator import attrgetter
from statistics import median

from analysis.points import Point, grouped, natural
from measurement.flags import FLAGS
from measurement.text import listed, percent, plain, times
from records.shapes import MachineFacts
from reports.content import MOST_ROWS_OF_A_TABLE, Panel, Row, Section, Table, number
from reports.numbers import text_of
from reports.report_data import ReportData

_FACTS = {"cpu": "processor", "cpus_usable": "CPUs usable", "memory_bytes": "memory", "virtualised": "virtual machine"}
_GPU = {"name": "", "memory.total": "", "driver_version": "driver ", "power.limit": "at most "}
MOST_CELLS = 3


def machine_section(data: ReportData) -> Section:
    """Return the machines and the frameworks' versions."""
    sentences = list(data.remarks)
    if len(data.points.machines) > 1:
        sentences.insert(0, "Several machines were measured; every section names its machine.")
    sentences += _node_sentences(data)
    panels = [Panel("Machines", _machines(data)), Panel("Versions", _versions(data))]
    panels += [panel] if (panel := _nodes(data)) else []
    if (packages := _packages(data)).rows:
        panels.append(Panel("Packages", packages))
    return Section("machines", "Machines and versions", tuple(sentences), tuple(panels), len(panels))


def _machines(data: ReportData) -> Table:
    rows = []
    cells = Counter(point.record.machine for point in data.points.all)
    for (machine_id, device), name in data.points.machines.items():
        facts = data.machines.get(str(machine_id), {})
        parts = [
            f"{title} {_fact(fact)}" for key, title in _FACTS.items() if (fact := facts.get(key)) not in (None, "")
        ]
        described = "; ".join(parts + _gpus(facts)) or "its machine.json is missing"
        rows.append(Row((name, str(machine_id or "unknown"), described, number(cells[machine_id, device]))))
    return Table.make(("machine", "id", "what it is", "cells"), rows)


def _gpus(facts: MachineFacts) -> list[str]:
    """List the GPUs, identical ones counted."""
    described = Counter(
        ", ".join(f"{title}{gpu[key]}" for key, title in _GPU.items() if gpu.get(key))
        for gpu in facts.get("gpus") or ()
    )
    return [f"{times(count, 'GPU')}: {text}" for text, count in described.items()]


def _fact(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value / 2**30:.0f} GiB" if isinstance(value, int) and value > 2**20 else str(value)


def _versions(data: ReportData) -> Table:
    get = attrgetter(
        *("framework", "framework_version", "device", "profile", "compile_cache", "weights", "git_revision")
    )
    counts = Counter(get(point.record) for point in data.points.all)
    rows = [Row((*(str(part or "") for part in key), number(count))) for key, count in counts.items()]
    titles = ("framework", "version", "device", "profile", "compile cache", "weights", "suite's revision", "cells")
    return Table.make(titles, rows)


def _packages(data: ReportData) -> Table:
    """Return a table of each framework's other deciding packages, and the GPU's libraries."""
    get = attrgetter("framework", "framework_version", "device", "versions")
    seen = (get(point.record) for point in data.points.all)
    rows = [
        Row((*(str(part or "") for part in who), _listed(versions)))
        for *who, versions in dict.fromkeys(seen)
        if versions
    ]
    return Table.make(("framework", "version", "device", "with"), rows)


def _listed(versions: str) -> str:
    return ", ".join(f"{name} {version}" for name, version in json.loads(versions).items())


def flags_section(data: ReportData) -> Section | None:
    """Return the warnings, each with its meaning and its remedy."""
    cells: dict[str, list[Point]] = defaultdict(list)
    for point in data.points.measured:
        for name in point.record.raised:
            cells[name].append(point)
    if not cells:
        return None
    rows = [
        Row((flag.name, number(len(points)), flag.meaning, flag.remedy, _some(points)))
        for flag in FLAGS
        if (points := cells.get(flag.name))
    ]
    measured = data.points.measured
    flagged = sum(bool(point.record.flags) for point in measured)
    sentence = f"Measured cells with a flag: {flagged:,} of {len(measured):,}."
    table = Table.make(("flag", "cells", "what it means", "what to do", "where"), rows)
    return Section("flags", "Warnings", (sentence,), (Panel("Flags", table),), 1)


def _some(points: list[Point]) -> str:
    return listed([f"{one.series}, {one.record.workload} {one.shape}" for one in points], MOST_CELLS, "; ")


def failures_section(data: ReportData) -> Section | None:
    """Return every cell without figures and why; many cells that share a reason are one row."""
    failed = [point for point in data.points.all if not point.measured]
    if not failed:
        return None
    columns = ("mode", "what", "status", "reason", "last words")
    if len(failed) <= MOST_ROWS_OF_A_TABLE:
        rows = [_failure(point, f"{point.setting}, {point.shape}", point.tags) for point in failed]
    else:
        groups = grouped(failed, attrgetter("record.framework", "record.mode", "record.status", "record.reason"))
        rows = [_failure(group[0], f"{times(len(group), 'cell')}: {_some(group)}", {}) for group in groups.values()]
    sentence = f"{times(len(failed), 'cell')} of {len(data.points.all):,}. They are in no comparison above."
    return Section("failures", "Cells without figures", (sentence,), (Panel("Why", Table.make(columns, rows)),), 1)


def _failure(point: Point, what: str, tags: dict[str, str]) -> Row:
    words = (point.record.stderr_tail or "").strip().splitlines()
    reason = point.record.reason or ""
    cells = (point.series, what, point.record.status, reason, words[-1][:200] if words else "")
    return Row(cells, tags)


def _nodes(data: ReportData) -> Panel | None:
    """Return a panel with one row per node of the cluster; None where no record has a node."""
    cells = Counter(str(point.record.node) for point in data.points.all if point.record.node)
    if not cells:
        return None
    controls = _node_latencies(data)
    usual = median(controls.values()) if controls else None
    rows = []
    for node in sorted(cells.keys() | controls.keys(), key=natural):
        control = controls.get(node)
        ratio = f"{control / usual:.2f}×" if control and usual else ""
        rows.append(Row((plain(node), number(cells[node]), number(control), ratio)))
    return Panel("Nodes", Table.make(("node", "cells", "control cell, ms", "of the median node's"), rows).filled())


def _node_sentences(data: ReportData) -> list[str]:
    """Return how much nodes differ at the control cell, and which were not used."""
    controls, notes = _node_latencies(data), []
    if len(controls) > 1:
        low, high = min(controls.values()), max(controls.values())
        slowest = max(controls, key=lambda node: controls[node])
        notes.append(
            f"One control cell took {text_of(low)} to {text_of(high)} ms on {times(len(controls), 'node')}, "
            f"longest on {plain(slowest)}: a spread of {percent(high / low - 1)}, from one process each."
        )
    for facts in data.machines.values():
        left_out = facts.get("left_out") or {}
        notes += [f"Node {plain(node)} was not used: {plain(str(why))}." for node, why in left_out.items()]
    return notes


def _node_latencies(data: ReportData) -> dict[str, float]:
    """Return milliseconds of the control cell by node, the latest if measured again."""
    entries = [entry for facts in data.machines.values() for entry in facts.get("controls") or ()]
    measured = [entry for entry in entries if entry.get("node") and isinstance(entry.get("latency_ms"), float)]
    return {str(entry["node"]): entry["latency_ms"] for entry in measured}
