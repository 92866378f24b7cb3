"""Tests on logarithms against SciPy's on the values themselves, and Holm's correction against its definition."""

from __future__ import annotations

import math
import random
from statistics import fmean, stdev

import numpy as np
import pytest
from doubles.reported import record
from scipy.stats import linregress, ttest_ind
from scipy.stats import t as student

from analysis.significance import (
    Estimates,
    geometric_mean,
    holm,
    independent_difference,
    independent_ratio,
    over_runs,
)
from measurement.statistics import Interval
from records.intervals import correction, over_processes, trend
from records.record import Record
from studies import coverage


def estimates(values: list[float]) -> Estimates:
    """What a record says of launches with these medians."""
    half = student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    ends = (math.exp(fmean(values) + sign * half) for sign in (0, -1, 1))
    return Estimates.from_arrays(Interval(*(np.array([end]) for end in ends)), np.array([len(values)]))


@pytest.mark.parametrize(
    ("launches", "spread"), [((3, 3), (0.01, 0.01)), ((6, 3), (0.01, 0.05)), ((12, 6), (0.2, 0.01))]
)
def test_a_difference_is_welch_s(launches, spread):
    draw = random.Random(11)
    a, b = ([draw.gauss(1.0, width) for _ in range(count)] for count, width in zip(launches, spread, strict=True))
    change, expected = estimates(b) - estimates(a), ttest_ind(b, a, equal_var=False)
    assert change.chance[0] == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert [float(end[0]) for end in change.interval] == pytest.approx(
        [math.exp(fmean(b) - fmean(a)), math.exp(low), math.exp(high)]
    )


@pytest.mark.parametrize("count", [3, 4, 17])
def test_a_trend_is_the_line_of_least_squares(count):
    draw = random.Random(count)
    values = [draw.gauss(0.1 * place, 1.0) for place in range(count)]
    expected = linregress(range(count), values)
    assert trend(values) == pytest.approx((expected.slope, expected.stderr))


def test_a_record_s_interval_is_taken_as_student_s():
    launches = [[math.log(x)] for x in (1.0, 1.1, 0.9)]
    interval = over_processes(launches).map(math.exp)
    (error,) = Estimates.from_arrays(Interval(*(np.array([end]) for end in interval)), np.array([3])).error
    assert error * student.ppf(0.975, 2) == pytest.approx(math.log(interval.high / interval.low) / 2)


def test_a_ratio_is_welch_s_and_an_interval_of_unknown_processes_is_taken_as_of_known_error():
    a, b = Interval(2.0, 1.8, 2.0 / 0.9), Interval(1.0, 0.9, 1.0 / 0.9)
    width = -math.log(0.9)
    for processes, factor in (((None, None), 1.0), ((3, 3), student.ppf(0.975, 4) / student.ppf(0.975, 2))):
        ratio = independent_ratio(a, b, processes)
        half = factor * math.sqrt(2) * width
        assert ratio == pytest.approx((2.0, 2 * math.exp(-half), 2 * math.exp(half)))
    exact = independent_ratio(a, Interval(1.0, 1.0, 1.0), (3, None))
    assert exact == pytest.approx(a)


def test_a_difference_has_the_same_rule_without_logarithms():
    found = independent_difference(Interval(-1.0, -4.0, 2.0), Interval(2.0, -2.0, 6.0))
    assert found == pytest.approx((-3.0, -8.0, 2.0))


def test_runs_that_agree_narrow_the_interval_and_runs_that_differ_widen_it():
    def run(value: float) -> Interval:
        return Interval(value, value / 1.1, value * 1.1)

    assert over_runs([run(2.0)], [3]) == run(2.0)
    widths = [over_runs([run(2.0)] * count, [3] * count).relative_half_width for count in (1, 2, 3, 5, 10)]
    assert widths == sorted(widths, reverse=True)
    assert over_runs([run(1.5), run(2.0), run(2.6)], [3] * 3).relative_half_width > widths[0]


@pytest.mark.parametrize("processes", [(3, 3), (3, 10)])
def test_ratios_of_figures_measured_apart_cover_as_they_promise(processes):
    count = coverage.two_sides(processes, (0.03, 0.1), trials=1500, seed=1)
    assert 0.94 <= count.coverage <= 0.985


def test_more_runs_give_narrower_intervals_that_cover():
    counts = [coverage.several_runs(runs, 3, 0.02, trials=600, seed=runs) for runs in (1, 2, 3, 5)]
    widths = [np.median(count.widths) for count in counts]
    assert widths == sorted(widths, reverse=True)
    assert all(count.coverage >= 0.95 for count in counts[1:])


def gains(values: list[float], spread: float = 0.1) -> list[Record]:
    """Records of workloads with these speedups, over three processes."""
    ends = (
        {"speedup_vs_eager": v, "speedup_ci_low": v / (1 + spread), "speedup_ci_high": v * (1 + spread)} for v in values
    )
    return [record("alpha", "graph", workload=f"model {n}", **end) for n, end in enumerate(ends)]


def test_a_geometric_mean_of_independent_cells_gains_degrees_of_freedom():
    mean = geometric_mean(gains([1.0, 4.0, 2.0, 2.0]))
    half = math.log(1.1) / 2 * student.ppf(0.975, 8) / student.ppf(0.975, 2)
    assert mean == pytest.approx((2.0, 2 * math.exp(-half), 2 * math.exp(half)))


def test_a_geometric_mean_is_formed_in_each_process_where_the_cells_share_them():
    both = gains([1.5, 2.5])
    logarithms = [{n: math.log(row.speedup.value) + shift for n, shift in enumerate((-0.1, 0.0, 0.1))} for row in both]
    found = dict(zip(both, logarithms, strict=True))
    shared, apart = geometric_mean(both, found.get), geometric_mean(both)
    half = correction(3) * student.ppf(0.975, 2) * 0.1 / math.sqrt(3)  # errors that cells share do not average out
    centre = math.sqrt(1.5 * 2.5)
    assert shared == pytest.approx((centre, centre * math.exp(-half), centre * math.exp(half)))
    opposite = dict(zip(both, (logarithms[0], {2 - n: value for n, value in logarithms[1].items()}), strict=True))
    assert (
        shared.relative_half_width > apart.relative_half_width > geometric_mean(both, opposite.get).relative_half_width
    )
    found[both[1]].pop(2)  # two processes alone measured both
    assert geometric_mean(both, found.get) == apart


@pytest.mark.parametrize("likeness", [0.0, 0.8])
def test_geometric_means_cover_however_much_cells_have_in_common(likeness):
    assert 0.925 <= coverage.means(5, likeness, trials=800, seed=3).coverage <= 0.985


def test_holm_by_its_definition():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_holm_keeps_any_false_alarm_among_many_rare():
    draw = np.random.default_rng(5)
    chances = draw.random((4000, 20))
    alarms = np.mean([(holm(row) < 0.05).any() for row in chances])
    assert 0.035 < alarms < 0.06
    assert np.mean((chances < 0.05).any(axis=1)) > 0.6  # without it
