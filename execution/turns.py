"""Interleave processes of several bundles, or of two executors, so that changes of the machine affect all equally."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping, Sequence

from plan.plan import Bundle


def windows(bundles: Sequence[Bundle], estimates: Mapping[str, float], seconds: float) -> list[tuple[Bundle, ...]]:
    """Return bundles whose processes take turns: neighbours that together take at most `seconds`, or one alone.

    `estimates` are seconds per bundle, by its first cell. Wider windows would delay records for longer.
    """
    made: list[list[Bundle]] = []
    room = 0.0
    for bundle in bundles:
        room -= estimates[bundle.first.id]
        if room < 0:
            made.append([])
            room = seconds - estimates[bundle.first.id]
        made[-1].append(bundle)
    return list(map(tuple, made))


def alternate(steps: Iterable[Generator[int, None, None]], turning: bool = False) -> None:
    """Advance all generators by one step in turn until each has ended; if `turning`, reverse the order each time.

    Ctrl-C reaches the active generator and is passed on, so that the others also write their results.
    """
    going = list(steps)
    try:
        while going:
            for one in tuple(going):
                if next(one, None) is None:
                    going.remove(one)
            if turning:
                going.reverse()
    except KeyboardInterrupt:
        for one in going:
            with contextlib.suppress(KeyboardInterrupt, StopIteration):
                one.throw(KeyboardInterrupt())
        raise
