"""Texts of others (frameworks, paths, files) as they may stand among our own."""

from __future__ import annotations

import re

# Control characters but line breaks and tabs, invisible ones that turn the direction of writing, and lone surrogates,
# which no encoding takes.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with escapes, as Python writes them, for what a terminal would obey or could not write."""
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)
