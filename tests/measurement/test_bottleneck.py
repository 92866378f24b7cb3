"""The rule of bottlenecks on cells of known kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from measurement.bottleneck import Terms, Work, classify, is_flat, terms
from measurement.peaks import DATASHEETS, Peaks, datasheet

# Balanced at 100 FLOP per byte; a cosine takes as long as 1,000 multiplications.
PEAKS = Peaks(1e12, 1e10, "made up", cached_bytes_per_s=1e11, transcendentals_per_s=1e9)

KNOWN = {
    # seconds, flops, transcendentals, bytes -> bottleneck
    "a large matmul": (1.1, 1e12, 0, 1e9, "compute"),
    "a long pointwise chain": (1.1, 1e8, 0, 1e10, "bandwidth"),
    "many cosines": (1.1, 1e9, 1e9, 1e9, "compute"),
    "a tiny model": (1e-3, 1e6, 0, 1e4, "overhead"),
    "a thousand additions of one value": (1.13e-3, 1e3, 0, 12e3, "overhead"),
    "just explained": (2.5, 1e12, 0, 1e9, "compute"),
    "just not explained": (2.6, 1e12, 0, 1e9, "overhead"),
    "both terms alike, traffic the larger": (1.5, 1e12, 0, 1.01e10, "bandwidth"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_cells_of_known_kind(name):
    seconds, flops, transcendentals, moved, expected = KNOWN[name]
    assert classify(seconds, terms(Work(flops, transcendentals, moved), PEAKS), None) == expected


def test_a_term_takes_the_time_that_it_takes_at_the_peak():
    work = Work(flops=int(2e12), transcendentals=int(3e9), moved_bytes=int(5e10))
    assert terms(work, PEAKS) == Terms(arithmetic_s=3.0, traffic_s=5.0)
    assert terms(work, PEAKS, cached=True) == Terms(3.0, 0.5)
    assert terms(work, replace(PEAKS, transcendentals_per_s=None)) == Terms(2.0, 5.0)


def test_products_move_their_bytes_at_the_rate_of_one_row():
    """GPT-2 124M, one token: 495 of 506 MB are weights; 41 GB/s of an addition, 11 of a product of one row."""
    slow = Peaks(192e9, 41e9, "made up", cached_bytes_per_s=82e9, matvec_bytes_per_s=11e9)
    work = Work(flops=252_000_000, transcendentals=0, moved_bytes=506_000_000, product_bytes=495_000_000)
    assert terms(work, slow).traffic_s == pytest.approx(0.495 / 11 + 0.011 / 41)
    assert terms(work, slow, cached=True).traffic_s == pytest.approx(0.495 / 11 + 0.011 / 82)  # they may not hold it
    assert terms(work, replace(slow, matvec_bytes_per_s=None)).traffic_s == pytest.approx(0.506 / 41)
    fused = replace(work, moved_bytes=490_000_000)  # less than its products would move, each on its own
    assert terms(fused, slow).traffic_s == pytest.approx(0.49 / 11)


def test_caches_that_seem_slower_than_memory_are_not_used():
    """A framework whose calls take longer than the vector in the caches lasts."""
    work = Work(1, 0, int(1e10))
    assert terms(work, replace(PEAKS, cached_bytes_per_s=1e9), cached=True).traffic_s == 1.0


@pytest.mark.parametrize(("host_s", "expected"), [(0.81, "overhead"), (0.79, "latency"), (0.0, "latency")])
def test_who_spends_what_no_roof_explains_compares_by_the_host_where_calls_return_early(host_s, expected):
    reached = Terms(0.9, 0.0)
    assert classify(1.0, Terms(0.2, 0.1), reached, host_s) == expected
    assert classify(1.0, Terms(0.2, 0.1), None, host_s) == expected


def test_elsewhere_it_compares_by_what_the_framework_s_own_operators_take():
    """One kernel of cosines that another framework computes sixteen times as fast is no overhead."""
    machine = Terms(7.2e-3, 3e-3)
    assert classify(0.119, machine, Terms(0.118, 3e-3)) == "latency"
    assert classify(0.119, machine, Terms(0.03, 0.0179)) == "latency"  # one after the other
    assert classify(0.119, machine, Terms(0.03, 0.0170)) == "overhead"
    # XLA's cosine under TensorFlow, whose eager peak benchmark is another cosine.
    assert classify(0.119, machine, Terms(7.2e-3, 3e-3), one_operator=True) == "latency"
    assert classify(0.119, Terms(1e-6, 1e-6), None, one_operator=True) == "overhead"


def test_nothing_to_do_is_overhead_whoever_spends_the_time():
    """A CUDA graph of a thousand kernels of one value: the host waits, and no kernel computes anything."""
    assert classify(1e-3, Terms(1e-9, 9e-6), Terms(1e-3, 1e-3), host_s=1e-5) == "overhead"
    assert classify(1e-3, Terms(1e-9, 11e-6), Terms(1e-3, 1e-3), host_s=1e-5) == "latency"


def test_doubling_the_batch_for_nothing_means_that_no_roof_was_reached():
    roof = Terms(0.5, 0.1)
    assert classify(1.0, roof, roof, flat=False) == "compute"
    assert classify(1.0, roof, roof, flat=True) == "overhead"
    assert classify(1.0, roof, roof, host_s=0.1, flat=True) == "latency"


@pytest.mark.parametrize(
    ("at_most", "expected", "flat"),
    [(0.09, 0.9, True), (0.11, 0.9, False), (0.09, 0.05, False), (None, 0.9, False), (0.09, None, False)],
    ids=["flat", "perhaps more", "weights are the traffic", "no interval", "no peaks"],
)
def test_a_cell_is_flat_only_where_it_should_have_grown(at_most, expected, flat):
    assert is_flat(at_most, expected) == flat


def test_datasheets_are_dense_and_found_by_name():
    assert datasheet("NVIDIA H200").tflops["bf16"] == 989.5
    assert datasheet("NVIDIA A100-SXM4-40GB").terabytes_per_s == 1.555
    assert datasheet("NVIDIA A100-SXM4-80GB").terabytes_per_s == 2.039
    assert datasheet("NVIDIA H100 PCIe").tflops["bf16"] == 756.5
    for name in ("NVIDIA GH200 480GB", "NVIDIA H200 MIG 1g.18gb", "Intel(R) Xeon(R)", "", None):
        assert datasheet(name) is None, name
    assert all(sheet.source.startswith("https://") for sheet in DATASHEETS.values())
