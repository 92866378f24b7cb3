"""Charts of experiments: estimates with their intervals, linear or log-log, drawn by Altair without a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 300, 240


@dataclass(frozen=True)
class Axis:
    """A field of the rows on an axis, with its title."""

    field: str
    title: str
    log: bool = False


def lines(rows: list[dict], x: Axis, y: Axis, panel: str | None = None, dash: str | None = None) -> Any:
    """Lines with points, one colour a `series`; intervals where rows hold `low` and `high`. One picture per `panel`.

    Returns an Altair chart, or None where there is nothing to draw.
    """
    rows = [row for row in rows if row.get(x.field) is not None and row.get(y.field) is not None]
    if not rows:
        return None
    import altair as alt  # takes a second

    def scaled(axis: Axis) -> dict:
        # A log axis ends at the data; zero has no logarithm.
        return {"title": axis.title, "scale": alt.Scale(type="log", nice=False) if axis.log else alt.Scale(zero=True)}

    base = alt.Chart().encode(
        x=alt.X(x.field, type="quantitative", **scaled(x)),
        color=alt.Color("series", type="nominal", title=None, sort=list(dict.fromkeys(r["series"] for r in rows))),
    )
    if dash:
        base = base.encode(strokeDash=alt.StrokeDash(dash, type="nominal", legend=alt.Legend(symbolType="stroke")))
    marks = base.mark_line(point=True).encode(y=alt.Y(y.field, type="quantitative", **scaled(y)))
    rules = base.mark_rule().encode(y=alt.Y("low", type="quantitative", title=y.title), y2="high")
    chart = alt.layer(rules, marks, data=alt.Data(values=rows)).properties(width=WIDTH, height=HEIGHT)
    if panel:
        chart = chart.facet(facet=alt.Facet(panel, type="nominal", title=None), columns=2)
    return chart


def shares(rows: list[dict], title: str) -> Any:
    """Stacked bars that sum to 100 %: rows hold `series`, `part` and `share`. None where there is nothing to draw."""
    if not rows:
        return None
    import altair as alt

    parts = list(dict.fromkeys(row["part"] for row in rows))
    rows = [row | {"rank": parts.index(row["part"])} for row in rows]
    return (
        alt.Chart(alt.Data(values=rows), width=2 * WIDTH)
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
