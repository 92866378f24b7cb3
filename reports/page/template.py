"""Filling in a template, and the frame that all pages share."""

from __future__ import annotations

from html import escape
from pathlib import Path

from measurement.text import plain

ASSETS = Path(__file__).resolve().parent / "assets"


def page(title: str, body: str, kind: str = "") -> str:
    """Return a page that needs no other file; its style may depend on `kind`. It has no control characters."""
    parts = {"title": escape(title), "style": asset("page.css"), "kind": kind, "body": body.strip()}
    return plain(filled(asset("frame.html"), parts))


def asset(name: str) -> str:
    """Return the text of a file that pages include."""
    return (ASSETS / name).read_text(encoding="utf-8")


def filled(template: str, parts: dict[str, str]) -> str:
    """Return the template with its marks filled in, split rather than replaced, since the parts may contain marks."""
    first, *pieces = template.split("{{")
    parts_filled = [first]
    for piece in pieces:
        name, _, rest = piece.partition("}}")
        parts_filled += [parts[name], rest]
    return "".join(parts_filled)
