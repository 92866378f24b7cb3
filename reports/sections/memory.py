"""Peak device memory of every mode, beside eager's."""

from __future__ import annotations

from reports.content import Panel, Section, text_of
from reports.material import Material
from reports.points import Point, grouped
from reports.verdict import Verdict, wording

SENTENCE = (
    "Peak memory on the device, as the framework counts it; allocators differ, so compare modes of one framework. It "
    "is one reading per launch, the largest of them, and has no interval."
)


def section(material: Material) -> Section | None:
    """A panel for each setting with readings, which are to be had on GPUs only."""
    groups = [
        (str(key), verdict, known)
        for key, verdict in enumerate(material.verdicts)
        if (known := [point for point in verdict.setting.points if point["peak_memory_mb"] is not None])
    ]
    return Section.of("memory", "Memory", (SENTENCE,), groups, lambda group: _panel(*group)) if groups else None


def _panel(key: str, verdict: Verdict, points: list[Point]) -> Panel:
    eager = {_place(point): point["peak_memory_mb"] for point in points if point.eager}
    notes = []
    for series, of_series in grouped(points, lambda point: point.series).items():
        figures = [point["peak_memory_mb"] for point in of_series]
        low, high = text_of(min(figures)), text_of(max(figures))
        ratios = [p["peak_memory_mb"] / base for p in of_series if not p.eager and (base := eager.get(_place(p)))]
        beside = f", {wording.ratios(ratios)} that of eager mode" if ratios else ""
        notes.append(f"{series}: {low if low == high else f'{low} to {high}'} MB{beside}.")
    return Panel(verdict.setting.name, notes=tuple(notes), setting=key)


def _place(point: Point) -> tuple:
    return point.shape, point["framework"], point["machine_id"]
