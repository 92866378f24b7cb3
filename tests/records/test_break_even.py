"""A break-even is a ratio of two means: the extra time of the first call, and what a call saves."""

from __future__ import annotations

import random

import pytest

from measurement.statistics import Interval
from records import break_even
from records.intervals import over_processes


def exact(seconds: float) -> Interval:
    return Interval(seconds, seconds, seconds)


@pytest.mark.parametrize("saved", [Interval(0.0624, 0.0619, 0.0629), Interval(0.002, 0.0001, 0.0039)])
def test_with_an_exact_first_call_the_interval_is_that_of_the_savings(saved):
    calls = break_even.from_savings(exact(0.24), saved)
    assert calls.low < calls.value < calls.high
    assert calls == pytest.approx((0.24 / saved.value, 0.24 / saved.high, 0.24 / saved.low))
    assert break_even.between(calls.low, calls.high) == pytest.approx(calls.value)


def test_a_call_that_may_save_nothing_has_no_upper_end_and_one_that_saves_nothing_no_estimate():
    one = exact(1.0)
    assert break_even.from_savings(one, Interval(0.001, -0.001, 0.003)) == (1000, pytest.approx(1000 / 3), None)
    assert break_even.from_savings(one, Interval(-0.001, -0.003, 0.001)) == (None, pytest.approx(1000), None)
    assert break_even.from_savings(one, Interval(-0.002, -0.003, -0.001)) == (None, None, None)
    assert break_even.from_savings(exact(-1.0), Interval(0.002, 0.001, 0.003)) == (None, None, None)


def test_savings_without_scatter_have_one_number():
    assert break_even.from_savings(exact(2.0), exact(0.002)) == pytest.approx((1000, 1000, 1000))
    assert break_even.between(1000, 1000) == 1000


def test_the_scatter_of_first_calls_widens_the_interval():
    saved = Interval(0.002, 0.0018, 0.0022)
    assert break_even.from_savings(Interval(2.0, 1.0, 3.0), exact(0.002)) == pytest.approx((1000, 500, 1500))
    (value, low, high), alone = break_even.from_savings(Interval(2.0, 1.0, 3.0), saved), (2 / 0.0022, 2 / 0.0018)
    assert value == 1000 and low < alone[0] and high > alone[1]
    for calls in (low, high):  # the interval of what remains ends at 0
        assert abs(2.0 - calls * 0.002) == pytest.approx((1.0 + (calls * 0.0002) ** 2) ** 0.5)


@pytest.mark.parametrize("saved", [Interval(0.001, -0.001, 0.003), Interval(-0.001, -0.003, 0.001)])
def test_where_the_first_call_may_take_no_longer_the_interval_begins_at_0(saved):
    assert break_even.from_savings(Interval(1.0, -1.0, 3.0), saved)[1:] == (0.0, None)


@pytest.mark.parametrize("processes", [3, 5, 10])
def test_the_interval_holds_the_truth_as_often_as_it_says(processes):
    """First calls of 2 s scatter by 20 %, savings of 2 ms by 10 %."""
    draw, held = random.Random(processes), 0
    for _ in range(1000):
        extra, saved = (
            over_processes([[draw.gauss(mean, share * mean)] for _ in range(processes)])
            for mean, share in ((2.0, 0.2), (0.002, 0.1))
        )
        calls = break_even.from_savings(extra, saved)
        held += calls.low <= 1000 and (calls.high is None or calls.high >= 1000)
    assert 930 <= held <= 995
