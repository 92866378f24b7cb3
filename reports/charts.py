"""Charts by Altair: estimates with their intervals, shares, tiles, rooflines. Rows go in, a chart comes out.

A cell without a figure has no mark, never one at zero. Axes are logarithmic where the figures span a decade.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 300, 240
ROW_STEP, OFFSET_STEP = 22, 13
# Longer names than this stand under each other in a legend, or a phone would not show them.
NARROW = 20
# So few different values on a log axis are marked each, such as the batches of a sweep.
FEW = 6
# Told apart on white and on black; shapes tell series apart without colour.
PALETTE = ("#3b7dd8", "#d1622b", "#2f9e63", "#a05cc9", "#c94f7c", "#8a7a1f", "#1f93a8", "#7c6f64", "#e0484d", "#5b6ee1")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
REGIME_COLOURS = {"overhead": "#c94f7c", "bandwidth": "#d1962b", "mixed": "#7d8794", "compute": "#3b7dd8"}


@dataclass(frozen=True)
class Axis:
    """A field of the rows on an axis, with its title."""

    field: str
    title: str
    log: bool = False


def unchecked() -> AbstractContextManager:
    """Within this, Altair does not check charts against Vega-Lite's schema, which takes most of its time."""
    from altair.utils.schemapi import debug_mode

    return debug_mode(False)


def spans_decades(values: Iterable[float | None]) -> bool:
    """Whether positive figures lie so far apart that a linear axis would hide the small ones."""
    known = [value for value in values if value is not None]
    return bool(known) and min(known) > 0 and max(known) >= 10 * min(known)


