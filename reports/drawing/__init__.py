"""Charts as SVG, drawn when the report is made: no script, no library in the page.

Places along x are percentages, so that a chart is as wide as its place while its texts keep their size. Colours of
texts and lines are the page's (classes `ink`, `soft`, `rule`); a picture that stands alone brings `STYLE` along.
"""

from reports.drawing.identity import Look, hue, looks, mark, style, symbols
from reports.drawing.marks import Dot, dots, spread, waterfall
from reports.drawing.scales import Scale
from reports.drawing.strokes import Curve, curves, legend, shares

__all__ = [
    "Curve",
    "Dot",
    "Look",
    "Scale",
    "curves",
    "dots",
    "hue",
    "legend",
    "looks",
    "mark",
    "shares",
    "spread",
    "style",
    "symbols",
    "waterfall",
]
