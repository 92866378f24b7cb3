"""Time by class of kernel, where cells were profiled."""

from __future__ import annotations

from collections.abc import Sequence

from records.shapes import Profile
from reports import drawing, explanation
from reports.content import Chart, Panel, Row, Section, Table
from reports.report_data import ReportData

SENTENCES = (
    "The time of a call by class of kernel, from the framework's profiler. Profiles are single measurements without "
    "an interval, and profiling slows down a CPU.",
)
AXIS = "milliseconds per call"


def section(data: ReportData) -> Section | None:
    """Return one panel for each shape that was profiled."""
    groups = list(explanation.by_shape(list(data.profiles)).items())
    if not groups:
        return None
    return Section.make("kernels", "Time by class of kernel", SENTENCES, groups, lambda group: _panel(*group))


def _panel(name: str, group: Sequence[Profile]) -> Panel:
    title = explanation.title(name, group)
    rows = [Row(tuple(row)) for row in explanation.rows(group)]
    drawn = [
        (entry["mode"], [(kind, 1e3 * seconds) for kind, seconds in entry["classes"].items() if seconds])
        for entry in group
    ]
    columns = ("ms per call", "FLOPs", *(entry["mode"] for entry in group))
    words = "Milliseconds by class of kernel; the table holds the same figures"
    return Panel(title, Table.make(columns, rows), (Chart(drawing.stacks(drawn), words),), axes=AXIS)
