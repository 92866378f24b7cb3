"""Charts of experiments as Vega-Lite: lines with intervals, shares, bars. Rows go in, a chart comes out.

A chart is a dict in Vega-Lite's grammar, with its rows under `data`. A cell without a figure has no mark, never one at
zero. Axes are logarithmic where the figures span a decade.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 300, 240
ROW_STEP = 22
# So few different values on a log axis are marked each, such as the batches of a sweep.
FEW = 6

Row = Mapping[str, Any]
Spec = dict[str, Any]  # a chart, or a part of one, as Vega-Lite takes it


@dataclass(frozen=True)
class Axis:
    """A field of the rows on an axis, with its title."""

    field: str
    title: str
    log: bool = False


def ticks(values: Iterable[float | None]) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2 and 5 in each decade, or the decades alone where these are many."""
    known = [value for value in values if value]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]


def _number(field: str, **more) -> Spec:
    """The encoding of a number."""
    return {"field": field, "type": "quantitative", **more}


def _name(field: str, **more) -> Spec:
    """The encoding of a name, without a title."""
    return {"field": field, "type": "nominal", "title": None, **more}


def _once(rows: Iterable[Row], field: str) -> list[object]:
    """The values of a field, each once, in their order."""
    return list(dict.fromkeys(row[field] for row in rows))


def _chart(rows: Sequence[Row], **parts) -> Spec:
    """The chart with its rows."""
    return {"data": {"values": rows}, **parts}


def lines(
    rows: Sequence[Row],
    x: Axis,
    y: Axis,
    panel: str | None = None,
    dash: str | None = None,
) -> Spec | None:
    """Lines with points, one colour a `series`; intervals where rows hold `low` and `high`. One picture per `panel`.

    None where there is nothing to draw.
    """
    rows = [row for row in rows if row.get(x.field) is not None and row.get(y.field) is not None]
    if not rows:
        return None

    def scaled(axis: Axis) -> Spec:
        if not axis.log:
            return _number(axis.field, title=axis.title, scale={"zero": True})
        # A log axis ends at the data; zero has no logarithm.
        values = sorted({row[axis.field] for row in rows})
        marks = {"values": values if len(values) <= FEW else ticks(values), "format": "~g"}
        return _number(axis.field, title=axis.title, scale={"type": "log", "nice": False, "padding": 8}, axis=marks)

    series = _once(rows, "series")
    base = {"x": scaled(x), "color": _name("series", sort=series)}
    if dash:
        base["strokeDash"] = {"field": dash, "type": "nominal", "legend": {"symbolType": "stroke"}}
    layers = [
        {"mark": {"type": "rule"}, "encoding": base | {"y": _number("low", title=y.title), "y2": {"field": "high"}}},
        {"mark": {"type": "line", "point": True}, "encoding": base | {"y": scaled(y)}},
    ]
    picture = {"layer": layers, "width": WIDTH, "height": HEIGHT}
    return _chart(rows, **(_faceted(panel, picture) if panel else picture))


def _faceted(panel: str, picture: Spec) -> Spec:
    """One picture for each value of a field."""
    return {"facet": _name(panel), "spec": picture, "columns": 2}


def shares(rows: Sequence[Row], title: str) -> Spec | None:
    """Stacked bars that sum to 100 %: rows hold `series`, `part` and `share`. None where there is nothing to draw."""
    if not rows:
        return None
    parts = _once(rows, "part")
    rows = [{**row, "rank": parts.index(row["part"])} for row in rows]
    encoding = {
        "x": _number("share", title=title, stack="normalize", axis={"format": "%"}),
        "y": _name("series", sort=_once(rows, "series")),
        "color": _name("part", sort=parts),
        "order": _number("rank"),  # of the stack, which follows the names otherwise
    }
    return _chart(rows, mark={"type": "bar"}, encoding=encoding, width=2 * WIDTH, height={"step": ROW_STEP})


def bars(rows: Sequence[Row], title: str, panel: str) -> Spec | None:
    """Bars side by side: rows hold `series`, `value` and the field `panel`. None where there is nothing to draw."""
    if not rows:
        return None
    names = _once(rows, "series")
    encoding = {
        "x": _number("value", title=title),
        "y": _name("series", sort=names),
        "color": _name("series", sort=names, legend=None),
    }
    bar = {"mark": {"type": "bar"}, "encoding": encoding}
    return _chart(rows, **_faceted(panel, {"layer": [bar], "width": WIDTH}))


def svg(chart: Spec) -> str:
    """The chart as SVG."""
    import vl_convert

    view = {"continuousWidth": WIDTH, "continuousHeight": WIDTH}  # of a chart that does not say its size
    return vl_convert.vegalite_to_svg(json.dumps({"config": {"view": view}, **chart}))
