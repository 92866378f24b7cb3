"""One figure over many runs: a small chart with intervals, and lines between runs where it steps."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from measurement.statistics import Interval
from reports.drawing.marks import stretched
from reports.drawing.scales import Scale

HEIGHT = 56
SHOWN = 1.1  # the least span of the axis: less would make scatter look like change
EDGE = 2.0  # percent of the width that marks need


def series(values: Sequence[Interval | None], words: Sequence[str | None], steps: Sequence[int], colour: str) -> str:
    """Values one a run (None where it has none) on a logarithmic axis of their own; `words` are told of each value.

    A step at run n is a dashed line between it and the run before.
    """
    known = [(place, interval) for place, interval in enumerate(values) if interval]
    up = Scale.of((end for _, one in known for end in (one.low, one.high)), begin=88, end=12, least=SHOWN)
    across = (100 - 2 * EDGE) / max(len(values) - 1, 1)
    at = lambda place: EDGE + place * across  # noqa: E731
    height = lambda value: f"{up.at(value) * HEIGHT / 100:.1f}"  # noqa: E731
    path = " ".join(f"{at(place):.4g},{height(one.value)}" for place, one in known)
    line = stretched(f'<polyline points="{path}" stroke="currentColor"/>', HEIGHT)
    marks = [
        f'<line class="step" x1="{at(n - 0.5):.4g}%" x2="{at(n - 0.5):.4g}%" y1="0" y2="{HEIGHT}"/>' for n in steps
    ]
    for place, one in known:
        x = f"{at(place):.4g}%"
        marks.append(f'<line x1="{x}" x2="{x}" y1="{height(one.high)}" y2="{height(one.low)}"/>')
        marks.append(
            f'<circle cx="{x}" cy="{height(one.value)}" r="3"><title>{escape(words[place] or "")}</title></circle>'
        )
    return f'<svg width="100%" height="{HEIGHT}" color="{colour}">{line}{"".join(marks)}</svg>'
