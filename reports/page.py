"""The report as one HTML page that needs nothing else: tables as HTML, charts by Vega, whose scripts it holds."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from reports import markdown
from reports.content import AXES, Chart, Figure, Panel, Row, Section, Table
from reports.material import Material

ASSETS = Path(__file__).resolve().parent / "assets"
# Vega, Vega-Lite and vega-embed in one script. Bundling takes seconds, so it is done once for each version.
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "vega"
# A table with more columns than this stands under its chart, not beside it.
WIDE = 7
# A text longer than this is broken into lines.
LONG = 44
_TITLES = {"implementation": "Implementation", "dtype": "Precision"}


def html(title: str, material: Material, sections: list[Section]) -> str:
    """The whole page."""
    charts: list[dict] = []
    body = "\n".join(_section(section, charts) for section in sections)
    parts = {
        "title": escape(title),
        "subtitle": escape(_subtitle(material)),
        "navigation": "".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections),
        "filters": _filters(material),
        "body": body,
        "style": (ASSETS / "page.css").read_text(encoding="utf-8"),
        "charts": json.dumps(charts, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "vega": re.sub("</(?=script)", r"<\\/", vega()) if charts else "",
        "script": (ASSETS / "page.js").read_text(encoding="utf-8"),
    }
    template = (ASSETS / "page.html").read_text(encoding="utf-8")
    # Split rather than replaced one after the other: what is filled in may hold a mark's text.
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def vega() -> str:
    """Vega's scripts, from the installed version; kept in a cache where that can be written."""
    import vl_convert

    kept = CACHE / f"{vl_convert.__version__}.js"
    if kept.exists():
        return kept.read_text(encoding="utf-8")
    script = vl_convert.javascript_bundle()
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(".new")
        new.write_text(script, encoding="utf-8")
        new.replace(kept)
    except OSError:
        pass
    return script


def _subtitle(material: Material) -> str:
    points = material.points
    found = dict.fromkeys((p.record["framework"], p.record.get("framework_version")) for p in points.all)
    versions = [f"{framework} {version}" for framework, version in found if version]
    begun = sorted({time[:10] for time in {point["started_at"] for point in points.all} if time})
    days = [begun[0]] if begun and begun[0] == begun[-1] else [f"{begun[0]} to {begun[-1]}"] if begun else []
    cells = [f"{len(points.all):,} cells"] if points.all else []
    return " · ".join([", ".join(points.machines.values()), ", ".join(versions), *cells, *days])


def _filters(material: Material) -> str:
    """A group of checkboxes for every axis that has more than one value."""
    groups = []
    for axis in AXES:
        found = dict.fromkeys(map(str, material.points.values[axis]))
        found |= dict.fromkeys(str(profile.get(axis)) for profile in material.profiles)
        if len(found) > 1:
            boxes = "".join(
                f'<label><input type="checkbox" name="{axis}" value="{escape(value)}" checked> {escape(value)}</label>'
                for value in found
            )
            groups.append(f"<fieldset><legend>{_TITLES.get(axis, axis.capitalize())}</legend>{boxes}</fieldset>")
    if not groups:
        return ""
    return (
        f'<form id="filters" aria-label="Filters"><span class="name">Show</span>{"".join(groups)}'
        '<button type="reset">All</button><output id="filtered" aria-live="polite"></output></form>'
    )


def _section(section: Section, charts: list[dict]) -> str:
    tag = "li" if section.key == "answer" else "p"
    sentences = "".join(f"<{tag}>{escape(sentence)}</{tag}>" for sentence in section.sentences)
    if tag == "li":
        sentences = f"<ul>{sentences}</ul>"
    panels = "\n".join(_panel(panel, f"{section.key}-{n}", charts) for n, panel in enumerate(section.panels, 1))
    rest = f'<p class="rest">{escape(markdown.left_out(section))}</p>' if section.left_out else ""
    return (
        f'<section id="{section.key}" aria-labelledby="{section.key}-title">'
        f'<h2 id="{section.key}-title">{escape(section.title)}</h2>{sentences}{panels}{rest}</section>'
    )


def _panel(panel: Panel, key: str, charts: list[dict]) -> str:
    rows = panel.table.rows
    # An axis on which all rows agree is the panel's; the page hides whole panels by those.
    shared = {a: v for a, v in rows[0].tags.items() if all(row.tags.get(a) == v for row in rows)} if rows else {}
    picture = ""
    if panel.chart:
        charts.append({"id": f"chart-{key}", **_spec(panel.chart)})
        label = escape(panel.chart.description, quote=True)
        picture = f'<div class="chart" id="chart-{key}" role="img" aria-label="{label}"></div>'
    more = f'<p class="rest">{escape(markdown.rows_left_out(panel.table))}</p>' if panel.table.left_out else ""
    note = f"<p>{escape(panel.note)}</p>" if panel.note else ""
    layout = "single" if not picture else "pair stacked" if len(panel.table.columns) > WIDE else "pair"
    return (
        f'<div class="panel"{_tags(shared)}><h3>{escape(panel.title)}</h3>{note}<div class="{layout}">'
        f'{picture}<div class="table" role="region" tabindex="0" aria-label="{escape(panel.title, quote=True)}">'
        f"{_table(panel.table, shared)}</div></div>{more}</div>"
    )


def _spec(chart: Chart) -> dict:
    """The chart for a page: as wide as its place, its rows apart, so that the page can filter them."""
    # A height by steps would be the number of rows at first; the page follows the rows that are shown.
    step = chart.drawing.get("height") if isinstance(chart.drawing.get("height"), dict) else None
    apart = {"data", "width", "height"} if step else {"data", "width"}
    spec = {name: part for name, part in chart.drawing.items() if name not in apart}
    fit = {"type": "fit-x", "contains": "padding"}
    spec |= {"width": "container", "autosize": fit, "data": {"name": "rows"}}
    spec["description"] = chart.description  # for readers of the screen
    return {"spec": spec, "rows": chart.drawing["data"]["values"], "step": step}


def _table(table: Table, shared: dict[str, str]) -> str:
    numeric = [table.is_number(index) for index in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{" class=n" if number else ""}>{escape(name.strip())}</th>'
        for name, number in zip(table.columns, numeric, strict=True)
    )
    body = "".join(_row(row, shared) for row in table.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: Row, shared: dict[str, str]) -> str:
    own = {axis: value for axis, value in row.tags.items() if axis not in shared}
    return f"<tr{_tags(own)}>{''.join(map(_cell, row.cells))}</tr>"


def _cell(cell: str | Figure) -> str:
    if isinstance(cell, Figure):
        return f'<td class=n><data value="{cell.value!r}">{cell.text}</data></td>'
    word = cell.partition(",")[0].partition(" (")[0]
    kind = f' class="v-{word.replace(" ", "-")}"' if word in _VERDICTS else " class=long" if len(cell) > LONG else ""
    return f"<td{kind}>{escape(cell)}</td>"


# Words that are told at a glance; the page's style colours them.
_VERDICTS = {"faster", "slower", "fastest", "yes", "no", "cannot be told", "no difference shown"}


def _tags(tags: dict[str, str]) -> str:
    return "".join(f' data-{axis}="{escape(value, quote=True)}"' for axis, value in tags.items())
