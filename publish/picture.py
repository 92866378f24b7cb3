"""Pictures of the README and the gallery: every mode at one shape on one machine, for light and for dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from analysis.points import Point
from analysis.settings import Known
from publish import findings
from publish.evidence import hosts, letters, measured, processes, report_data, versions
from reports import drawing
from reports.numbers import plus_minus, text_of
from reports.report_data import ReportData

WIDTH, TITLE, AXIS, FOOT = 840, 30, 22, 40
NAMES, VALUES = 230, 120  # widths of the columns beside the tracks
CERTAINTY = "Lines are 95 % intervals. The axis is logarithmic. Modes that nobody deploys are not shown."
STYLES = {
    "light": {"ink": "#1c2430", "soft": "#566172", "line": "#dde2ea", "ground": "#ffffff"},
    "dark": {"ink": "#e4e8ef", "soft": "#a3adbc", "line": "#2f3846", "ground": "#0d1117"},
}
UNITS = "ms per call, less is better"


class Picture(NamedTuple):
    """A picture's heading, the runs whose points it draws, and the values of their records' columns."""

    heading: str
    folders: tuple[Path, ...]
    columns: dict[str, Any]

    @property
    def points(self) -> list[Point]:
        """Return every mode that was measured and is deployed, the fastest first."""
        known = report_data(*self.folders).known
        points = [p for p in measured(*self.folders, **self.columns) if _deployed(p, known)]
        return sorted(points, key=lambda point: point.median_ms)


def _deployed(point: Point, known: Known) -> bool:
    words = known.get((point.record.framework, point.record.mode))
    return words is None or words.deployed


PICTURES = {
    "bert": Picture(
        f"BERT-base at batch 8, 128 tokens, one NVIDIA H200, bf16: {UNITS}", findings.SHORT, findings.bert(8, 128)
    ),
    "large-batch": Picture(
        f"BERT-base at batch 64, 512 tokens, one NVIDIA H200, bf16: {UNITS}",
        findings.TORCH[1:2],
        findings.bert(64, 512),
    ),
    "decoding": Picture(
        f"Llama 1.2B, one token at batch 1, two NVIDIA H200s of one host, bf16: {UNITS}",
        (*findings.DECODING, findings.JAX_DECODING),
        {"workload": "llama-1b", "batch_size": 1},
    ),
    "cpu": Picture(
        f"BERT-base at batch 1, 128 tokens, two CPU cores, fp32: {UNITS}",
        (findings.TWO_CORES,),
        {"workload": "bert-base"},
    ),
}


def svg(theme: str, name: str) -> str:
    """Return a picture as a file that stands alone."""
    picture = PICTURES[name]
    content, points = report_data(*picture.folders), picture.points
    rows = [_dot(content, point) for point in points]
    scale, bottom = drawing.scale_of(rows), TITLE + AXIS + drawing.ROW * len(rows)
    height = bottom + FOOT
    host = f"Host {letters(points)}, " if points[0].record.machine_id in hosts() else ""
    lower = f"{host}{processes(points)}; {versions(points)}. Hollow: eager, operator by operator."
    frame = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" font-family="system-ui, sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame}><style>{drawing.style(STYLES[theme])}</style>',
        drawing.symbols(),
        f'<text class="title" y="18">{picture.heading}</text>',
        f'<g class="axis">{_track(TITLE, bottom - TITLE, drawing.axis(scale, bottom - TITLE))}</g>',
        *(_row(row, scale, TITLE + AXIS + drawing.ROW * n) for n, row in enumerate(rows)),
        f'<text class="soft" y="{height - 22:g}">{lower}</text>',
        f'<text class="soft" y="{height - 6:g}">{CERTAINTY}</text></svg>\n',
    ]
    return "".join(parts)


def _row(row: drawing.Dot, scale: drawing.Scale, y: int) -> str:
    drawn = _track(y, drawing.ROW, drawing.track(row, scale))
    value = f'<text class="value" text-anchor="end" x="{WIDTH}" y="{y + 16}">{row.text}</text>'
    return f'<text y="{y + 16}">{row.name}</text><g color="{row.look.colour}">{drawn}</g>{value}'


def _track(y: int, height: int, content: str) -> str:
    return f'<svg x="{NAMES}" y="{y}" width="{WIDTH - NAMES - VALUES}" height="{height}">{content}</svg>'


def _dot(content: ReportData, point: Point) -> drawing.Dot:
    text = f"{text_of(point.median_ms)} ms {plus_minus(point.latency)}".rstrip()
    ends = point.record.latency_ms_ci_low, point.record.latency_ms_ci_high
    name = f"{point.record.framework} {point.record.mode}"
    return drawing.Dot(name, content.look(point), point.median_ms, text, *ends)
