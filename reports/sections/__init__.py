"""The report's sections, in their order. Each module makes its own from the same points."""

from __future__ import annotations

from collections.abc import Callable

from reports.content import Section
from reports.report_data import ReportData


def build(data: ReportData) -> list[Section]:
    """Return every section that has content."""
    from reports.sections import answer, breaks, kernels, ladders, notes, scaling

    makers: tuple[Callable[[ReportData], Section | None], ...] = (
        answer.section,
        breaks.section,
        ladders.section,
        kernels.section,
        *scaling.SECTIONS,
        notes.flags_section,
        notes.failures_section,
        notes.machine_section,
    )
    return [section for maker in makers if (section := maker(data)) is not None]
