"""Numbers as readers see them: one notation each for a figure, a multiple, a range, an interval and a list."""

from __future__ import annotations

import math
from collections.abc import Callable

from measurement.statistics import Interval

SLOWED = "host slowed"  # in place of a figure
UNCHECKED = "unchecked"  # in place of energy that integrated power contradicts


def marked(text: str, is_slowed: bool) -> str:
    """Return the text of a figure, marked if a slow host limits it."""
    return f"{text}, {SLOWED}" if is_slowed else text


def text_of(value: float | None) -> str:
    """Return a number to three digits, whole from a hundred up, a comma between thousands; empty for None."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e+" in text else text


def ratio(value: float) -> str:
    """Return a multiple without its sign: two decimals below ten, so that 1.50 and 1.43 align, else three digits."""
    return f"{value:.2f}" if value < 9.995 else text_of(value)


def span(low: float | None, high: float | None, show: Callable[[float], str] = text_of) -> str:
    """Return `3.9–4.3` or `-0.1 to 0.2`, with more digits where both read alike; empty where there is no interval."""
    if low is None or high is None:
        return ""
    ways = (show, lambda value: f"{value:.3g}", lambda value: f"{value:.4g}")
    way = next((way for way in ways if way(low) != way(high)), show)
    return f"{way(low)}{' to ' if low < 0 else '–'}{way(high)}"


def estimate(interval: Interval | None, unit: str = "", show: Callable[[float], str] = text_of) -> str:
    """Return `12.3 % (11.9–12.8)`; without width, as sources publish figures, the value alone; empty for None."""
    if interval is None:
        return ""
    value, low, high = interval
    return f"{show(value)}{unit}" + ("" if math.isclose(low, high) else f" ({span(low, high, show)})")


def multiple(interval: Interval) -> str:
    """Return a multiple with its interval in a sentence: `1.08× (1.04–1.14)`."""
    return estimate(interval, "×", ratio)


def rounded(value: float) -> str:
    """Return a number to two digits, without an exponent from a hundred up."""
    return text_of(float(f"{value:.2g}"))


def plus_minus(interval: Interval | None) -> str:
    """Return the relative half-width of an interval: `±8 %`, `±0.3 %`; empty for None."""
    return "" if interval is None else width(interval.relative_half_width)


def width(share: float) -> str:
    """Return a relative half-width: `±8 %`, or `±>999 %` from ten times the estimate on."""
    percent = 100 * share
    if round(percent) > 999:
        return "±>999 %"
    return f"±{percent:.0f} %" if percent >= 0.95 else f"±{percent:.1f} %"


def with_width(interval: Interval | None, average: float | None = None) -> str:
    """Return a figure with its half-width, `4.1 ±8 %`; without an interval the average alone."""
    return text_of(average) if interval is None else f"{text_of(interval.value)} {plus_minus(interval)}"


def in_ms(median_ms: float, interval: Interval | None) -> str:
    """Return a latency with its half-width, where it has an interval: `4.1 ms ±8 %`."""
    return f"{text_of(median_ms)} ms {plus_minus(interval)}".rstrip()


def speedup(value: float | None, interval: Interval | None) -> str:
    """Return a speedup in a table: `4.76× ±8 %`; empty for None."""
    return "" if value is None else f"{ratio(value)}× {plus_minus(interval)}".rstrip()
