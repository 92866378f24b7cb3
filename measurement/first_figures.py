"""Provisional figures of a warm mode: a few rounds, shown while others compile, and never recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from measurement.profiles import Profile
from measurement.sampling import Clocks, Variant, lead_in, take_sample

ROUNDS, SECONDS = 3, 0.3  # minima; fewer seconds if a cell is sampled for less


def first_figures(
    variants: Sequence[Variant], profile: Profile, clocks: Clocks, on_sample: Callable[[Variant], None]
) -> tuple[list[float], float | None]:
    """Return each variant's seconds per call, and the ratio of the first to the last; None for a single variant.

    All are medians over the same rounds.
    """
    taken = [replace(variant, samples=[]) for variant in variants]
    start, seconds = clocks.wall(), min(SECONDS, profile.seconds_per_cell)
    while len(taken[0].samples) < ROUNDS or clocks.wall() - start < seconds:
        for variant in taken:
            on_sample(variant)
            lead_in(variant, clocks)
            take_sample(variant, clocks)
    first, last = taken[0].samples, taken[-1].samples
    ratio = median(a / b for a, b in zip(first, last, strict=True)) if len(taken) > 1 else None
    return [median(variant.samples) for variant in taken], ratio
