"""Which resource a cell's time is spent on: overhead, bandwidth or compute. One rule, written here and nowhere else."""

from __future__ import annotations

from measurement.peaks import Peaks

# A GPU that is busy for less than this share of the time waits for the host.
BUSY_SHARE = 0.6
# Time above this multiple of what arithmetic and unfused traffic together could take is neither's.
EXPLAINED = 4.0
# One roofline term dominates when it is at least this multiple of the other.
DOMINATES = 2.0
# Doubling the batch of a cell bound by overhead adds less than this (the overhead test of He 2022).
DOUBLING_GROWTH = 0.10


def classify(
    seconds: float,
    flops: int,
    moved_bytes: int,
    unfused_bytes: int,
    peaks: Peaks,
    device_busy_s: float | None = None,
    doubling_growth: float | None = None,
) -> str:
    """`overhead`, `bandwidth`, `compute` or `mixed`.

    `moved_bytes` is the traffic of the mode: the unfused bytes for an eager mode, the compulsory ones for a graph.
    `device_busy_s` is known on a GPU; `doubling_growth` (time at twice the batch over time, less one) where the sweep
    holds both. In this order:

    1. overhead, if the device was busy for less than 60 % of the time, or doubling the batch added less than 10 %, or,
       where the device's busy time is not known, the time is more than 4 times what arithmetic and unfused traffic one
       after the other would take at their peaks;
    2. compute, if arithmetic at its peak would take at least twice as long as the traffic at its peak;
    3. bandwidth, if the reverse holds;
    4. mixed.
    """
    arithmetic_s, traffic_s = flops / peaks.flops_per_s, moved_bytes / peaks.bytes_per_s
    idle = device_busy_s is not None and device_busy_s < BUSY_SHARE * seconds
    flat = doubling_growth is not None and doubling_growth < DOUBLING_GROWTH
    slow = device_busy_s is None and seconds > EXPLAINED * (arithmetic_s + unfused_bytes / peaks.bytes_per_s)
    if idle or flat or slow:
        return "overhead"
    if arithmetic_s >= DOMINATES * traffic_s:
        return "compute"
    if traffic_s >= DOMINATES * arithmetic_s:
        return "bandwidth"
    return "mixed"
