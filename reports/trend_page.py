"""A history as HTML: a section with a row a cell, each with its chart, on a page of its own or on a site's index."""

from __future__ import annotations

from html import escape

from measurement.text import times
from reports import drawing
from reports.content import span, text_of
from reports.page import template
from reports.trend import METHOD, MOST_LINES, TITLE, History, Line, Mark, answer, sentence
from reports.verdict.places import Known

_HEADS = ("cell", "ms, first → last", "over the runs, with 95 % intervals", "steps")


def html(history: History, known: Known) -> str:
    """The whole page; `known` has the frameworks' colours."""
    return template.page(TITLE, f"<main>{section(history, known)}</main>", "history")


def section(history: History, known: Known, title: str = TITLE, key: str = "history") -> str:
    """The history as a part of a page, under this title; `key` is its address within the page."""
    runs = zip(history.labels, history.moments, strict=True)
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in _HEADS)
    rows = "".join(_row(history, line, known) for line in history.lines[:MOST_LINES])
    left_out = len(history.lines) - MOST_LINES
    more = f'<p class="rest">And {times(left_out, "more cell")}.</p>' if left_out > 0 else ""
    return "".join(
        (
            f'<section id="{key}"><h2>{escape(title)}: {escape(answer(history))}</h2>',
            *(f"<p>{escape(text)}</p>" for text in (*history.cautions, history.names.shared) if text),
            f'<div class="table" role="region" tabindex="0" aria-label="{escape(title, quote=True)}">',
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}",
            "<details><summary>Runs</summary><ol>",
            *(f"<li>{escape(label)}: {escape(moment.name)}</li>" for label, moment in runs),
            f"</ol></details><p>{escape(METHOD)}</p></section>",
        )
    )


def _row(history: History, line: Line, known: Known) -> str:
    steps = "<br>".join(f'<span class="v-{_kind(m)}">{escape(sentence(history, m))}</span>' for m in line.steps)
    cells = escape(history.name(line)), line.ends, _chart(history, line, known), steps
    titled = (f'<td data-title="{escape(head)}">{cell}</td>' for head, cell in zip(_HEADS, cells, strict=True))
    return f"<tr>{''.join(titled)}</tr>"


def _kind(mark: Mark) -> str:
    """The class by which the page's style colours a step."""
    return "cannot-be-told" if mark.shared else "slower" if mark.ratio.value > 1 else "faster"


def _chart(history: History, line: Line, known: Known) -> str:
    framework = line.cell.partition("/")[0]
    words = [
        interval and f"{label}: {text_of(interval.value)} ms ({span(interval.low, interval.high)})"
        for label, interval in zip(history.labels, line.latency, strict=True)
    ]
    picture = drawing.series(line.latency, words, [m.at for m in line.steps], drawing.hue(framework, known))
    label = escape(f"{history.name(line)}, {line.ends} ms", quote=True)
    return f'<div class="chart" role="img" aria-label="{label}">{picture}</div>'
