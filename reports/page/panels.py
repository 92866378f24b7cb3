"""Panels as HTML: sentences, cards, pictures and folded tables that can be copied.

End tags that HTML lets one leave out (of cells, rows and items) are omitted: they would be a tenth of a page.
"""

from __future__ import annotations

from html import escape
from itertools import groupby

from measurement.statistics import INCONCLUSIVE
from measurement.text import times
from reports import markdown
from reports.content import Card, Chart, Figure, Panel, Row, Table

LONG = 44  # a text longer than this is broken into lines
# Verdicts in a word; the page's style colours them.
VERDICTS = {"faster", "slower", "yes", "no", INCONCLUSIVE}


def panel(content: Panel, section: str, place: int) -> str:
    """Return a panel that folds; the first of a section's settings is open, the page's script opens the chosen one."""
    # Of panels for settings the first is shown to those without scripts; all others they can unfold.
    is_open = " open" if place == 0 or not content.setting else ""
    chosen = f' data-setting="{content.setting}"' if content.setting else ""
    items = "".join(f"<li>{escape(note)}" for note in content.notes)
    notes = f'<ul class="notes">{items}</ul>' if items else ""
    several = len(content.charts) > 1 or any(chart.cards for chart in content.charts)
    first = next((n for n, chart in enumerate(content.charts) if chart.first), 0)
    charts = "".join(_chart(chart, several, n == first) for n, chart in enumerate(content.charts))
    axes = f'<p class="axes">{escape(content.axes)}</p>' if content.axes else ""
    folded = _folded(content.table, "All figures" if charts or notes else "") if content.table else ""
    return (
        f'<details class="panel"{chosen}{is_open}><summary>{escape(content.title)}</summary>'
        f"{charts}{axes}{notes}{content.legend}{folded}</details>"
    )


def _chart(chart: Chart, several: bool, first: bool) -> str:
    shape = f' class="shape{" on first" if first else ""}"' if several else ""
    cards = f'<div class="cards">{"".join(map(_card, chart.cards))}</div>' if chart.cards else ""
    label = escape(chart.description, quote=True)
    named = f"<h3>At {escape(shape_name(chart))}</h3>" if several and chart.tags else ""
    return (
        f'<figure{shape}{attributes(chart.tags)} aria-label="{label}">{named}{cards}'
        f'<div class="chart">{chart.drawing}</div></figure>'
    )


def shape_name(chart: Chart) -> str:
    """Return which shape a picture is of."""
    words = {"batch": "batch {}", "tokens": "{} tokens", "shape": "{}"}
    return ", ".join(words[name].format(value) for name, value in chart.tags.items() if name in words)


def _card(card: Card) -> str:
    lines = "".join(f"<li>{escape(line, quote=False)}" for line in card.lines)
    more = f"<ul>{lines}</ul>" if lines else ""
    question = f"<h4>{escape(card.question)}</h4><strong>{escape(card.answer)}</strong>"
    return f'<div class="card {card.kind}">{question}{more}</div>'


def _folded(content: Table, title: str) -> str:
    more = f'<p class="rest">{escape(markdown.rows_left_out(content))}</p>' if content.left_out else ""
    body = f'<div class="table">{table(content)}</div>{more}'
    if not title:
        return body
    return f'<details class="figures"><summary>{title} ({times(content.total, "row")})</summary>{body}</details>'


def table(content: Table) -> str:
    """Return a table; numbers are aligned to the right."""
    numeric = [content.is_number(index) for index in range(len(content.columns))]
    head = "".join(
        f"<th{' class=n' if number else ''}>{escape(name.strip(), quote=False)}"
        for name, number in zip(content.columns, numeric, strict=True)
    )
    # Rows of one shape stand together, so that the page's script hides them together.
    body = "".join(f"<tbody{tags}>{_rows(list(rows))}" for (tags, _), rows in groupby(content.rows, key=_shared))
    return f"<table><thead><tr>{head}{body}</table>"


def _shared(row: Row) -> tuple[str, str | Figure]:
    """Return what rows that stand together share: what the page's script chooses by, and their first cell."""
    return attributes({name: value for name, value in row.tags.items() if name != "mode"}), row.cells[0]


def _rows(rows: list[Row]) -> str:
    """Return rows that share their first cell, which stands in the first of them alone."""
    first, *others = (row.cells for row in rows)
    return "".join(f"<tr>{''.join(map(_cell, cells))}" for cells in (first, *(("", *rest[1:]) for rest in others)))


def _cell(cell: str | Figure) -> str:
    if isinstance(cell, Figure):
        exact = f"{cell.value:.6g}"
        return f"<td data-v{f'={exact}' if exact != cell.text else ''}>{cell.text}"
    word = cell.partition(",")[0].partition(" (")[0]
    kind = f" class=v-{word.replace(' ', '-')}" if word in VERDICTS else " class=long" if len(cell) > LONG else ""
    return f"<td{kind}>{escape(cell, quote=False)}"


def attributes(tags: dict[str, str]) -> str:
    """Return what the page's script chooses by."""
    return "".join(f' data-{name}="{escape(value, quote=True)}"' for name, value in tags.items())
