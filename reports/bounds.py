"""Bounds of a speedup, in a sentence."""

from __future__ import annotations

from reports.numbers import text_of


def sentence(eager_s: float, busy_s: float, least_s: float | None) -> str:
    """Return a sentence on the bounds of a call's speedup, from its device's busy seconds and from the roofline."""
    idle = f"{100 * max(1 - busy_s / eager_s, 0.0):.0f} %"
    most = _times(eager_s, busy_s)
    replayed = f"the GPU is idle for {idle} of a call, so replaying these kernels brings at most {most}"
    roofline = f"; no implementation beats {_times(eager_s, least_s)} on this device (roofline)" if least_s else ""
    return f"{replayed}{roofline}"


def _times(eager_s: float, least_s: float) -> str:
    return f"{text_of(max(eager_s / least_s, 1.0))}×"
