"""The modes that a word may mean that is none: by their names, and by what their descriptions say of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

import frameworks
from frameworks.description import Framework, Mode
from measurement.refusals import UsageError

WORDS = ("eager", "graph", "all", "ladder")  # that stand for modes


def check_mode(word: str, asked: Sequence[str]) -> None:
    """Raise UsageError for a word that is no mode of any framework, with what it may mean in those asked for."""
    if word in words(frameworks.NAMES):
        return
    found, told = leads(word, asked)
    near = found or difflib.get_close_matches(word, words(asked), n=1)
    if not near:
        raise UsageError(f"There is no mode {word!r}; choose from {', '.join(words(asked))}.")
    told = told or [(framework, mode) for framework, mode in described(asked) if mode.name in near]
    calls = "; ".join(f"{mode.name} is {framework.title}'s {mode.call}" for framework, mode in told if mode.call)
    hint = f"did you mean {' or '.join(map(repr, near))}?"
    raise UsageError(f"There is no mode {word!r}; {hint}" + (f" {calls}." if calls else ""))


def words(asked: Iterable[str]) -> list[str]:
    """What MODE takes for these frameworks, each word once: the modes in the registry's order."""
    return list(dict.fromkeys([*WORDS, *(mode.name for _, mode in described(asked))]))


def described(asked: Iterable[str]) -> list[tuple[Framework, Mode]]:
    """The modes of these frameworks, each with its framework."""
    return [(framework, mode) for framework in map(frameworks.describe, asked) for mode in framework.modes]


def leads(word: str, asked: Sequence[str]) -> tuple[list[str], list[tuple[Framework, Mode]]]:
    """Return what a word may mean, and the modes to be told apart by what a user types for them.

    First what has the same name but for case, separators and plurals; of modes what is deployed, and both are told.
    Else one graph of each framework whose name, or else whose description, has all of the word's parts: what users
    start with before others, what nobody deploys last.
    """
    parts = set(split(word))
    same = [(framework, mode) for framework, mode in described(asked) if joined(mode.name) == joined(word)]
    if parts and (same or joined(word) in map(joined, WORDS)):
        of_words = [name for name in WORDS if joined(name) == joined(word)]
        kept = [mode.name for _, mode in same if mode.deployed] or [mode.name for _, mode in same]
        return [*of_words, *dict.fromkeys(kept)], same
    found: list[tuple[Framework, Mode]] = []
    for framework in map(frameworks.describe, asked):
        first = framework.default_graph
        graphs = [mode for mode in framework.modes if mode.graph]
        graphs.sort(key=lambda mode: (not mode.deployed, mode.name not in first))
        texts = ("{0.name}", "{0.name} {0.summary} {0.call}")
        having = [mode for text in texts for mode in graphs if parts and parts <= set(split(text.format(mode)))]
        found += [(framework, mode) for mode in having[:1]]
    return list(dict.fromkeys(mode.name for _, mode in found)), found


def split(text: str) -> list[str]:
    """The parts of a name or text in lower case, plurals as singulars: `CUDA graphs` has those of `cuda-graph`."""
    return [part.removesuffix("s") if len(part) > 3 else part for part in re.findall(r"[a-z0-9]+", text.lower())]


def joined(text: str) -> str:
    """The same as one word: `cudagraphs` and `cuda-graph` are one."""
    return "".join(split(text))
