"""Statistics against printed tables, values worked out by hand, and the coverage they promise."""

from __future__ import annotations

import math
import random

import pytest
from pytest import approx

from measurement import statistics
from measurement.statistics import Interval


@pytest.mark.parametrize(
    ("n", "k"),
    # k: the largest with P[Binomial(n, 1/2) < k] <= 0.025. From tables of the binomial distribution, e.g. for n = 20
    # P[X <= 5] = 0.0207 and P[X <= 6] = 0.0577; the sign test's critical values are k - 1.
    [(6, 1), (7, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10), (50, 18), (100, 40)],
)
def test_median_interval_takes_the_order_statistics_of_the_binomial_table(n, k):
    values = list(range(1, n + 1))
    random.Random(n).shuffle(values)
    assert statistics.median_interval(values) == Interval((n + 1) / 2, k, n + 1 - k)


@pytest.mark.parametrize("n", range(6))
def test_under_six_values_have_no_interval(n):
    assert statistics.median_interval([1.0] * n) is None


def test_median_interval_of_thousands_of_values():
    # The normal approximation of the binomial: k = n/2 - 1.96 sqrt(n)/2 = 1201 for n = 2500.
    interval = statistics.median_interval(range(1, 2501))
    assert interval.value == 1250.5
    assert interval.low == approx(1201, abs=1)
    assert interval.low + interval.high == 2501


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (6, 2.447), (10, 2.228), (30, 2.042), (10_000, 1.960)],
)
def test_t_quantiles_are_the_table_s(degrees, quantile):
    assert statistics.t_quantile(degrees) == quantile


def test_t_quantiles_fall_with_the_degrees_of_freedom():
    quantiles = [statistics.t_quantile(n) for n in range(1, 40)]
    assert quantiles == sorted(quantiles, reverse=True)


def test_student_interval_by_hand():
    # Mean 2, standard deviation 1, t(2) = 4.303: 2 -+ 4.303 / sqrt(3).
    interval = statistics.student_interval([1.0, 2.0, 3.0])
    assert (interval.value, interval.low, interval.high) == approx((2.0, 2 - 2.48434, 2 + 2.48434), abs=1e-5)
    assert statistics.student_interval([1.0, 2.0]) is None


def test_summary_by_hand():
    # 1..20, shuffled: nearest rank ceil(0.95 * 20) = 19; variance 35 = (n^2 - 1) / 12 * n / (n - 1).
    values = [float(value) for value in range(1, 21)]
    random.Random(0).shuffle(values)
    summary = statistics.summarise(values)
    assert summary == statistics.Summary(20, 10.5, 10.5, approx(math.sqrt(35)), 19.0, 1.0)


def test_summary_tells_median_from_mean_and_has_no_deviation_of_one_sample():
    assert statistics.summarise([1.0, 1.0, 10.0]).median == 1.0
    assert statistics.summarise([1.0, 1.0, 10.0]).mean == 4.0
    assert statistics.summarise([3.0]) == statistics.Summary(1, 3.0, 3.0, None, 3.0, 3.0)


def test_log_ratios_pair_what_was_taken_in_the_same_round():
    assert statistics.log_ratios([2.0, 3.0], [1.0, 6.0]) == approx([math.log(2), -math.log(2)])
    with pytest.raises(ValueError):
        statistics.log_ratios([1.0, 2.0], [1.0])


def test_ratio_of_one_launch_is_the_median_with_its_order_statistics():
    ratios = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    interval = statistics.ratio([[math.log(r) for r in ratios]])
    assert (interval.value, interval.low, interval.high) == approx((1.4, 1.1, 1.7))


def test_ratio_of_two_launches_pools_their_pairs():
    low, high = [1.0, 1.1, 1.2, 1.3, 1.4], [1.5, 1.6, 1.7, 1.8, 1.9]
    interval = statistics.ratio([[math.log(r) for r in low], [math.log(r) for r in high]])
    # n = 10, k = 2; the median of logarithms lies at the geometric mean of the middle two.
    assert (interval.value, interval.low, interval.high) == approx((math.sqrt(1.4 * 1.5), 1.1, 1.8))
    assert statistics.ratio([[0.0] * 3, [0.0] * 2]) is None


def test_ratio_of_three_launches_is_student_s_over_their_medians():
    # Medians 1, 2 and 4 with outliers around them: logarithms 0, ln 2, 2 ln 2; mean ln 2, standard deviation ln 2.
    launches = [[0.0, 0.0, 9.0], [math.log(2), -7.0, math.log(2)], [math.log(4), math.log(4), 8.0]]
    interval = statistics.ratio(launches)
    half = 4.303 * math.log(2) / math.sqrt(3)
    assert interval.value == approx(2.0)
    assert (interval.low, interval.high) == approx((2 * math.exp(-half), 2 * math.exp(half)))


def test_a_launch_without_pairs_does_not_count():
    pairs = [[math.log(1.5)] * 6, [], []]
    assert statistics.ratio(pairs).value == approx(1.5)
    assert statistics.ratio([]) is None
    assert statistics.ratio([[], []]) is None


def test_relative_half_width():
    assert Interval(2.0, 1.5, 2.7).relative_half_width == approx(0.3)
    assert Interval(-2.0, -2.7, -1.5).relative_half_width == approx(0.3)
    assert Interval(0.0, -1.0, 1.0).relative_half_width == math.inf


def test_quartiles_are_type_7():
    assert statistics.quartiles([4.0, 1.0, 3.0, 2.0]) == (1.75, 3.25)
    assert statistics.quartiles([5.0, 4.0, 3.0, 2.0, 1.0]) == (2.0, 4.0)
    assert statistics.quartiles([7.0]) == (7.0, 7.0)


@pytest.mark.parametrize(
    ("later", "agree"),
    [
        ([100.0, 100.0, 100.0], True),
        ([102.0, 102.0, 102.0], True),  # 2 % is allowed
        ([102.1, 102.1, 102.1], False),
        ([97.9, 97.9, 97.9], False),
        ([100.0, 100.0, 110.0], True),  # third quartile 105
        ([100.0, 100.0, 110.2], False),
        ([89.0, 100.0, 100.0], False),  # first quartile 94.5
    ],
)
def test_windows_agree_in_median_and_quartiles(later, agree):
    assert statistics.steady([100.0, 100.0, 100.0], later, 0.02, 0.05) is agree
    assert statistics.steady(later, [100.0, 100.0, 100.0], 0.02, 0.05) is agree


@pytest.mark.parametrize("n", [10, 25])
def test_median_interval_covers_as_it_promises(n):
    draw, trials = random.Random(n), 2000
    covered = 0
    for _ in range(trials):
        interval = statistics.median_interval([draw.lognormvariate(0.0, 0.7) for _ in range(n)])
        covered += interval.low <= 1.0 <= interval.high
    assert 0.95 <= covered / trials <= 0.995


def test_student_ratio_covers_as_it_promises():
    """Launches differ by more than their pairs do: the interval has to know."""
    draw, trials = random.Random(1), 1000
    covered = 0
    for _ in range(trials):
        offsets = [draw.gauss(math.log(1.5), 0.03) for _ in range(5)]
        interval = statistics.ratio([[draw.gauss(offset, 0.02) for _ in range(15)] for offset in offsets])
        covered += interval.low <= 1.5 <= interval.high
    assert 0.93 <= covered / trials <= 0.97
