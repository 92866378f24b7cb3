"""Texts of others (frameworks, paths, files) as they may stand among our own, and commands that can be pasted."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

# Control characters but line breaks and tabs, invisible ones that turn the direction of writing, and lone surrogates,
# which no encoding takes.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with escapes, as Python writes them, for what a terminal would obey or could not write."""
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def make_command(target: str, values: Mapping[str, str]) -> str:
    """Return `make target VARIABLE=value …` as it can be pasted into a shell, from a terminal or from a page."""
    return " ".join(["make", target, *(make_word(name, value) for name, value in values.items())])


def make_word(variable: str, value: str) -> str:
    """Return `VARIABLE=value` as it can be pasted after `make`; the Makefile expands nothing in a value."""
    return f"{variable}={shell_word(value)}"


def shell_word(value: str) -> str:
    """Return the value quoted for a shell.

    What does not show as it is, such as a tab, a line break or the second of two spaces, makes it bytes in octal, which
    bash, zsh and ksh read back between $' and '.
    """
    if value.isprintable() and "  " not in value:
        return shlex.quote(value)
    shown = (chr(byte) if 32 < byte < 127 and byte not in b"\\'" else f"\\{byte:03o}" for byte in os.fsencode(value))
    return f"$'{''.join(shown)}'"
