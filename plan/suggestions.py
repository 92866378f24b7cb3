"""Suggest modes for an unknown MODE, by their names and descriptions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

import frameworks
from frameworks.description import Framework, Mode
from measurement.refusals import UsageError

MODE_GROUPS = ("eager", "graph", "recommended", "all", "ladder")  # words that select modes


def check_mode(word: str, asked: Sequence[str]) -> None:
    """Raise UsageError for a word that is no framework's mode, with suggestions from the frameworks `asked`."""
    if word in mode_words(frameworks.NAMES):
        return
    found, meant = candidates(word, asked)
    near = found or difflib.get_close_matches(word, mode_words(asked), n=1)
    if not near:
        raise UsageError(f"There is no mode {word!r}; choose from {', '.join(mode_words(asked))}.")
    meant = meant or [(framework, mode) for framework, mode in described(asked) if mode.name in near]
    calls = "; ".join(f"{mode.name} is {framework.title}'s {mode.call}" for framework, mode in meant if mode.call)
    hint = f"did you mean {' or '.join(map(repr, near))}?"
    raise UsageError(f"There is no mode {word!r}; {hint}" + (f" {calls}." if calls else ""))


def mode_words(asked: Iterable[str]) -> list[str]:
    """Return the words of MODE for these frameworks, each once: the modes in the registry's order."""
    return list(dict.fromkeys([*MODE_GROUPS, *(mode.name for _, mode in described(asked))]))


def described(asked: Iterable[str]) -> list[tuple[Framework, Mode]]:
    """Return the modes of these frameworks, each with its framework."""
    return [(framework, mode) for framework in map(frameworks.describe, asked) for mode in framework.modes]


def candidates(word: str, asked: Sequence[str]) -> tuple[list[str], list[tuple[Framework, Mode]]]:
    """Return the words that a mistyped word may mean, and the modes whose calls a suggestion names.

    Names that differ only in case, separators or plurals win; if any of these modes is deployed, only deployed ones.
    Otherwise it is one graph mode per framework whose name, or else description, contains every part of the word.
    Default graph modes are tried first, and modes that are not deployed last.
    """
    parts = set(parts_of(word))
    same = [(framework, mode) for framework, mode in described(asked) if squeezed(mode.name) == squeezed(word)]
    if parts and (same or squeezed(word) in map(squeezed, MODE_GROUPS)):
        of_words = [name for name in MODE_GROUPS if squeezed(name) == squeezed(word)]
        kept = [mode.name for _, mode in same if mode.deployed] or [mode.name for _, mode in same]
        return [*of_words, *dict.fromkeys(kept)], same
    found: list[tuple[Framework, Mode]] = []
    for framework in map(frameworks.describe, asked):
        first = framework.default_graph
        graphs = [mode for mode in framework.modes if mode.graph]
        graphs.sort(key=lambda mode: (not mode.deployed, mode.name not in first))
        texts = ("{0.name}", "{0.name} {0.summary} {0.call}")
        having = [mode for text in texts for mode in graphs if parts and parts <= set(parts_of(text.format(mode)))]
        found += [(framework, mode) for mode in having[:1]]
    return list(dict.fromkeys(mode.name for _, mode in found)), found


def parts_of(text: str) -> list[str]:
    """Return the parts of a text in lower case and singular: `CUDA graphs` has the same as `cuda-graph`."""
    return [part.removesuffix("s") if len(part) > 3 else part for part in re.findall(r"[a-z0-9]+", text.lower())]


def squeezed(text: str) -> str:
    """Return these parts joined: `cudagraphs` and `cuda-graph` give the same word."""
    return "".join(parts_of(text))
