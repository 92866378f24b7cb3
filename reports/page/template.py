"""Filling in a template."""

from __future__ import annotations


def filled(template: str, parts: dict[str, str]) -> str:
    """The template with its marks filled in; split rather than replaced, since what is filled in may hold a mark."""
    first, *pieces = template.split("{{")
    found = [first]
    for piece in pieces:
        name, _, rest = piece.partition("}}")
        found += [parts[name], rest]
    return "".join(found)
