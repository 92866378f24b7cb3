"""The host's own speed: which turns are set aside, and what that does to estimates, on synthetic series."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from statistics import fmean

import pytest
from doubles.clock import PROFILE, TICK, Machine

from analysis.paired import processes_of, rounds_in_turn
from measurement import host
from measurement.sampling import Clocks, Variant, take_rounds
from records.assemble import paired, speedup
from records.cell_result import CellResult, full_speed_s


def test_the_loop_is_timed_around_every_turn_and_outside_it():
    machine, turns = Machine(), []
    variants = [machine.variant(name, 16 * TICK, calls_per_sample=1) for name in "ab"]

    def control() -> tuple[float]:
        assert not machine.queued
        turns.append(len(machine.called()))
        machine.now += 5.0 * TICK  # were it inside a sample, that would show
        return (float(len(turns)),)

    profile = dataclasses.replace(PROFILE, maximum_seconds_per_cell=1.0)  # here every turn is slower than the last
    full_s = take_rounds(variants, profile, machine.clocks, random.Random(0), control=control)
    rounds = len(variants[0].samples)
    assert turns == [2 * number + place for number in range(rounds) for place in range(3)]
    ends = [{3.0 * number + 2, 3.0 * number + 3} for number in range(rounds)]  # the slower one around either turn
    assert [{*pair} for pair in zip(variants[0].loops, variants[1].loops, strict=True)] == ends
    assert full_s == 1 + int(0.1 * 3 * rounds)
    assert {*variants[0].samples, *variants[1].samples} == {16 * TICK}
    assert take_rounds(variants, PROFILE, machine.clocks, random.Random(0)) is None


def test_the_loop_s_time_is_the_faster_of_two():
    readings = iter([0.0, 3.0, 4.0])
    assert host.loop_seconds(lambda: next(readings)) == 1.0
    assert host.loop() == host.loop() > 0


@pytest.mark.parametrize(
    ("loops", "earlier", "full"),
    [
        ([], None, None),
        ([], 2.0, 2.0),
        ([3.0, 1.0, 2.0], None, 1.0),
        ([2.0] * 18 + [1.0] * 2, None, 2.0),  # at the decile itself
        ([2.0] * 17 + [1.0] * 3, None, 1.0),
        ([2.0] * 20, 1.5, 1.5),  # slow throughout, as earlier processes show
        ([2.0] * 20, 3.0, 2.0),
    ],
)
def test_full_speed_is_the_fastest_decile(loops, earlier, full):
    assert host.full_seconds(loops, earlier) == full


def test_a_turn_is_good_up_to_the_threshold_and_without_a_loop():
    assert host.good_turns([1.0, 1.25, 1.26], 5, 1.0) == [True, True, False, True, True]
    assert host.good_turns([9.0], 2, None) == [True, True]


@pytest.mark.parametrize(("host_s", "good"), [(None, 1), (0.41, 1), (0.4, 3), (0.0, 3)])
def test_every_turn_counts_where_calls_never_wait_for_the_host(host_s, good):
    limited = host.limits(host_s, [1.0, 1.0, 9.0])
    assert sum(host.good_turns([1.0, 2.0, 2.0], 3, 1.0, limited)) == good
    assert host.limits(0.1, ())


FAST, SLOW = 1.0, 2.0  # times of the control loop


@pytest.mark.parametrize(
    ("slow_s", "loops", "follow"),
    [
        ([1.00, 1.01, 1.03], [FAST, SLOW, SLOW, SLOW], False),
        ([1.00, 1.03, 1.50], [FAST, SLOW, SLOW, SLOW], True),  # as with a host that limits some turns
        ([0.90, 0.90, 0.90], [FAST, SLOW, SLOW, SLOW], True),  # the difference has another cause
        ([1.00, 1.00, 1.00], [SLOW] * 4, True),  # no fast turn to compare with
        ([1.00, 1.00, 1.00], [FAST] * 4, True),
    ],
)
def test_slow_turns_count_if_they_take_the_time_of_fast_ones(slow_s, loops, follow):
    """A full queue blocks submission, so that its share is above the limit."""
    turns = host.Turns([1.0, *slow_s], loops, 0.7, None)
    assert host.follows([turns] * 3, FAST) == follow
    assert host.good_in_all([turns] * 3, FAST) == [[loop == FAST or not follow for loop in loops]] * 3
    assert host.follows([turns], FAST)  # one process
    assert all(host.follows([turns._replace(host_s=seconds)] * 3, FAST) for seconds in (None, 0.9))


def test_one_process_with_longer_slow_turns_shows_that_the_mode_follows_the_host():
    """Short bursts at the loops alone must not outvote it."""
    bursts = host.Turns([1.0] * 20, [FAST, SLOW] * 10, 0.7, None)
    slowed = host.Turns([1.6] * 20, [SLOW] * 20, 0.7, None)
    assert not host.follows([bursts] * 4, FAST) and host.follows([*[bursts] * 4, slowed], FAST)


def test_a_mode_that_does_not_follow_the_host_is_not_scaled():
    both = [host.Turns([4.0] * 9, [loop] * 6 + [SLOW] * 3, 3.0, None) for loop in (FAST, 1.2)]
    assert host.at_full_speed([both], FAST) == [[[4.0] * 9] * 2]
    follow = [turns._replace(samples=[4.0] * 6 + [8.0] * 3) for turns in both]
    assert host.at_full_speed([follow], FAST)[0][1][0] < 4.0


@pytest.mark.parametrize(("slow_s", "rounds"), [(6.0, 6), (3.0, 9)])
def test_the_slow_rounds_count_where_neither_mode_follows_the_host(slow_s, rounds):
    loops = [FAST] * 6 + [SLOW] * 3
    lines = [
        {"cell": cell, "seconds_per_call": seconds, "host_loop_s": loops, "full_speed_s": FAST, "host_s": 2.0}
        for cell, seconds in (("eager", [3.0] * 6 + [slow_s] * 3), ("graph", [3.0] * 9))
    ]
    assert [len(taken) for taken in rounds_in_turn([lines] * 3)] == [rounds] * 3


SLOWER = 1.2  # times as long as at full speed, which is good


@pytest.mark.parametrize(
    ("host_s", "seconds"),
    [
        ([3.6, 8.0], 4.0),  # the second was submitted while the host was slow
        ([2.8, 8.0], 4.2),  # the fastest submission decides: 70 % of the time waits in part
        ([1.6, 8.0], 4.8),
        ([None, None], 4.8),
    ],
)
def test_calls_that_wait_for_the_host_are_scaled_to_its_full_speed(host_s, seconds):
    samples, loops = [(4.0,) * 6, (4.8,) * 6], [(1.0,) * 6, (SLOWER,) * 6]
    turns = [host.Turns(*process, None) for process in zip(samples, loops, host_s, strict=True)]
    assert host.at_full_speed([turns], 1.0) == [[[4.0] * 6, pytest.approx([seconds] * 6)]]
    assert host.at_full_speed([turns], None) == [[list(of_process) for of_process in samples]]


@pytest.mark.parametrize(("device_s", "seconds"), [(None, 4.0), (3.0, 4.0), (4.5, 4.5), (9.0, 4.8)])
def test_no_call_is_scaled_below_the_device_s_time(device_s, seconds):
    """The device's time is known of one process, and a profile may lengthen it beyond the call's."""
    turns = [host.Turns((4.8,) * 6, (SLOWER,) * 6, 4.8, known) for known in (device_s, None)]
    assert host.at_full_speed([turns], 1.0, 1.0) == [[pytest.approx([seconds] * 6)] * 2]


def test_in_a_ratio_of_two_modes_that_wait_the_core_cancels():
    eager, graph = host.Turns((4.8,) * 6, (1.2,) * 6, 4.8, None), host.Turns((2.4,) * 6, (1.0,) * 6, 2.4, None)
    ((theirs,), (ours,)) = host.at_full_speed([[eager], [graph]], 1.0, 1.0)
    assert theirs[0] / ours[0] == pytest.approx(2.0) and theirs[0] < 4.8


def test_few_good_turns_do_not_classify_a_mode():
    good = host.Turns((4.0,) * 6, (1.0,) * 6, 4.0, None)
    few = host.Turns((4.0,) * 6, (1.0, *[2.0] * 5), 0.1, None)  # submitted in 0.1 of 4 seconds
    assert host.at_full_speed([[good, few]], 0.9, 0.9)[0][0] == pytest.approx([3.6] * 6)
    assert host.at_full_speed([[few]], 0.9, 0.9) == [[[4.0] * 6]]


def test_a_core_of_constant_speed_scales_nothing_whatever_the_loops_scatter():
    """The fastest of many loops is 5 % faster than their median here."""
    draw = random.Random(3)
    loops = [[math.exp(abs(draw.gauss(0, 0.03))) for _ in range(30)] for _ in range(5)]
    turns = [host.Turns([4.0] * 30, process, 4.0, None) for process in loops]
    (scaled,) = host.at_full_speed([turns], host.full_seconds(list(itertools.chain(*loops))))
    assert fmean(process[0] for process in scaled) == pytest.approx(4.0, rel=0.005)


def test_equal_modes_stay_equal_where_the_share_of_submission_is_at_the_limit():
    slow, fast = (1.2,) * 6, (1.0,) * 6
    modes = [[host.Turns((4.0,) * 6, loops, 4.0 * share, None) for loops in (slow, fast)] for share in (0.79, 0.81)]
    ours, theirs = host.at_full_speed(modes, 1.0)
    assert ours[0][0] / theirs[0][0] == pytest.approx(1.0, abs=0.01) and ours[0][0] < 3.4


@pytest.mark.parametrize("figure", ["latency", "speedup", "pairs", "sides", "Pythons"])
def test_latencies_and_speedups_have_the_scaled_times(figure, cell, report):
    """Process 1 has a core of 0.8 times the speed; the graph waits for no host."""
    eager, graph, lines = CellResult(cell(mode="eager")), CellResult(cell(mode="graph")), []
    for launch, slower in enumerate([1.0, 1.25, 1.0]):
        for result, seconds, host_s in ((eager, 4e-3 * slower, 4e-3 * slower), (graph, 1e-3, 1e-5)):
            known = {"host_loop_s": [3e-4 * slower] * 10, "full_speed_s": 3e-4, "host_s": host_s}
            result.add(report([seconds] * 10, process=launch, **known))
            lines.append({"cell": result.cell.id, "launch": launch, "seconds_per_call": [seconds] * 10, **known})
    if figure == "latency":
        assert eager.latency == pytest.approx((4e-3,) * 3) and graph.latency == pytest.approx((1e-3,) * 3)
    elif figure == "speedup":
        assert speedup(graph, eager) == pytest.approx((4.0,) * 3)
    elif figure == "pairs":
        rounds = rounds_in_turn(list(zip(lines[::2], lines[1::2], strict=True)))
        assert [theirs - ours for process in rounds for theirs, ours in process] == pytest.approx([math.log(4)] * 30)
    else:  # the second side never had the full speed, which the first knows if one Python runs its loop
        both = lines[:2], [line | {"full_speed_s": 3.75e-4} for line in lines[2:4]]
        sides = processes_of(*both, one_python=figure == "sides")
        expected = approx_ln([4e-3, 4e-3 if figure == "sides" else 5e-3])
        assert [side[eager.cell.id][launch][0] for launch, side in enumerate(sides)] == expected


def approx_ln(values: list[float]):
    return pytest.approx([math.log(value) for value in values])


@pytest.mark.parametrize(
    ("good", "counts", "slowed"),
    [
        ([10], [10], False),
        ([6], [6], False),
        ([5], [12], True),  # five have no interval
        ([5, 12, 12], [12, 12, 12], True),  # two processes left are no three
        ([5, 12, 12, 7], [0, 12, 12, 7], False),
    ],
)
def test_a_process_of_few_good_turns_gives_no_value(good, counts, slowed):
    turns, told = host.counting([[True] * count + [False] * (12 - count) for count in good])
    assert (list(map(len, turns)), told) == (counts, slowed)


def test_few_rounds_count_where_none_was_slow():
    assert host.counting([[True] * 3]) == ([[0, 1, 2]], False)
    assert host.counting([[True] * 3 + [False]]) == ([[0, 1, 2, 3]], True)


def test_full_speed_is_the_fastest_of_all_processes(report):
    reports = [report(host_loop_s=[3e-4] * 10), report(host_loop_s=[6e-4] * 10), report(full_speed_s=2e-4)]
    assert full_speed_s(reports[:2]) == 3e-4
    assert full_speed_s(reports) == 2e-4
    assert full_speed_s([report(host_loop_s=[])]) is None


SLOWED = 1.9  # how many times as long the host takes beside a neighbour
QUICK = dataclasses.replace(
    PROFILE, minimum_rounds=6, seconds_per_cell=1.0, maximum_seconds_per_cell=4.0, minimum_processes=1
)


class TwoStates:
    """A host that is slow in spells and a device that is not, on one clock: eager waits for the host, a graph not."""

    def __init__(self, draw: random.Random, share: float, spell_s: float):
        self.draw, self.share, self.spell_s, self.now = draw, share, spell_s, 0.0
        self.slow, self.until = draw.random() < share, 0.0
        self.clocks = Clocks(lambda: self.now, lambda: self.now)

    def spend(self, seconds: float, by_host: bool) -> None:
        while self.now >= self.until:
            mean = self.spell_s * (self.share if (slow := self.draw.random() < self.share) else 1 - self.share) * 2
            self.slow, self.until = slow, self.until + self.draw.expovariate(1 / max(mean, 1e-3))
        noise = math.exp(self.draw.gauss(0, 0.02))
        self.now += seconds * noise * (SLOWED if self.slow and by_host else 1.0)

    def variant(self, name: str, seconds: float, by_host: bool) -> Variant:
        return Variant(name, lambda: self.spend(seconds, by_host), lambda output: None)

    def control(self) -> tuple[float]:
        before = self.now
        self.spend(1e-3, True)
        return (self.now - before,)


def measured(cell, report, draw: random.Random, share: float, processes: int, spell_s: float = 0.3) -> tuple:
    """Eager mode and a graph on such a host, by the sampling and records that ship; the ratio at full speed is 4."""
    eager, graph, full_s = CellResult(cell(mode="eager")), CellResult(cell(mode="graph")), None
    for launch in range(processes):
        machine = TwoStates(draw, share, spell_s)
        shift = math.exp(draw.gauss(0, 0.01))
        variants = [machine.variant("eager", 40e-3 * shift, True), machine.variant("graph", 10e-3, False)]
        full_s = take_rounds(variants, QUICK, machine.clocks, draw, control=machine.control, full_s=full_s)
        for result, variant in ((eager, variants[0]), (graph, variants[1])):
            made = report(variant.samples, host_loop_s=variant.loops, process=launch, full_speed_s=full_s)
            result.reports.append(made)
    return eager, graph


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_on_a_host_of_two_speeds_the_ratio_is_the_one_at_full_speed(cell, report, share):
    draw, errors, covered, trials = random.Random(f"{share}"), [], 0, 20
    for _ in range(trials):
        eager, graph = measured(cell, report, draw, share, processes=3)
        interval, (_, slowed) = speedup(graph, eager), paired(graph, eager)
        if not slowed:  # else there is no headline
            errors.append(math.log(interval.value / 4))
            covered += interval.low <= 4 <= interval.high
    assert len(errors) >= 0.9 * trials
    assert abs(fmean(errors)) < 0.005
    assert covered / len(errors) >= 0.8  # 95 % less three standard errors


def test_sampling_goes_on_until_enough_turns_are_good(cell, report):
    eager, graph = measured(cell, report, random.Random(1), 0.5, processes=1)
    for result in (eager, graph):
        turns, slowed = result.turns
        assert not slowed and len(turns[0]) >= QUICK.minimum_rounds
    assert len(eager.samples) < len(eager.reports[0].samples)


def test_a_host_that_is_slow_throughout_later_processes_says_so(cell, report):
    """Its maximum of time is spent on them in vain, and all turns count, for want of others."""
    draw = random.Random(2)
    fast, slow = measured(cell, report, draw, 0.0, 1), measured(cell, report, draw, 1.0, 2)
    reports = [*fast[0].reports, *(dataclasses.replace(made, process=made.process + 1) for made in slow[0].reports)]
    turns, slowed = CellResult(cell(), reports=reports).turns
    assert slowed and list(map(len, turns)) == [len(made.samples) for made in reports]


@pytest.mark.parametrize(("period", "rounds"), [(None, 50), (20, 100), (40, 100), (8, 41), (2, 25)])
def test_beyond_twice_its_budget_a_process_samples_only_where_some_turn_was_good(period, rounds):
    """25 turns of 40 ms fill the budget of 1 s, 100 the maximum of 4 s; six good ones are asked for, one a period."""
    now, loops = [0.0], itertools.count()
    variant = Variant("eager", lambda: None, lambda output: now.__setitem__(0, now[0] + 40e-3), calls_per_sample=1)
    clocks = Clocks(lambda: now[0], lambda: now[0])

    def control() -> tuple[float]:  # twice a round
        return (1e-3 if period and next(loops) // 2 % period == 0 else 2e-3,)

    take_rounds([variant], QUICK, clocks, random.Random(0), control=control, full_s=1e-3)
    assert len(variant.samples) == pytest.approx(rounds, abs=1)


def test_where_threads_may_move_a_process_samples_on_without_a_good_turn():
    now = [0.0]
    variant = Variant("eager", lambda: None, lambda output: now.__setitem__(0, now[0] + 40e-3), calls_per_sample=1)
    clocks, control = Clocks(lambda: now[0], lambda: now[0]), lambda: (2e-3,)
    take_rounds([variant], QUICK, clocks, random.Random(0), control=control, full_s=1e-3, settle=control)
    assert len(variant.samples) == pytest.approx(100, abs=1)


def test_full_speed_is_that_of_all_ranks_loops_and_a_turn_is_as_slow_as_its_slowest_rank():
    """Of four ranks with half of the CPUs slow hardly a turn has four fast ones."""
    machine, draw = Machine(), random.Random(0)
    variant = machine.variant("a", 16 * TICK, calls_per_sample=1)
    control = lambda: [draw.choice((1.0, 2.0)) for _ in range(4)]  # noqa: E731
    assert take_rounds([variant], PROFILE, machine.clocks, random.Random(0), control=control) == 1.0
    assert sum(loop == 2.0 for loop in variant.loops) > 0.9 * len(variant.loops)
