"""Predicates of claims: they hold only where intervals say so, fail only where intervals say so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles.synthetic import timed

from experiments import judge
from experiments.evidence import latency_of
from experiments.spec import Answer, Verdict, all_of
from measurement.statistics import Interval
from reports.numbers import estimate

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def near(value: float, half: float = 1.0) -> Interval:
    return Interval(value, value - half, value + half)


@pytest.mark.parametrize(
    ("estimate", "is_above", "is_below"),
    [
        (near(13), HOLDS, FAILS),
        (near(7), FAILS, HOLDS),
        (near(10.5), OPEN, OPEN),
        (near(13, half=5), OPEN, OPEN),  # the value alone decides nothing
        (None, OPEN, OPEN),
    ],
)
def test_above_and_below(estimate, is_above, is_below):
    assert judge.above("x", estimate, 10).verdict == is_above
    assert judge.below("x", estimate, 10).verdict == is_below


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        (near(5), HOLDS),
        (near(20), FAILS),
        (near(-3), FAILS),
        (near(10), OPEN),
        (near(5, half=9), OPEN),
        (None, OPEN),
    ],
)
def test_between(estimate, verdict):
    assert judge.between("x", estimate, 0, 10).verdict == verdict


def test_an_answer_names_the_range_in_which_the_claim_holds():
    """Once for several answers with the same one."""
    above, between = judge.above("x", near(13), 10, " %"), judge.between("y", near(5), 0.5, 10)
    assert above.text == "x 13 % (12–14) (accepted: above 10)"
    assert judge.below("x", None, 1.5).text == "no interval: x … (accepted: below 1.5)"
    assert all_of([above, above]).text == "x 13 % (12–14); x 13 % (12–14) (accepted: above 10)"
    assert all_of([above, between]).text == f"{above.text}; y 5 (4–6) (accepted: 0.5–10)"
    cores = [judge.Cores("a", 1.0)]
    assert judge.used_one_core(cores).text == "a 1.00 cores (accepted: below 1.25)"
    assert judge.used_more_cores(cores).text == "a 1.00 cores (accepted: above 1.5)"


@pytest.mark.parametrize(
    ("this", "other", "verdict"),
    [(near(5), near(2), HOLDS), (near(2), near(5), FAILS), (near(2), near(3), OPEN), (None, near(1), OPEN)],
)
def test_greater(this, other, verdict):
    assert judge.greater("this", this, "other", other).verdict == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((1, 5, 9), HOLDS),
        ((1, 9, 8.5), HOLDS),  # a step within the intervals is no fall
        ((1, 9, 5), FAILS),  # up in all, and yet down in the last step
        ((9, 5, 1), FAILS),
        ((5, 5.5, 6), OPEN),
        ((5,), OPEN),
        ((), OPEN),
    ],
)
def test_grows_and_its_reverse(values, verdict):
    points = [(str(index), near(value)) for index, value in enumerate(values)]
    mirrored = [(label, near(-estimate.value)) for label, estimate in points]
    assert judge.grows("x", points).verdict == verdict
    assert judge.shrinks("x", mirrored).verdict == verdict


def test_points_without_an_interval_are_left_out_of_a_trend():
    answer = judge.grows("x", [("a", near(1)), ("b", None), ("c", near(9))])
    assert answer.verdict == HOLDS
    assert "b" not in answer.numbers.replace("by", "")


@pytest.mark.parametrize(
    ("cores", "one", "more"),
    [((1.0, 1.2), HOLDS, FAILS), ((1.9, 1.6), FAILS, HOLDS), ((1.3, 1.4), OPEN, OPEN), ((1.0, 1.9), FAILS, FAILS)],
)
def test_cores(cores, one, more):
    points = [judge.Cores("a", cores[0]), judge.Cores("b", cores[1])]
    assert judge.used_one_core(points).verdict == one
    assert judge.used_more_cores(points).verdict == more


def test_a_core_that_others_kept_busy_could_not_be_used():
    crowded = [judge.Cores("a", 0.95, others=1.0)]
    assert judge.used_one_core(crowded).verdict == OPEN
    assert judge.used_more_cores(crowded).verdict == OPEN
    assert judge.used_more_cores([judge.Cores("a", 1.9, others=1.0)]).verdict == HOLDS
    assert "(others 1.00)" in judge.used_one_core(crowded).numbers


def test_cores_that_nothing_tells():
    assert judge.used_one_core([]).verdict == OPEN


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, OPEN), OPEN),
        ((HOLDS, OPEN, FAILS), FAILS),
        ((), OPEN),
    ],
)
def test_several_answers(verdicts, together):
    assert all_of(Answer(verdict, "numbers") for verdict in verdicts).verdict == together


def test_answers_are_measured_where_one_of_them_has_numbers():
    missing = judge.inconclusive("no graph was measured")
    assert not all_of(()).measured and not all_of([missing]).measured
    assert all_of([missing, Answer(OPEN, "1.1×")]).measured


def test_a_ratio_of_two_measurements_is_narrower_than_its_ends_at_their_worst():
    ten, five = (timed(ms, spread=1 / ms, machine_id="a") for ms in (10, 5))
    value, low, high = judge.ratio_of(ten, five)
    assert value == pytest.approx(2) and 9 / 6 < low < 11 / 6 < 9 / 4 < high < 11 / 4
    assert judge.ratio_of(None, five) is None
    assert judge.ratio_of(ten, timed(5, spread=0, machine_id="a")) is None


def test_figures_of_two_machines_are_compared_in_no_way():
    records = [timed(ms, 10, seq_len=ms, machine_id=name) for ms, name in ((1, "a"), (2, "b"))]
    assert judge.ratio_of(*records) == judge.APART
    answers = [judge.above("twice", judge.ratio_of(*records), 1)]
    answers.append(judge.greater_of(latency_of, "this", records[1], "that", records[0]))
    answers.append(judge.trend_of(judge.grows, latency_of, "time", records, "seq_len", " ms"))
    begun = ("twice …", "this against that …", "time …")
    expected = [Answer(OPEN, f"{name}: {judge.APART}") for name in begun]  # measured, though not comparable
    assert [replace(answer, accepted="") for answer in answers] == expected


def test_an_estimate_as_text():
    assert estimate(Interval(12.345, 11.9, 12.8), " %") == "12.3 % (11.9–12.8)"
    assert estimate(Interval(12.345, 12.345, 12.345), " %") == "12.3 %"
    assert estimate(Interval(1.2812, 1.2799, 1.2826), "×") == "1.28× (1.28–1.283)"
