"""Statistics against printed tables, values worked out by hand, and the coverage they promise."""

from __future__ import annotations

import math
import random

import pytest
from pytest import approx

from measurement import statistics
from measurement.statistics import Interval
from records import intervals


def test_batches_are_consecutive_and_about_five_long():
    assert statistics.batch_medians([1.0, 2.0, 9.0, 4.0, 5.0, 6.0]) == [1.5, 6.5, 5.5]
    assert statistics.batch_medians(range(20)) == [2, 7, 12, 17]
    assert [len(statistics.batch_medians(range(n))) for n in (6, 19, 20, 39, 40, 1000)] == [3, 3, 4, 7, 8, 8]


@pytest.mark.parametrize("n", range(6))
def test_under_six_values_have_no_interval(n):
    assert statistics.batch_interval([1.0] * n) is None
    assert intervals.over_processes([[1.0] * n]) is None


def test_batch_interval_by_hand():
    # Batches of four with medians 1, 2 and 3: standard deviation 1, t(2) = 4.303, widened by 1 + 0.8 / 4.
    interval = statistics.batch_interval([1.0] * 4 + [2.0] * 4 + [3.0] * 4)
    half = 1.2 * 4.303 / math.sqrt(3)
    assert (interval.value, interval.low, interval.high) == approx((2.0, 2 - half, 2 + half))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(1.1, 2.0, "faster"), (0.5, 0.9, "slower"), (0.9, 1.1, "inconclusive"), (math.nan, math.nan, "inconclusive")],
)
def test_a_sign_needs_an_interval_that_excludes_1(low, high, expected):
    assert statistics.sign(Interval((low + high) / 2, low, high)) == expected


def test_a_standard_deviation_by_hand():
    # 1..20, shuffled: variance 35 = (n^2 - 1) / 12 * n / (n - 1).
    values = [float(value) for value in range(1, 21)]
    random.Random(0).shuffle(values)
    assert statistics.stdev(values) == approx(math.sqrt(35))


@pytest.mark.parametrize(
    ("n", "share", "rank"),
    [(21, 0.95, 20), (20, 0.95, 19), (19, 0.95, None), (101, 0.99, 100), (100, 0.99, 99), (99, 0.99, None),
     (1000, 0.99, 990), (2, 0.5, 1), (1, 0.5, None), (0, 0.5, None)],
)  # fmt: skip
def test_a_percentile_is_never_the_slowest_call(n, share, rank):
    values = [float(value) for value in range(1, n + 1)]
    random.Random(n).shuffle(values)
    assert statistics.percentile(values, share) == rank


def test_log_ratios_pair_what_was_taken_in_the_same_round():
    assert statistics.log_ratios([2.0, 3.0], [1.0, 6.0]) == approx([math.log(2), -math.log(2)])
    with pytest.raises(ValueError):
        statistics.log_ratios([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("launches", "scope"), [(1, "within this process"), (2, "within this process"),
                                                 (3, "across processes"), (7, "across processes")])  # fmt: skip
def test_the_scope_says_whether_processes_were_compared(launches, scope):
    assert statistics.scope(launches) == scope


def test_relative_half_width():
    assert Interval(2.0, 1.5, 2.7).relative_half_width == approx(0.3)
    assert Interval(-2.0, -2.7, -1.5).relative_half_width == approx(0.3)
    assert Interval(0.0, -1.0, 1.0).relative_half_width == math.inf


@pytest.mark.parametrize(
    ("later", "agree"),
    [
        ([100.0, 100.0, 100.0], True),
        ([102.0, 102.0, 102.0], True),  # 2 % is allowed
        ([102.1, 102.1, 102.1], False),
        ([97.9, 97.9, 97.9], False),
        ([100.0, 100.0, 200.0], True),  # one disturbed call is no warming up
    ],
)
def test_windows_agree_in_their_medians(later, agree):
    assert statistics.steady([100.0, 100.0, 100.0], later, 0.02) is agree
    assert statistics.steady(later, [100.0, 100.0, 100.0], 0.02) is agree


def test_scatter_is_no_disagreement_but_a_trend_is():
    draw, trials = random.Random(2), 500
    windows = [[[100 * math.exp(draw.gauss(0, 0.1)) for _ in range(15)] for _ in "ab"] for _ in range(trials)]
    assert sum(statistics.steady(*pair, 0.02) for pair in windows) / trials >= 0.87
    for n in (3, 5, 15):
        rising = [100.0 + 20 * i / n for i in range(2 * n)]
        assert not statistics.steady(rising[:n], rising[n:], 0.02)


def autoregressive(draw: random.Random, n: int, coefficient: float) -> list[float]:
    """Stationary values of order one around 0, of variance 1."""
    values = [draw.gauss(0, 1)]
    while len(values) < n:
        values.append(coefficient * values[-1] + math.sqrt(1 - coefficient**2) * draw.gauss(0, 1))
    return values


@pytest.mark.parametrize("n", [10, 15, 20, 34, 50, 70])
@pytest.mark.parametrize("coefficient", [0.0, 0.3, 0.6])
def test_the_interval_of_one_launch_covers_as_it_promises_whatever_the_correlation(n, coefficient):
    draw, trials = random.Random(f"{n}/{coefficient}"), 6000
    covered = 0
    for _ in range(trials):
        interval = statistics.batch_interval(autoregressive(draw, n, coefficient))
        covered += interval.low <= 0 <= interval.high
    assert 0.93 <= covered / trials <= 0.97


@pytest.mark.parametrize("n", [10, 25])
def test_the_interval_of_one_launch_covers_skewed_values_with_outliers(n):
    draw, trials = random.Random(n), 2000
    covered = 0
    for _ in range(trials):
        values = [draw.lognormvariate(0.0, 0.7) * (20 if draw.random() < 0.05 else 1) for _ in range(n)]
        interval = statistics.batch_interval(values)
        truth = math.exp(0.7 * 0.0660)  # the median is where the undisturbed 95 % have 0.5 / 0.95 of theirs, about
        covered += interval.low <= truth <= interval.high
    assert 0.93 <= covered / trials <= 0.985


@pytest.mark.parametrize("n", [10, 15, 20, 34, 70])
def test_scatter_seldom_passes_for_a_drift_and_a_drift_shows(n):
    draw, trials = random.Random(n), 1000
    for coefficient, most in ((0.0, 0.02), (0.5, 0.02)):
        scattered = [[math.exp(0.05 * value) for value in autoregressive(draw, n, coefficient)] for _ in range(trials)]
        raised = sum(intervals.change_between_halves(samples) > 0 for samples in scattered)
        assert raised / trials <= most
        several = sum(intervals.change_between_halves(samples, intervals.CHANCE / 6) > 0 for samples in scattered)
        assert several <= raised
    rising = [1.0 + 0.04 * i / n + 0.001 * draw.random() for i in range(n)]
    assert intervals.change_between_halves(rising) == approx(0.02, abs=0.004)
    stepped = [1.0 + 0.04 * (i >= n // 2) + 0.005 * draw.gauss(0, 1) for i in range(n)]
    assert intervals.change_between_halves(stepped) == approx(0.04, abs=0.012)
    assert intervals.change_between_halves([1.0] * n) == 0.0
