"""The regime rule on cells of known kind."""

from __future__ import annotations

import pytest

from measurement.peaks import Peaks, datasheet
from measurement.regime import classify

PEAKS = Peaks(flops_per_s=1e12, bytes_per_s=1e10, source="made up")  # balanced at 100 FLOP per byte

KNOWN = {
    # seconds, flops, moved bytes, unfused bytes -> regime
    "a large matmul": (1.1, 1e12, 1e9, 1e9, "compute"),
    "a long pointwise chain": (1.1, 1e8, 1e10, 1e10, "bandwidth"),
    "a tiny model": (1e-3, 1e6, 1e4, 1e4, "overhead"),
    "both terms alike": (1.5, 1e12, 0.8e10, 0.8e10, "mixed"),
    "just explained": (7.9, 1e12, 1e9, 1e10, "compute"),
    "just not explained": (8.1, 1e12, 1e9, 1e10, "overhead"),
    "twice the traffic's time": (1.0, 1e12, 0.5e10, 0.5e10, "compute"),
    "less than twice": (1.0, 1e12, 0.51e10, 0.51e10, "mixed"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_cells_of_known_kind(name):
    seconds, flops, moved, unfused, expected = KNOWN[name]
    assert classify(seconds, flops, moved, unfused, PEAKS) == expected


def test_an_idle_device_means_overhead():
    compute = dict(seconds=1.1, flops=1e12, moved_bytes=1e9, unfused_bytes=1e9, peaks=PEAKS)
    assert classify(**compute, device_busy_s=1.0) == "compute"
    assert classify(**compute, device_busy_s=0.65) == "overhead"


def test_a_busy_device_is_not_overhead_however_slow_it_is():
    slow = dict(seconds=9.0, flops=1e12, moved_bytes=1e9, unfused_bytes=1e9, peaks=PEAKS)
    assert classify(**slow) == "overhead"
    assert classify(**slow, device_busy_s=8.8) == "compute"


def test_doubling_the_batch_for_nothing_means_overhead():
    compute = dict(seconds=1.1, flops=1e12, moved_bytes=1e9, unfused_bytes=1e9, peaks=PEAKS)
    assert classify(**compute, doubling_growth=0.11) == "compute"
    assert classify(**compute, doubling_growth=0.09) == "overhead"


def test_datasheets_are_dense_and_found_by_name():
    assert datasheet("NVIDIA H200").tflops["bf16"] == 989.5
    assert datasheet("NVIDIA A100-SXM4-40GB").terabytes_per_s == 1.555
    assert datasheet("Intel(R) Xeon(R)") is None
    assert datasheet(None) is None
