"""Intervals over processes: values worked out by hand, and the coverage that studies/coverage.py shows at length."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from doubles.scatter import Host, Rounds
from pytest import approx

from measurement import statistics
from records import intervals
from studies import coverage


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (6, 2.447), (10, 2.228), (30, 2.042), (10_000, 1.960)],
)
def test_the_runner_s_t_quantiles_are_the_table_s(degrees, quantile):
    assert intervals.quantile(degrees) == approx(quantile, abs=6e-4)


def test_one_launch_s_interval_is_the_worker_s():
    """The worker stops by the interval that the record gets, though it computes it from a table."""
    draw = random.Random(3)
    for n in (6, 10, 17, 40, 200):
        values = [draw.gauss(0, 1) for _ in range(n)]
        assert intervals.over_processes([values]) == approx(statistics.batch_interval(values), rel=1e-3, abs=1e-9)


def test_two_launches_hold_both_medians():
    apart = intervals.over_processes([[1.0, 1.1] * 5, [3.0, 3.1] * 5])
    assert apart == approx((2.05, 1.05, 3.05))
    assert intervals.over_processes([[0.0] * 6, [0.0] * 5]) is None


def test_three_launches_are_student_s_over_their_medians():
    # Medians 0, 1 and 2 with outliers around them: mean 1, standard deviation 1, t(2) = 4.3027, widened by 1.2.
    launches = [[0.0, 0.0, 9.0], [1.0, -7.0, 1.0], [2.0, 2.0, 8.0]]
    half = 1.2 * 4.3027 / math.sqrt(3)
    assert intervals.over_processes(launches) == approx((1.0, 1 - half, 1 + half), abs=1e-4)


def test_a_launch_without_values_does_not_count():
    assert intervals.over_processes([[1.5] * 6, [], []]) == (1.5, 1.5, 1.5)
    assert intervals.over_processes([]) is None
    assert intervals.over_processes([[], []]) is None


COVERED = (0.925, 0.975)  # 93 to 97 %, and the error of 2000 trials


@pytest.mark.parametrize("processes", coverage.PROCESSES)
@pytest.mark.parametrize(
    "scatter", [Rounds(0.02, 0.0, 0.0, 12), Rounds(0.1, 0.02, 0.6, 6), Rounds(0.005, 0.1, 0.3, 30)]
)
def test_intervals_over_processes_cover_as_they_promise(scatter, processes):
    count = coverage.fixed(scatter, processes, trials=3000, seed=processes)
    assert len(count.held) == 3000 and COVERED[0] <= count.coverage <= COVERED[1]


@pytest.mark.parametrize("profile", coverage.STOPPING)
@pytest.mark.parametrize("share", [0.3, 1.6, 2.5])
def test_they_do_where_processes_are_added_until_they_are_narrow(profile, share):
    target, most = coverage.STOPPING[profile]
    scatter = Rounds(share * target / 2, share * target, 0.3, 6)
    count = coverage.stopped(scatter, target, most, trials=2000, seed=most)
    assert COVERED[0] <= count.coverage <= COVERED[1]


def test_without_the_correction_stopping_covers_too_rarely(monkeypatch):
    monkeypatch.setattr(intervals, "correction", lambda processes: 1.0)
    assert coverage.stopped(Rounds(0.03, 0.07, 0.3, 6), 0.05, 10, trials=3000, seed=1).coverage < 0.92


@pytest.mark.parametrize("processes", coverage.PROCESSES)
@pytest.mark.parametrize(("share", "spell"), [(0.3, 2), (0.3, 10)])
def test_intervals_cover_on_a_host_that_is_slow_at_times(share, spell, processes):
    """From samples to the speedup, as workers stop and records judge; cells without a headline do not count."""
    count = coverage.slow_host(Host(share, spell), processes, 0.0, trials=150, seed=processes)
    assert count.coverage >= 0.92 and len(count.held) > 100


def test_a_run_that_saw_the_host_slow_alone_has_no_headline_where_the_machine_is_known():
    count = coverage.slow_host(Host(0.98, 200), 3, 0.0, trials=20, seed=1, full_s=3.1e-4)
    assert count.open >= 19


@pytest.mark.parametrize(("processes", "target"), [(3, 0.0), (10, 0.0), (10, 0.05)])
def test_intervals_cover_on_a_gpu_whose_host_changes_its_clock_and_are_as_narrow(processes, target):
    """Clocks that differ by 10 % between processes widen no interval; without the scaling they double it."""
    of = Host(0.3, 10, clock=0.1)
    count = coverage.slow_host(of, processes, target, 200, processes, gpu="fastest")
    assert count.coverage >= 0.92 and len(count.held) > 100
    assert median(count.widths) < {3: 0.09, 10: 0.025}[processes] + target
