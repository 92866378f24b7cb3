"""The README's picture: every mode of BERT-base at one shape, drawn for light and for dark pages.

Its points are those of one row of the README's table, and of the other frameworks on the same host.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.points import Point
from analysis.settings import Shape
from publish.evidence import letters, material, processes, versions
from reports import drawing
from reports.material import Material
from reports.numbers import text_of

WIDTH, TITLE, FOOT = 840, 30, 40
SHAPE = Shape.sized(8, 128)
HEADING = f"BERT-base at {SHAPE.text}, one NVIDIA H200, bf16: ms per call, less is better"
CERTAINTY = "Bars are 95 % intervals, ~ is known less well than the profile promises. The axis is logarithmic."
STYLES = {
    "light": {"ink": "#1c2430", "soft": "#566172", "line": "#dde2ea", "ground": "#ffffff"},
    "dark": {"ink": "#e4e8ef", "soft": "#a3adbc", "line": "#2f3846", "ground": "#0d1117"},
}


def svg(theme: str, folders: Sequence[Path]) -> str:
    """Return every mode at one shape on one axis, as a file that stands alone."""
    content = material(*folders)
    points = drawn(content)
    chart = drawing.dots([_dot(content, point) for point in points])
    height = float(chart.partition('height="')[2].partition('"')[0]) + TITLE + FOOT
    lower = f"Host {letters(points)}, {processes(points)}; {versions(points)}. Hollow: eager, operator by operator."
    frame = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" font-family="system-ui, sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame}><style>{drawing.style(STYLES[theme])}</style>',
        drawing.symbols(),
        f'<text class="title" y="18">{HEADING}</text>',
        f'<svg y="{TITLE}" width="100%" height="{height - TITLE - FOOT:g}">{chart}</svg>',
        f'<text class="soft" y="{height - 22:g}">{lower}</text>',
        f'<text class="soft" y="{height - 6:g}">{CERTAINTY}</text></svg>\n',
    ]
    return "".join(parts)


def drawn(content: Material) -> list[Point]:
    """Return the library's model at the picture's shape in every mode, the fastest first."""
    points = [p for p in content.points.measured if (p.record.implementation, p.record.dtype) == ("library", "bf16")]
    here = [point for point in points if Shape.of(point.record) == SHAPE]
    return sorted(here, key=lambda point: point.median_ms)


def _dot(content: Material, point: Point) -> drawing.Dot:
    value = point.median_ms
    noisy = "~" if point.record.is_noisy("latency") else ""
    note = f"excluded: {point.excluded}" if point.excluded else ""
    ends = point.record.latency_ms_ci_low, point.record.latency_ms_ci_high
    name = f"{point.record.framework} {point.record.mode}"
    return drawing.Dot(name, content.look(point), value, f"{text_of(value)}{noisy} ms", *ends, note=note)
