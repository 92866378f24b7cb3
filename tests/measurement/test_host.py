"""The host's own speed: which rounds are set aside, and what that does to intervals, on synthetic series."""

from __future__ import annotations

import math
import random

import pytest
from doubles.clock import PROFILE, TICK, Machine
from pytest import approx

from measurement import host
from measurement.sampling import take_rounds
from records.assemble import speedup
from records.outcomes import Outcome, counted


def test_the_loop_is_timed_before_every_turn_and_outside_it():
    machine, turns = Machine(), []
    variants = [machine.variant(name, 16 * TICK, calls_per_sample=1) for name in "ab"]

    def control() -> float:
        assert not machine.queued
        turns.append(len(machine.called()))
        machine.now += 5.0 * TICK  # were it inside a sample, that would show
        return float(len(turns))

    series = take_rounds(variants, PROFILE, machine.clocks, random.Random(0), control=control)
    assert turns == list(range(2 * len(series)))
    assert series == [2 * index + 2.0 for index in range(len(variants[0].samples))]  # the larger of a round's two
    assert {*variants[0].samples, *variants[1].samples} == {16 * TICK}
    assert take_rounds(variants, PROFILE, machine.clocks, random.Random(0)) == []


def test_the_loop_s_time_is_the_faster_of_two():
    readings = iter([0.0, 3.0, 4.0])
    assert host.loop_seconds(lambda: next(readings)) == 1.0
    assert host.loop() == host.loop() > 0


@pytest.mark.parametrize(
    ("series", "left"),
    [
        ([1.0] * 10, 10),
        ([1.0] * 9 + [1.25], 10),  # at the threshold
        ([1.0] * 9 + [1.26], 9),
        ([1.0] * 8 + [1.9, 2.0], 8),
        ([1.0] * 15 + [2.0] * 5, 15),  # a quarter
        ([1.0] * 14 + [2.0] * 6, 20),  # more: all are kept
        ([1.0] * 5 + [2.0], 6),  # five would have no interval
        ([2.0] * 19 + [1.0], 20),  # the slow ones are its usual speed
        ([], 12),
    ],
)
def test_at_most_a_quarter_of_the_rounds_is_set_aside(series, left):
    rounds = len(series) or 12
    kept = host.kept(series, rounds)
    assert len(kept) == left
    assert all(not series or series[index] <= host.SLOW or left == rounds for index in kept)


def test_rounds_without_a_reading_are_kept():
    assert host.kept([1.0, 1.0, 1.0, 9.0], 12) == [0, 1, 2, *range(4, 12)]


def series_of(draw: random.Random, rounds: int, share: float) -> tuple[list[float], list[float], list[float]]:
    """Eager that the host decides, a graph that it does not, and the loop; slow spells of four rounds on average."""
    slow, eager, graph, loop = False, [], [], []
    leave, enter = 1 / 4, share / (1 - share) / 4
    for _ in range(rounds):
        slow = draw.random() > leave if slow else draw.random() < enter
        speed = 1.9 if slow else 1.0
        eager.append(4e-3 * speed * math.exp(draw.gauss(0, 0.02)))
        graph.append(1e-3 * math.exp(draw.gauss(0, 0.02)))
        loop.append(3e-4 * speed * math.exp(draw.gauss(0, 0.03)))
    return eager, graph, loop


def coverage(cell, report, share: float, with_control: bool, rounds: int = 40, trials: int = 1500) -> tuple:
    """How often the interval holds the ratio at the host's usual speed, the bias of the estimate, the mean width."""
    draw, covered, errors, widths = random.Random(f"{share}"), 0, [], []
    for _ in range(trials):
        eager, graph, loop = series_of(draw, rounds, share)
        outcomes = []
        for mode, samples in (("eager", eager), ("graph", graph)):
            made = report(samples, host_loop_s=loop if with_control else [], worker="1")
            outcomes.append(Outcome(cell(mode=mode), reports=[made]))
        interval = speedup(outcomes[1], outcomes[0])
        covered += interval.low <= 4.0 <= interval.high
        errors.append(math.log(interval.value / 4))
        widths.append(interval.relative_half_width)
    return covered / trials, sum(errors) / trials, sum(widths) / trials


def test_without_slow_spells_the_rule_changes_nothing(cell, report):
    with_rule, without = (coverage(cell, report, 0.0, control) for control in (True, False))
    assert with_rule == approx(without, abs=0.002)
    assert 0.93 <= with_rule[0] <= 0.99


@pytest.mark.parametrize("share", [0.05, 0.12, 0.2])
def test_slow_spells_bias_and_widen_the_ratio_less_with_the_rule(cell, report, share):
    covered, bias, width = coverage(cell, report, share, True)
    _, bias_without, width_without = coverage(cell, report, share, False)
    assert 0.93 <= covered <= 0.985
    assert 0 <= bias < 0.9 * bias_without  # what is left comes from launches that were slow for more than a quarter
    assert width < 0.5 * width_without


def test_what_is_set_aside_counts_for_nothing_and_is_in_the_record(report):
    slow = report([1.0] * 10 + [9.0] * 2, host_loop_s=[1.0] * 10 + [1.9] * 2)
    assert counted(slow) == [1.0] * 10
