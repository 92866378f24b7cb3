"""Why: what each mode's time is spent on."""

from __future__ import annotations

from reports.content import Panel, Section
from reports.material import Material
from reports.points import Point, grouped
from reports.verdict import Verdict, wording
from reports.verdict.places import Shape

SENTENCES = (
    "A mode's time is spent on compute (arithmetic) or bandwidth (moving data) where that explains at least 40 % of it "
    "at the machine's measured peaks; else on latency (operators far from any peak) or overhead (around them, as a "
    "rule Python on the host). Compiling helps most where it is overhead. Records of earlier versions may say mixed.",
)


def section(material: Material) -> Section | None:
    """A panel for each setting with cells whose regime is known."""
    groups = [
        (str(key), verdict, known)
        for key, verdict in enumerate(material.verdicts)
        if (known := [p for p in verdict.setting.points if p["regime"]])
    ]
    return Section.of("why", "Why", SENTENCES, groups, lambda group: _panel(*group)) if groups else None


def _panel(key: str, verdict: Verdict, points: list[Point]) -> Panel:
    notes = []
    for series, of_series in grouped(points, lambda point: point.series).items():
        regimes = grouped(of_series, lambda point: point["regime"])
        said = (f"{name} at {wording.where([Shape.of(p.record) for p in some])}" for name, some in regimes.items())
        notes.append(f"{series}: {'; '.join(said)}." if len(regimes) > 1 else f"{series}: {of_series[0]['regime']}.")
    return Panel(verdict.setting.name, notes=tuple(notes), setting=key)
