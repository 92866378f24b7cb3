"""The page of a report: its head, its filters, and its sections as panels with cards, pictures and tables.

Optional end tags in HTML (of cells, rows and items) are omitted: they would be a tenth of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from measurement.text import times
from reports import drawing, markdown
from reports.content import Card, Chart, Figure, Item, Panel, Row, Section, Table
from reports.page import template
from reports.report_data import ReportData

# Sections on the origin of the figures; they are last, folded.
FOLDED = {"flags", "failures", "machines"}
MOST_COMMANDS = 5  # that are unfolded
LONG = 44  # a text longer than this is broken into lines


def html(title: str, data: ReportData, sections: list[Section], heading: str = "", home: str = "") -> str:
    """Return the page; `heading` names the runs, `home` is the address of the index of its site."""
    settings = [found[0].setting.name for found in data.answers]
    parts = {
        "title": escape(title),
        "home": f'<a href="{escape(home)}">All runs</a>' if home else "",
        "subtitle": escape(_subtitle(data, heading)),
        "navigation": "".join(f'<a href="#{s.key}">{escape(s.title)}</a>' for s in sections[1:]),
        "filters": _filters(settings, sections, data),
        "symbols": drawing.symbols(data.looks_in_order),
        "body": "\n".join(fragment(section) for section in sections),
        "commands": _commands(data.commands),
        "script": template.asset("page.js"),
    }
    return template.page(title, template.filled(template.asset("page.html"), parts))


def _subtitle(data: ReportData, heading: str) -> str:
    points = data.points
    frameworks = dict.fromkeys((p.record.framework, p.record.framework_version) for p in points.all)
    versions = [f"{framework} {version}" for framework, version in frameworks if version]
    started = sorted({time[:10] for time in {point.record.started_at for point in points.all} if time})
    days = (
        [started[0]] if started and started[0] == started[-1] else [f"{started[0]} to {started[-1]}"] if started else []
    )
    cells = [times(len(points.all), "cell")] if points.all else []
    devices = list(dict.fromkeys(device or "an unnamed device" for _, device in points.machines))
    return " · ".join(filter(None, [", ".join(devices), ", ".join(versions), *cells, *days, heading]))


def _commands(commands: Sequence[str]) -> str:
    """Return the commands of the runs; many are folded."""
    items = "".join(f"<li><code>{escape(command)}</code></li>" for command in commands)
    if len(commands) <= MOST_COMMANDS:
        return f"<ul>{items}</ul>"
    return f"<details><summary>The {len(commands)} commands that measured this</summary><ul>{items}</ul></details>"


def _filters(settings: list[str], sections: list[Section], data: ReportData) -> str:
    """Return the filters: a setting, a batch, a length, which modes are shown. Hidden without scripts."""
    shown = len(sections[0].panels) if sections else 0
    options = "".join(f'<option value="{n}">{escape(name)}</option>' for n, name in enumerate(settings[:shown]))
    if not options:
        return ""
    # Their order gives a mode's number.
    modes = "".join(
        f'<label><input type="checkbox" name="mode" value="{escape(name, quote=True)}" checked> {escape(name)}</label>'
        for name in data.points.series
    )
    return (
        '<form id="filters" aria-label="What is shown" hidden>'
        f'<label class="wide">Setting <select name="setting">{options}</select></label>'
        '<label>Batch <select name="batch"></select></label><label>Tokens <select name="tokens"></select></label>'
        f'<details class="modes"><summary>Modes</summary><div>{modes}</div></details>'
        '<button type="button" id="link">Copy link</button><output id="count" aria-live="polite"></output></form>'
    )


def fragment(section: Section) -> str:
    """Return a section as HTML."""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    panels = "\n".join(panel(one, n, section.key == "answer") for n, one in enumerate(section.panels))
    rest = f'<p class="rest">{escape(markdown.left_out(section))}</p>' if section.left_out else ""
    title = f'<h2 id="{section.key}-title">{escape(section.title)}</h2>'
    if section.key in FOLDED:
        body = f"<details><summary>{title}</summary>{sentences}{panels}{rest}</details>"
    elif section.key == "answer":
        how = f'<details class="how"><summary>How to read this</summary>{sentences}</details>' if panels else sentences
        body = f'<h2 id="answer-title" class="quiet">{escape(section.title)}</h2>{panels}{rest}{how}'
    else:
        body = f"{title}{sentences}{panels}{rest}"
    return f'<section id="{section.key}" aria-labelledby="{section.key}-title">{body}</section>'


def panel(content: Panel, place: int, is_answer: bool = False) -> str:
    """Return a panel that folds; the first of a section's settings is open, the page's script opens the chosen one."""
    # Without scripts the first setting's panel is open; readers can unfold the others.
    is_open = " open" if place == 0 or not content.setting else ""
    chosen = f' data-setting="{content.setting}"' if content.setting else ""
    items = "".join(f"<li>{escape(note)}" for note in content.notes) if not is_answer else ""
    notes = f'<ul class="notes">{items}</ul>' if items else ""
    first = next((n for n, chart in enumerate(content.charts) if chart.first), 0)
    several = len(content.charts) > 1 or is_answer
    charts = "".join(_chart(chart, several, n == first) for n, chart in enumerate(content.charts))
    axes = f'<p class="axes">{escape(content.axes)}</p>' if content.axes else ""
    figures = _figures(content.table, is_answer or not (charts or notes)) if content.table else ""
    return (
        f'<details class="panel"{chosen}{is_open}><summary>{escape(content.title)}</summary>'
        f"{charts}{axes}{content.legend}{notes}{figures}</details>"
    )


def _chart(chart: Chart, several: bool, first: bool) -> str:
    shape = f' class="shape{" on first" if first else ""}"' if several else ""
    label = escape(chart.description, quote=True)
    named = f"<h3>{escape(shape_name(chart))}</h3>" if several and chart.tags else ""
    card = _card(chart.card) if chart.card else ""
    notes = "".join(f'<p class="rest">{escape(note)}</p>' for note in chart.notes)
    return (
        f'<figure{shape}{attributes(chart.tags)} aria-label="{label}">{named}{card}'
        f'<div class="chart">{chart.drawing}</div>{notes}</figure>'
    )


def shape_name(chart: Chart) -> str:
    """Return the shape of a picture as text: `Batch 8, 128 tokens`."""
    words = {"batch": "batch {}", "tokens": "{} tokens", "shape": "{}"}
    text = ", ".join(words[name].format(value) for name, value in chart.tags.items() if name in words)
    return text[:1].upper() + text[1:]


def _card(card: Card) -> str:
    items = "".join(map(_item, card.items))
    lines = "".join(f"<li>{escape(line, quote=False)}" for line in card.lines)
    return f'<div class="card"><ul class="todo">{items}</ul><ul>{lines}</ul></div>'


def _item(item: Item) -> str:
    copy = ' <button type="button" class="copy" hidden>Copy</button>' if item.is_code else ""
    todo = f"<code>{escape(item.todo)}</code>{copy}" if item.is_code else f"<b>{escape(item.todo)}</b>"
    figures = f" <span>{escape(item.figures)}</span>"
    return f'<li class="{item.kind}"><small>{escape(item.framework)}</small> {todo}{figures}'


def _figures(content: Table, is_open: bool) -> str:
    more = f'<p class="rest">{escape(markdown.rows_left_out(content))}</p>' if content.left_out else ""
    body = f'<div class="table">{table(content)}</div>{more}'
    if is_open:
        return body
    return f'<details class="figures"><summary>Figures ({times(content.total, "row")})</summary>{body}</details>'


def table(content: Table) -> str:
    """Return a table; numbers are aligned to the right."""
    numeric = [content.is_number(index) for index in range(len(content.columns))]
    head = "".join(
        f"<th scope=col{' class=n' if number else ''}>{escape(name.strip(), quote=False)}"
        for name, number in zip(content.columns, numeric, strict=True)
    )
    body = "".join(_row(row, numeric) for row in content.rows)
    return f"<table><thead><tr>{head}<tbody>{body}</table>"


def _row(row: Row, numeric: Sequence[bool]) -> str:
    return f"<tr{attributes(row.tags)}>{''.join(map(_cell, row.cells, numeric))}"


def _cell(cell: str | Figure, numeric: bool) -> str:
    if isinstance(cell, Figure):
        exact = f"{cell.value:.6g}"
        return f"<td data-v{f'={exact}' if exact != cell.text else ''}>{cell.text}"
    kind = " class=long" if len(cell) > LONG else " class=n" if numeric and cell else ""
    return f"<td{kind}>{escape(cell, quote=False)}"


def attributes(tags: dict[str, str]) -> str:
    """Return the attributes by which the page's script filters."""
    return "".join(f' data-{name}="{escape(value, quote=True)}"' for name, value in tags.items())
