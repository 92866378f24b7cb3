"""From figures to percentages of a chart's width or height."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MOST_TICKS = 6
LEAST = 4.0  # the factor that an axis spans at least, or noise would fill the chart


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis from `low` to `high`, both above 0, between two percentages of its length."""

    low: float
    high: float
    begin: float = 2.0
    end: float = 98.0

    @classmethod
    def fit(cls, values: Iterable[float | None], begin: float = 2.0, end: float = 98.0, least: float = LEAST) -> Scale:
        """Return the scale that shows all these figures, with a little room; it spans a factor of `least` or more."""
        known = [value for value in values if value and value > 0] or [1.0]
        low, high = min(known), max(known)
        room = max(math.sqrt(least * low / high), min(1.08, least))
        return cls(low / room, high * room, begin, end)

    def at(self, value: float) -> float:
        """Return the place of a figure in percent."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + (self.end - self.begin) * share

    def __call__(self, value: float) -> str:
        """Return the place of a figure as it is written."""
        return f"{self.at(value):.3g}%"

    @property
    def ticks(self) -> list[float]:
        """Return round figures to be marked: 1, 2 and 5 in each decade, or decades alone where these are many."""
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
            ticks = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(ticks) <= MOST_TICKS:
                return ticks
        return ticks[:: math.ceil(len(ticks) / MOST_TICKS)]


def tick_text(value: float) -> str:
    """Return a round figure in few characters."""
    return f"{value:,.0f}" if 1 <= value < 1e7 else f"{value:g}" if value >= 1e-4 else f"{value:.0e}"
