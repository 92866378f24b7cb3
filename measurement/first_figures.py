"""Provisional figures of a warm mode: a few rounds, shown while others compile, and never recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from measurement.profiles import Profile
from measurement.sampling import Clocks, Control, Variant, good_rounds, take_rounds

ROUNDS, SECONDS = 3, 0.3  # minima; fewer seconds if a cell is sampled for less
LONGEST = 3.0  # seconds, of slow calls and on a slow host


class FirstFigures(NamedTuple):
    """Medians over the same rounds: the good ones of `take_rounds`, or all if the host was slow in all of them."""

    seconds: list[float]  # per call, by variant
    speedup: float | None  # the first variant's time over the last one's; None for a single variant
    slowed: bool
    full_s: float | None  # the control's time at full speed


def first_figures(
    variants: Sequence[Variant],
    profile: Profile,
    clocks: Clocks,
    on_sample: Callable[[Variant], None],
    control: Control | None = None,
    full_s: float | None = None,
    settle: Control | None = None,
) -> FirstFigures:
    """Return figures of variants, of which the first is eager mode if it is measured.

    `control`, `full_s` and `settle` are those of `take_rounds`.
    """
    taken = [replace(variant, samples=[], loops=[], single_calls=[], parts_s=[]) for variant in variants]
    seconds = min(SECONDS, profile.seconds_per_cell)
    few = replace(
        profile, minimum_processes=len(taken), minimum_rounds=ROUNDS, stop_early=False,
        seconds_per_cell=seconds, maximum_seconds_per_cell=LONGEST, target_half_width=0.0,
    )  # fmt: skip
    draw = random.Random(0)
    full_s = take_rounds(taken, few, clocks, draw, on_sample=on_sample, control=control, full_s=full_s, settle=settle)
    return figures_of(taken, full_s)


def figures_of(variants: Sequence[Variant], full_s: float | None) -> FirstFigures:
    """Return figures of sampled variants, as `first_figures` does; `full_s` is the control's time at full speed."""
    good = good_rounds(variants, full_s)[0]
    kept = [[variant.samples[place] for place in good or range(len(variant.samples))] for variant in variants]
    ratio = median(a / b for a, b in zip(kept[0], kept[-1], strict=True)) if len(kept) > 1 else None
    return FirstFigures(list(map(median, kept)), ratio, not good, full_s)
