"""Pictures of the README and the gallery: every mode at one shape on one machine, for light and for dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.points import Point
from analysis.settings import Known
from publish import figures
from publish.site import read
from reports import drawing
from reports.numbers import in_ms
from reports.report_data import ReportData

WIDTH, TITLE, AXIS, FOOT = 840, 30, 22, 40
NAMES, VALUES = 230, 120  # widths of the columns next to the tracks
CERTAINTY = "Lines are 95 % intervals. The axis is logarithmic. Modes that nobody deploys are not shown."
STYLES = {
    "light": {"ink": "#1c2430", "soft": "#566172", "line": "#dde2ea", "ground": "#ffffff"},
    "dark": {"ink": "#e4e8ef", "soft": "#a3adbc", "line": "#2f3846", "ground": "#0d1117"},
}
UNITS = "ms per call, less is better"
GALLERY = """# Gallery

Each chart shows its modes on one logarithmic axis; hollow symbols are eager modes.
A run's `report.html` has the same chart for your model{sample}."""


class Picture(NamedTuple):
    """A picture: its heading, patterns of the tables' names, and the title of the records' row."""

    heading: str
    tables: Sequence[str]
    row: str

    @property
    def folders(self) -> list[Path]:
        """Return the tables of the first place that has any; none where no place has."""
        found = (figures.tables(self.tables, folder) for folder in figures.places())
        return next(filter(None, found), [])

    @property
    def drawn(self) -> bool:
        """Return whether the edition has two of its modes or more."""
        return bool(self.folders) and len(self.points(read(*self.folders))) > 1

    def points(self, content: ReportData) -> list[Point]:
        """Return every mode that was measured and is deployed, the fastest first.

        Raises ValueError where several machines measured them.
        """
        found = [point for point in content.points.measured if self._shows(point, content.known)]
        figures.check_machine(self.row, [point.record for point in found])
        return sorted(found, key=lambda point: point.median_ms)

    def _shows(self, point: Point, known: Known) -> bool:
        words = known.get((point.record.framework, point.record.mode))
        deployed = words is None or words.deployed
        return deployed and not point.excluded and figures.enough(point) and figures.name_of(point.record) == self.row


PICTURES = {
    "bert": Picture("Small batch on a GPU", ("gpu-bert-*short-*",), "BERT-base, 8 × 128 tokens"),
    "large-batch": Picture("Large batch on a GPU", ("gpu-bert-*long-*",), "BERT-base, 64 × 512 tokens"),
    "decoding": Picture("Decoding", ("gpu-decode-torch", "gpu-decode-jax"), "Llama 1.2B decode, batch 1"),
    "cpu": Picture("A CPU", ("cpu-language",), "BERT-base, 1 × 128 tokens"),
}


def made() -> list[str]:
    """Return the names of the pictures that the edition has records of."""
    return [name for name, one in PICTURES.items() if one.drawn]


def gallery() -> str:
    """Return `docs/gallery.md`: a chapter for each picture."""
    names = made()
    chapters = (f"## {PICTURES[name].heading}\n\n{html(name, 'pictures')}" for name in names)
    sample = ": [a sample](sample.html) (save and open it)" if "bert" in names else ""
    return "\n\n".join([GALLERY.format(sample=sample), *chapters]) + "\n"


def html(name: str, folder: str) -> str:
    """Return a picture in a page, for light and for dark; empty where the edition has no table of it."""
    if not PICTURES[name].drawn:
        return ""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{folder}/{name}-dark.svg">'
        f'<img alt="{PICTURES[name].row}: ms per call by mode" src="{folder}/{name}-light.svg"></picture>'
    )


def svg(theme: str, name: str) -> str:
    """Return a picture as a file that stands alone."""
    picture = PICTURES[name]
    content = read(*picture.folders)
    points = picture.points(content)
    rows = [_dot(content, point) for point in points]
    scale, bottom = drawing.scale_of(rows), TITLE + AXIS + drawing.ROW * len(rows)
    height = bottom + FOOT
    lower = f"{figures.facts([point.record for point in points])}. Hollow: eager mode."
    frame = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" font-family="system-ui, sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame}><style>{drawing.style(STYLES[theme])}</style>',
        drawing.symbols(),
        f'<text class="title" y="18">{picture.row}: {UNITS}</text>',
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
    text = in_ms(point.median_ms, point.latency)
    ends = point.record.latency_ms_ci_low, point.record.latency_ms_ci_high
    name = f"{point.record.framework} {point.record.mode}"
    return drawing.Dot(name, content.look(point), point.median_ms, text, *ends)
