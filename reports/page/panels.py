"""Panels as HTML: sentences, cards, pictures and folded tables that can be copied."""

from __future__ import annotations

from html import escape
from itertools import groupby

from reports import markdown
from reports.content import Card, Chart, Figure, Panel, Row, Table

LONG = 44  # a text longer than this is broken into lines
# Words that are told at a glance; the page's style colours them.
VERDICTS = {"faster", "slower", "yes", "no", "cannot be told", "no difference shown"}


def panel(content: Panel, section: str, place: int) -> str:
    """A panel that folds; the first of a section's settings is open, and the page's script opens the one chosen."""
    # Of panels for settings the first is shown to those without scripts; all others they can unfold.
    is_open = " open" if place == 0 or not content.setting else ""
    chosen = f' data-setting="{content.setting}"' if content.setting else ""
    items = "".join(f"<li>{escape(note)}</li>" for note in content.notes)
    notes = f'<ul class="notes">{items}</ul>' if items else ""
    several = len(content.charts) > 1 or any(chart.cards for chart in content.charts)
    first = next((n for n, chart in enumerate(content.charts) if chart.first), 0)
    charts = "".join(_chart(chart, several, n == first) for n, chart in enumerate(content.charts))
    folded = _folded(content.table, "All figures" if charts or notes else "") if content.table else ""
    return (
        f'<details class="panel"{chosen}{is_open}><summary>{escape(content.title)}</summary>'
        f"{charts}{_checks(content.checks)}{notes}{content.legend}{folded}</details>"
    )


def _checks(checks: tuple[str, ...]) -> str:
    """Whether to trust the figures, in one line."""
    items = "".join(
        f'<li class="{"good" if check.startswith("✓") else "unsure"}">{escape(check)}</li>' for check in checks
    )
    return f'<ul class="checks" aria-label="Trust">{items}</ul>' if items else ""


def _chart(chart: Chart, several: bool, first: bool) -> str:
    shape = f' class="shape{" on first" if first else ""}"' if several else ""
    cards = f'<div class="cards">{"".join(map(_card, chart.cards))}</div>' if chart.cards else ""
    label = escape(chart.description, quote=True)
    named = f"<h3>At {escape(shape_name(chart))}</h3>" if several and chart.tags else ""
    return (
        f"<figure{shape}{attributes(chart.tags)}>{named}{cards}"
        f'<div class="chart" role="img" aria-label="{label}">{chart.drawing}</div></figure>'
    )


def shape_name(chart: Chart) -> str:
    """Which shape a picture is of."""
    words = {"batch": "batch {}", "tokens": "{} tokens", "shape": "{}"}
    return ", ".join(words[name].format(value) for name, value in chart.tags.items() if name in words)


def _card(card: Card) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in card.lines)
    more = f"<ul>{lines}</ul>" if lines else ""
    told = f"<h4>{escape(card.question)}</h4><strong>{escape(card.answer)}</strong>"
    return f'<div class="card {card.kind}">{told}{more}</div>'


def _folded(content: Table, title: str) -> str:
    more = f'<p class="rest">{escape(markdown.rows_left_out(content))}</p>' if content.left_out else ""
    body = (
        '<p class="copy"><button type="button" data-copy="markdown">Copy as Markdown</button> '
        '<button type="button" data-copy="csv">Copy as CSV</button></p>'
        f'<div class="table" role="region" tabindex="0" aria-label="Figures">{table(content)}</div>{more}'
    )
    if not title:
        return body
    return f'<details class="figures"><summary>{title} ({content.total:,} rows)</summary>{body}</details>'


def table(content: Table) -> str:
    """A table; numbers are aligned to the right."""
    numeric = [content.is_number(index) for index in range(len(content.columns))]
    head = "".join(
        f'<th scope="col"{" class=n" if number else ""}>{escape(name.strip())}</th>'
        for name, number in zip(content.columns, numeric, strict=True)
    )
    # Rows of one shape stand together, so that the page's script hides them together.
    groups = groupby(content.rows, key=lambda row: attributes({k: v for k, v in row.tags.items() if k != "mode"}))
    body = "".join(f"<tbody{tags}>{''.join(map(_row, rows))}</tbody>" for tags, rows in groups)
    return f"<table><thead><tr>{head}</tr></thead>{body}</table>"


def _row(row: Row) -> str:
    return f"<tr>{''.join(map(_cell, row.cells))}</tr>"


def _cell(cell: str | Figure) -> str:
    if isinstance(cell, Figure):
        return f"<td data-v={cell.value:.6g}>{cell.text}</td>"
    word = cell.partition(",")[0].partition(" (")[0]
    kind = f' class="v-{word.replace(" ", "-")}"' if word in VERDICTS else " class=long" if len(cell) > LONG else ""
    return f"<td{kind}>{escape(cell)}</td>"


def attributes(tags: dict[str, str]) -> str:
    """What the page's script chooses by."""
    return "".join(f' data-{name}="{escape(value, quote=True)}"' for name, value in tags.items())
