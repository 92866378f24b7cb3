"""Escaping of foreign text (frameworks, paths, files) in output, and commands that can be pasted."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from measurement.places import PROGRAM

# Control characters except line breaks and tabs, invisible ones that change text direction, and lone surrogates, which
# no encoding accepts.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NO_WORD = re.compile(r"[\x00\ud800-\udc7f\udd00-\udfff]")


def plain(text: str) -> str:
    """Return the text with Python's escapes for characters that a terminal would obey or could not write."""
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def times(count: int, thing: str, things: str | None = None) -> str:
    """Return `1 cell` or `2 cells`."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def percent(share: float, digits: int = 0) -> str:
    """Return `12 %`, or `<1 %` for a share that would round to nothing."""
    least = 10.0**-digits
    return f"<{least:.{digits}f} %" if 0 < 100 * share < least / 2 else f"{100 * share:.{digits}f} %"


def listed(names: Sequence[str], most: int = 3, separator: str = ", ") -> str:
    """Return the first of many names, and how many more there are; those that hold commas are separated by `; `."""
    more = f"{separator.strip(', ')} and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


# GitHub's syntax for people and issues, and Markdown's syntax: entities, tags, links and pictures, code, emphasis,
# formulas, escapes, addresses, quotations, fences, headings, lists, rules.
_MENTIONS = r"@(?=\w)|(?<!\w)#(?=\d)|(?<=\w)/(?=[\w.-]+#\d)|(?<!\w)GH-(?=\d)"
_MARKDOWN = re.compile(
    rf"&(?=#?\w+;)|[<\[`*$]|~(?=\w)|(?<!\w)~(?!\s|$)|(?<![^\W_])_|_(?![^\W_])|\\(?=[!-/:-@\[-`{{-~]|$)"
    rf"|:(?=//)|(?<=www)\.|^[>#=]|^[+-](?=[\s-]|$)|^\d+[.)](?=\s|$)|{_MENTIONS}",
    re.IGNORECASE,
)


def in_markdown(text: str) -> str:
    """Return the text as one line of Markdown without markup, except code between backticks."""
    pieces = re.split("(`[^`]+`)", _line(text))
    return "".join(piece if number % 2 else _MARKDOWN.sub(_entity, piece) for number, piece in enumerate(pieces))


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table; bars within cells are escaped."""
    return "| " + " | ".join(in_markdown(cell).replace("|", "\\|") for cell in cells) + " |"


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[int] = ()) -> list[str]:
    """Return the lines of a Markdown table; the columns with an index in `numbers` are right-aligned."""
    rule = " | ".join("---:" if place in numbers else "---" for place in range(len(columns)))
    return [markdown_row(columns), f"| {rule} |", *map(markdown_row, rows)]


def as_code(text: str) -> str:
    """Return the text as one line of Markdown code."""
    content = _line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", content)), default=0))
    return f"{fence} {content} {fence}" if "`" in content else f"{fence}{content}{fence}"


def _line(text: str) -> str:
    return " ".join(plain(text).split())


def _entity(match: re.Match[str]) -> str:
    """Return the match with its last character as an entity; a mention gets a zero-width space instead."""
    sign = match[0]
    return f"{sign}\u200b" if sign[0] in "@#/Gg" else f"{sign[:-1]}&#{ord(sign[-1])};"


def make_command(target: str, values: Mapping[str, str]) -> str:
    """Return `make target VARIABLE=value …`, or `egvg target …` if the suite is installed, quoted for a shell."""
    return " ".join([PROGRAM, target, *(make_word(name, value) for name, value in values.items())])


def make_word(variable: str, value: str) -> str:
    """Return `VARIABLE=value` to paste after `make`; the Makefile expands nothing in a value."""
    return f"{variable}={shell_word(value)}"


def shell_word(value: str) -> str:
    """Return the value quoted for a shell.

    Values with invisible characters (a tab, a line break, the second of two spaces) are written as bytes in octal.
    Bash, zsh and ksh decode these between $' and '. Characters that no argument can contain are replaced.
    """
    value = _NO_WORD.sub("\ufffd", value)
    if value.isprintable() and "  " not in value:
        return shlex.quote(value)
    shown = (chr(byte) if 32 < byte < 127 and byte not in b"\\'" else f"\\{byte:03o}" for byte in os.fsencode(value))
    return f"$'{''.join(shown)}'"
