"""How fast the host itself runs: a fixed loop of Python timed in every round, and the rounds in which it was slow.

Two processes of one minute may differ twofold because another tenant uses the other half of a core: no counter of the
system tells (the time is not stolen), but everything that the processor does takes longer, this loop too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from measurement.statistics import FEWEST_VALUES, quartiles

STEPS = 15_000  # 0.3 ms on a processor of 2023
# A core whose other half is busy takes 1.8 to 2 times as long, a change of clock 1.1 to 1.2, and the loop's own scatter
# is a few hundredths: this lies between what halves a ratio and what it bears.
SLOW = 1.25
# The slowest rounds of a launch that is slow more often are its usual speed as well as the fast ones.
MOST_SET_ASIDE = 0.25


def loop() -> int:
    """Return the same work every time, in the interpreter alone: no memory to speak of, no system call."""
    total = 0
    for step in range(STEPS):
        total += step & 7
    return total


def loop_seconds(clock: Callable[[], float]) -> float:
    """Return seconds that the loop takes: the faster of two, since an interrupt in one of them is no slow host."""
    start = clock()
    loop()
    middle = clock()
    loop()
    return min(middle - start, clock() - middle)


def usual_seconds(launches: Sequence[Sequence[float]]) -> float | None:
    """What the loop usually takes: the lowest of the launches' lower quartiles, since a whole launch may be slow."""
    return min((quartiles(series)[0] for series in launches if series), default=None)


def slowed(series: Sequence[float]) -> list[bool]:
    """For each round of a launch whether the loop took more than `SLOW` times its lower quartile over the launch."""
    usual = usual_seconds([series]) or 0.0
    return [seconds > SLOW * usual for seconds in series]


def kept(series: Sequence[float], rounds: int) -> list[int]:
    """Return the rounds of a launch that count: those in which the host had its usual speed.

    All of them where more than `MOST_SET_ASIDE` were slow, where too few would be left for an interval, or where no
    loop was timed (`series` is empty).
    """
    slow = slowed(series)
    fast = [index for index in range(rounds) if not (index < len(slow) and slow[index])]
    enough = len(fast) >= max((1 - MOST_SET_ASIDE) * rounds, FEWEST_VALUES)
    return fast if enough else list(range(rounds))
