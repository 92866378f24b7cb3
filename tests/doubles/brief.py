"""Profiles for tests of real frameworks, which ask whether a cell is measured and not how precisely.

One process shows whether a framework computes what it should, a second one what it does with the first one's compile
cache. More of them tell how processes differ, which no test of a real framework asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from measurement import profiles
from measurement.profiles import Profile


def brief(profile: Profile, processes: int) -> Profile:
    """Return the profile with so many processes a bundle, samples of 1 ms, and calls that need not be steady."""
    return replace(
        profile, minimum_processes=processes, maximum_processes=processes, seconds_per_cell=0.01,
        maximum_seconds_per_cell=0.2, minimum_rounds=3, warmup_seconds=0.005, sample_seconds=0.001,
    )  # fmt: skip


def shorten(processes: int) -> None:
    """Make every profile of this interpreter brief."""
    profiles.PROFILES.update({name: brief(profile, processes) for name, profile in profiles.PROFILES.items()})
    for name in ("STARTED", "EXPLAINED", "PEAK_BENCHMARK"):
        setattr(profiles, name, brief(getattr(profiles, name), 1))


# Two collections a group go through all objects of a framework's imports, up to 0.5 s each, unless these are frozen.
# Paddle finds its operators through references to their functions, which the collector does not list for frozen ones.
FROZEN = """
import gc, sys
gc.set_threshold(100_000, 50, 50)
from measurement import host
from worker import __main__ as worker
from worker.context import Context
from worker.interleaved import InterleavedComparison

def then_frozen(method):
    def called(*words):
        method(*words)
        if "paddle" not in sys.modules:
            gc.freeze()
    return called

host.STEPS = 1_000  # no test of a real framework asks for the host's speed
Context.start = then_frozen(Context.start)
InterleavedComparison.run = then_frozen(InterleavedComparison.run)
worker.main()
"""


def frozen(command: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a function like `command`, whose workers freeze all objects that remain after each group."""

    def made(*words) -> list[str]:
        text = command(*words)
        place = text.index("-m")
        return [*text[:place], "-c", FROZEN, *text[place + 2 :]]

    return made