def ticks(values: Iterable[float | None]) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2 and 5 in each decade, or the decades alone where these are many."""
    known = [value for value in values if value]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]


def coloured(series: Iterable[str], names: list[str]) -> dict:
    """Colour and symbol of every series, the same in all charts that share `names`."""
    import altair as alt

    own = set(series)
    shown = [name for name in names if name in own]
    places = [names.index(name) for name in shown]
    columns = 1 if max(map(len, shown), default=0) > NARROW else 2
    legend = alt.Legend(orient="top", columns=columns, symbolLimit=40, labelLimit=200) if len(shown) > 1 else None
    colours = alt.Scale(domain=shown, range=[PALETTE[place % len(PALETTE)] for place in places])
    symbols = alt.Scale(domain=shown, range=[SYMBOLS[place % len(SYMBOLS)] for place in places])
    return {
        "color": alt.Color("series", type="nominal", title=None, scale=colours, legend=legend),
        "shape": alt.Shape("series", type="nominal", title=None, scale=symbols, legend=legend),
    }


def lines(
    rows: list[dict],
    x: Axis,
    y: Axis,
    panel: str | None = None,
    dash: str | None = None,
    names: list[str] | None = None,
) -> Any:
    """Lines with points, one colour a `series`; intervals where rows hold `low` and `high`. One picture per `panel`.

    `names` are all series of the page, so that each has one colour. Returns an Altair chart, or None where there is
    nothing to draw.
    """
    rows = [row for row in rows if row.get(x.field) is not None and row.get(y.field) is not None]
    if not rows:
        return None
    import altair as alt  # takes a second

    def scaled(axis: Axis) -> dict:
        if not axis.log:
            return {"title": axis.title, "scale": alt.Scale(zero=True)}
        # A log axis ends at the data; zero has no logarithm.
        found = sorted({row[axis.field] for row in rows})
        marks = alt.Axis(values=found if len(found) <= FEW else ticks(found), format="~g")
        return {"title": axis.title, "scale": alt.Scale(type="log", nice=False, padding=8), "axis": marks}

    base = alt.Chart().encode(
        x=alt.X(x.field, type="quantitative", **scaled(x)),
        color=alt.Color("series", type="nominal", title=None, sort=list(dict.fromkeys(r["series"] for r in rows))),
    )
    if names:
        base = base.encode(color=coloured((row["series"] for row in rows), names)["color"])
    if dash:
        base = base.encode(strokeDash=alt.StrokeDash(dash, type="nominal", legend=alt.Legend(symbolType="stroke")))
    marks = base.mark_line(point=True).encode(y=alt.Y(y.field, type="quantitative", **scaled(y)))
    rules = base.mark_rule().encode(y=alt.Y("low", type="quantitative", title=y.title), y2="high")
    chart = alt.layer(rules, marks).properties(width=WIDTH, height=HEIGHT)
    if panel:
        chart.data = alt.Data(values=rows)
        return chart.facet(facet=alt.Facet(panel, type="nominal", title=None), columns=2)
    return _of(rows, chart)


def _of(rows: list[dict], chart: Any) -> Any:
    """The finished chart with its data: Altair copies a chart, data and all, with every step that makes it."""
    import altair as alt

    chart.data = alt.Data(values=rows)
    return chart


def dots(
    rows: list[dict], title: str, names: list[str], mark: tuple[float, str] | None = None, zero: bool = False
) -> Any:
    """Points with intervals along x, a line of the chart for each `row`, side by side where it has several `series`.

    Rows hold `row`, `series`, `value` and, where there is one, the interval `low` to `high`. `mark` is a line to
    compare with: where it lies and what it is called. `zero`: a linear axis begins at zero. None without a value.
    """
    rows = [row for row in rows if row.get("value") is not None]
    if not rows:
        return None
    import altair as alt

    ends = [row.get(name) for row in rows for name in ("value", "low", "high")] + ([mark[0]] if mark else [])
    log = spans_decades(ends)
    scale = alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=zero, padding=12)
    axis = alt.Axis(values=ticks(ends), format="~g") if log else alt.Axis(tickCount=5, format="~g")
    order = list(dict.fromkeys(row["row"] for row in rows))
    several = len({(row["row"]) for row in rows}) < len(rows)
    x = alt.X("value", type="quantitative", title=title, scale=scale, axis=axis)
    base = alt.Chart().encode(y=alt.Y("row", type="nominal", title=None, sort=order, axis=alt.Axis(labelLimit=190)))
    if several:
        shown = {row["series"] for row in rows}
        base = base.encode(yOffset=alt.YOffset("series", type="nominal", sort=[n for n in names if n in shown]))
    look = coloured((row["series"] for row in rows), names)
    if not several:
        look = {name: channel.copy() for name, channel in look.items()}
        for channel in look.values():
            channel.legend = None
    rules = base.mark_rule(strokeWidth=2, opacity=0.75).encode(
        x=alt.X("low", type="quantitative", title=title, scale=scale), x2="high", color=look["color"]
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, tooltip=_tooltip(rows, title), **look)
    layers = [rules, points] if any(row.get("low") is not None for row in rows) else [points]
    if mark:
        layers.insert(0, _reference(*mark, scale))
    step = alt.Step(OFFSET_STEP, **{"for": "offset"}) if several else alt.Step(ROW_STEP)
    return _of(rows, alt.layer(*layers).properties(height=step))


def _reference(value: float, name: str, scale: Any) -> Any:
    """A dashed line at `value`."""
    import altair as alt

    data = alt.Data(values=[{"mark": value, "name": name}])
    at = alt.X("mark", type="quantitative", scale=scale)
    return (
        alt.Chart(data).mark_rule(strokeDash=[4, 3], color="currentColor", opacity=0.7).encode(x=at, tooltip="name:N")
    )


def _tooltip(rows: list[dict], title: str) -> list:
    import altair as alt

    shown = {"row": "shape", "series": "mode", "value": title, "low": "interval from", "high": "to"}
    return [
        alt.Tooltip(name, title=text, type="nominal" if name in ("row", "series") else "quantitative")
        for name, text in shown.items()
        if any(row.get(name) is not None for row in rows)
    ]


def tiles(rows: list[dict]) -> Any:
    """A grid of regimes: rows hold `series`, `column` and `regime`; a missing cell stays blank. None without rows."""
    if not rows:
        return None
    import altair as alt

    across = list(dict.fromkeys(row["column"] for row in rows))
    down = list(dict.fromkeys(row["series"] for row in rows))
    base = alt.Chart(height=alt.Step(26)).encode(
        x=alt.X("column", type="nominal", title=None, sort=across, axis=alt.Axis(labelAngle=-40, orient="bottom")),
        y=alt.Y("series", type="nominal", title=None, sort=down, axis=alt.Axis(labelLimit=190)),
    )
    colours = alt.Scale(domain=list(REGIME_COLOURS), range=list(REGIME_COLOURS.values()))
    legend = alt.Legend(orient="top", columns=1)
    boxes = base.mark_rect(stroke="white", strokeWidth=1).encode(
        color=alt.Color("regime", type="nominal", title=None, scale=colours, legend=legend),
        tooltip=[alt.Tooltip(name, type="nominal") for name in ("series", "column", "regime")],
    )
    letters = base.mark_text(color="white", fontWeight="bold").encode(text=alt.Text("letter", type="nominal"))
    return _of(rows, alt.layer(boxes, letters))


def roofline(rows: list[dict], roofs: list[dict], names: list[str]) -> Any:
    """Achieved TFLOP/s over intensity, both logarithmic, under the measured roofs.

    `rows` hold `series`, `shape`, `intensity` and `achieved`; `roofs` `name`, `tflops` and `gb_per_s`.
    """
    if not rows:
        return None
    import altair as alt

    values = [row["intensity"] for row in rows]
    ridges = [1e3 * roof["tflops"] / roof["gb_per_s"] for roof in roofs]
    low, high = min(values + ridges) / 2, max(values + ridges) * 2
    corners = [
        {"roof": roof["name"], "intensity": x, "achieved": min(roof["tflops"], x * roof["gb_per_s"] / 1e3)}
        for roof, ridge in zip(roofs, ridges, strict=True)
        for x in (low, ridge, high)
    ]
    heights = [row["achieved"] for row in [*rows, *corners]]
    axes = [alt.Axis(values=ticks(values), format="~g") for values in ([low, high], heights)]
    across = alt.Scale(type="log", domain=[low, high])
    upwards = alt.Scale(type="log", domain=[min(heights) / 1.5, max(heights) * 1.5])
    x = alt.X("intensity", type="quantitative", scale=across, title="intensity, FLOP per byte", axis=axes[0])
    y = alt.Y("achieved", type="quantitative", scale=upwards, title="TFLOP/s", axis=axes[1])
    ceiling = alt.Chart(alt.Data(values=corners)).mark_line(color="currentColor", opacity=0.6, strokeDash=[6, 3])
    ceiling = ceiling.encode(x=x, y=y, detail="roof:N", tooltip="roof:N")
    points = alt.Chart().mark_point(filled=True, size=55, opacity=0.9)
    tooltip = [alt.Tooltip(n, type="nominal") for n in ("series", "shape")] + ["intensity:Q", "achieved:Q"]
    points = points.encode(x=x, y=y, tooltip=tooltip, **coloured((row["series"] for row in rows), names))
    return _of(rows, alt.layer(ceiling, points).properties(height=HEIGHT))


def shares(rows: list[dict], title: str) -> Any:
    """Stacked bars that sum to 100 %: rows hold `series`, `part` and `share`. None where there is nothing to draw."""
    if not rows:
        return None
    import altair as alt

    parts = list(dict.fromkeys(row["part"] for row in rows))
    rows = [row | {"rank": parts.index(row["part"])} for row in rows]
    return (
        alt.Chart(alt.Data(values=rows), width=2 * WIDTH, height=alt.Step(ROW_STEP))
        .mark_bar()
        .encode(
            x=alt.X("share", type="quantitative", title=title, stack="normalize", axis=alt.Axis(format="%")),
            y=alt.Y("series", type="nominal", title=None, sort=list(dict.fromkeys(row["series"] for row in rows))),
            color=alt.Color("part", type="nominal", title=None, sort=parts),
            order=alt.Order("rank", type="quantitative"),  # of the stack, which follows the names otherwise
        )
    )


def bars(rows: list[dict], title: str, panel: str) -> Any:
    """Bars side by side: rows hold `series`, `value` and the field `panel`. None where there is nothing to draw."""
    if not rows:
        return None
    import altair as alt

    names = list(dict.fromkeys(row["series"] for row in rows))
    bar = (
        alt.Chart()
        .mark_bar()
        .encode(
            x=alt.X("value", type="quantitative", title=title),
            y=alt.Y("series", type="nominal", title=None, sort=names),
            color=alt.Color("series", type="nominal", title=None, sort=names, legend=None),
        )
    )
    chart = alt.layer(bar, data=alt.Data(values=rows)).properties(width=WIDTH)
    return chart.facet(facet=alt.Facet(panel, type="nominal", title=None), columns=2)


def svg(chart: Any) -> str:
    """The chart as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(chart.to_json())
