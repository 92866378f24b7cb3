"""The estimate of a break-even and its interval have one origin: what a call saves."""

from __future__ import annotations

import pytest

from measurement.statistics import Interval
from records import break_even


@pytest.mark.parametrize("saved", [Interval(0.0624, 0.0619, 0.0629), Interval(0.002, 0.0001, 0.0039)])
def test_the_interval_includes_the_estimate(saved):
    calls = break_even.from_savings(0.24, saved)
    assert calls.low < calls.value < calls.high
    assert calls == pytest.approx((0.24 / saved.value, 0.24 / saved.high, 0.24 / saved.low))
    assert break_even.between(calls.low, calls.high) == pytest.approx(calls.value)


def test_a_call_that_may_save_nothing_has_no_upper_end_and_one_that_saves_nothing_no_estimate():
    assert break_even.from_savings(1.0, Interval(0.001, -0.001, 0.003)) == (1000, pytest.approx(1000 / 3), None)
    assert break_even.from_savings(1.0, Interval(-0.001, -0.003, 0.001)) == (None, 1000, None)
    assert break_even.from_savings(-1.0, Interval(0.002, 0.001, 0.003)) == (None, None, None)


def test_savings_without_scatter_have_one_number():
    assert break_even.from_savings(2.0, Interval(0.002, 0.002, 0.002)) == (1000, 1000, 1000)
    assert break_even.between(1000, 1000) == 1000
