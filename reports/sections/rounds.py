"""The page of a run of fresh processes: one section, with a look for each strategy."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from measurement.starts import EAGER
from reports import drawing
from reports.content import Section
from reports.page import fragment, template


def html(section: Section, strategies: Iterable[str], title: str, subtitle: str, command: str) -> str:
    """Return the whole page; the strategy `eager` is hollow, and others differ by colour and symbol."""
    tones, paths = drawing.TONES, drawing.PATHS
    looks = [drawing.Look(tones[n % len(tones)], n % len(paths), name == EAGER) for n, name in enumerate(strategies)]
    body = (
        f"{drawing.symbols(looks)}<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>"
        f"<main>{fragment(section)}</main><footer><p><code>{escape(command)}</code></p></footer>"
    )
    return template.page(title, body)
