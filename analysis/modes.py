"""Properties of every mode from the registry: for reports, which know no framework, and for lists of modes."""

from __future__ import annotations

import functools
import itertools

import frameworks
import workloads
from analysis.settings import Words
from plan import plan, suggestions


def labels() -> dict[tuple[str, str], Words]:
    """Return the properties of each mode of each framework, by their names."""
    by_mode = {}
    for name in frameworks.NAMES:
        framework = frameworks.describe(name)
        for place, mode in enumerate(sorted(framework.modes, key=lambda mode: mode.is_rung)):  # rungs have bars
            default = mode.name in framework.default_graph[:1]
            words = Words(mode.call, default, mode.deployed, framework.colour, place, mode.is_rung)
            by_mode[framework.name, mode.name] = words
    return by_mode


@functools.cache
def replays(framework: str, mode: str) -> bool:
    """Return whether a call in this mode replays eager's own kernels; False for a mode that is not registered."""
    if framework not in frameworks.NAMES:
        return False
    return any(known.name == mode and known.replays for known in frameworks.describe(framework).modes)


def words_for(framework: str, mode: str) -> list[str]:
    """Return the words of MODE that mean this mode, on some device and in some pass; none if only its name does."""
    cases = list(itertools.product(("cpu", "gpu"), workloads.PASSES))
    return [
        word
        for word in suggestions.MODE_GROUPS
        if any(mode in plan.modes_of(framework, [word], *case) for case in cases)
    ]
