"""Numbers as readers see them: one notation each for a figure, a multiple, a range, an interval and a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from measurement.statistics import Interval

MOST_NAMED = 3


def text_of(value: float | None) -> str:
    """Return a number to three digits, whole from a hundred up, a comma between thousands; empty for None."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e+" in text else text


def ratio(value: float) -> str:
    """Return a multiple without its sign: two decimals below ten, as 1.50 beside 1.43, else three digits."""
    return f"{value:.2f}" if value < 9.995 else text_of(value)


def span(low: float | None, high: float | None, show: Callable[[float], str] = text_of) -> str:
    """Return `3.9 to 4.3`; with more digits where these read alike, and empty where there is no interval."""
    return "" if low is None or high is None else " to ".join(_apart(show, low, high)(end) for end in (low, high))


def _apart(show: Callable[[float], str], low: float, high: float) -> Callable[[float], str]:
    """Return the first way of showing, of those with ever more digits, that tells two ends apart."""
    ways = (show, lambda value: f"{value:.3g}", lambda value: f"{value:.4g}")
    return next((way for way in ways if way(low) != way(high)), show)


def estimate(interval: Interval | None, unit: str = "", show: Callable[[float], str] = text_of) -> str:
    """Return `12.3 % (11.9 to 12.8)`; without width, as sources publish figures, the value alone; empty for None."""
    if interval is None:
        return ""
    value, low, high = interval
    if low == high:
        return f"{show(value)}{unit}"
    return f"{_apart(show, low, high)(value)}{unit} ({span(low, high, show)})"


def certain(interval: Interval) -> str:
    """Return the interval of a multiple in a sentence: `95 %: 1.04 to 1.14×`."""
    return f"95 %: {span(interval.low, interval.high, ratio)}×"


def multiple(interval: Interval) -> str:
    """Return a multiple with its interval in a sentence: `1.08× (95 %: 1.04 to 1.14×)`."""
    return f"{ratio(interval.value)}× ({certain(interval)})"


def range_of(values: Iterable[float], unit: str, show: Callable[[float], str] = text_of) -> str:
    """Return one figure with its unit, or the range of several: `0.632 to 0.875 ms`."""
    known = list(values)
    low, high = show(min(known)), show(max(known))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first of many names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
