"""The resource that limits a cell's time, by the share that the roofline explains. The only such rule."""

from __future__ import annotations

from dataclasses import dataclass

from measurement.host import HOST_SHARE
from measurement.peaks import Peaks

# Name a roof that explains at least this share.
EXPLAINED_SHARE = 0.4
# Below this the time does not depend on the computation.
NEGLIGIBLE_SHARE = 0.01
# Doubling the batch of a cell bound by overhead adds less than this (the overhead test of He 2022) ...
DOUBLING_GROWTH = 0.10
# ... where the roofline expects at least this: not so where weights dominate the traffic.
EXPECTED_GROWTH = 0.5


@dataclass(frozen=True)
class Work:
    """Operations and bytes of one call: FLOPs, transcendental operations among them, and the bytes that its mode moves.

    `product_bytes` are the bytes that matrix products read and write, each product alone.
    """

    flops: int
    transcendentals: int
    moved_bytes: int
    product_bytes: int = 0


@dataclass(frozen=True)
class Terms:
    """Seconds that a call's work takes at the peaks: the roofline (Williams, Waterman and Patterson 2009)."""

    arithmetic_s: float
    traffic_s: float

    @property
    def larger_s(self) -> float:
        return max(self.arithmetic_s, self.traffic_s)


def terms(work: Work, peaks: Peaks, cached: bool = False) -> Terms:
    """Return the roofline's terms in seconds; set `cached` if the caches may hold a call's data.

    Transcendental operations have a separate time; `arithmetic_s` is the longer of it and the FLOPs' time. If the
    bandwidth of one-row products is known, all products move their bytes at that rate: larger products read the same
    weights. Cached weights may arrive sooner.
    """
    rate = max(peaks.bytes_per_s, peaks.cached_bytes_per_s or 0.0) if cached else peaks.bytes_per_s
    transcendental_s = work.transcendentals / peaks.transcendentals_per_s if peaks.transcendentals_per_s else 0.0
    of_products = min(work.product_bytes, work.moved_bytes) if peaks.matvec_bytes_per_s else 0
    traffic_s = (work.moved_bytes - of_products) / rate + of_products / (peaks.matvec_bytes_per_s or rate)
    return Terms(max(work.flops / peaks.flops_per_s, transcendental_s), traffic_s)


def is_flat(growth_at_most: float | None, expected_growth: float | None) -> bool:
    """Return whether doubling the batch clearly adds less than 10 % where the roofline expects at least 50 %.

    `growth_at_most` is the upper end of the growth's interval, so noise alone makes no cell flat.
    """
    if growth_at_most is None or expected_growth is None:
        return False
    return growth_at_most < DOUBLING_GROWTH and expected_growth >= EXPECTED_GROWTH


def classify(
    seconds: float,
    roof: Terms,
    reached: Terms | None,
    host_s: float | None = None,
    flat: bool = False,
    one_operator: bool = False,
) -> str:
    """Return `compute`, `bandwidth`, `latency` or `overhead`, by the same rule for every framework and device.

    `roof` has the terms at the machine's peaks, `reached` those at the peaks that this framework's operators reach.
    `host_s` is the seconds until a call returns while its work continues (GPU). In this order:

    1. compute or bandwidth, by the larger term, if it explains at least 40 % of the time, and the cell is not flat;
    2. overhead, if it explains less than 1 %;
    3. where `host_s` is known, overhead if it is at least 80 % of the time, else latency;
    4. elsewhere latency, if the call is one operator, or if `reached` explains at least 40 % of the time (sum of both
       terms); never for a flat cell. Else overhead.

    On a CPU only the peaks that the framework's operators reach, one-row products included, show overhead. So latency
    is time that the device spends in operators far from any roof. Overhead is the time around them.
    """
    share = roof.larger_s / seconds
    if share >= EXPLAINED_SHARE and not flat:
        return "compute" if roof.arithmetic_s >= roof.traffic_s else "bandwidth"
    if share < NEGLIGIBLE_SHARE:
        return "overhead"
    if host_s is not None:
        return "overhead" if host_s >= HOST_SHARE * seconds else "latency"
    in_turn_s = reached.arithmetic_s + reached.traffic_s if reached else 0.0  # without overlap
    slow_operators = one_operator or in_turn_s >= EXPLAINED_SHARE * seconds
    return "latency" if slow_operators and not flat else "overhead"
