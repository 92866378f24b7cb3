"""Ranks in step: rank 0 names every operation, samples are those of the slowest, and the first failure counts."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from doubles.suite import PATIENCE

from frameworks.adapter import Step
from measurement.cells import Cell
from worker import gpu_figures, ranked_adapter
from worker.channel import Untrustworthy
from worker.ranked_adapter import LEFT, TAKEN_DOWN, Rank, RankedAdapter, RankedOutput, RankedStep, first_failure

CELL = Cell("torch", "mlp", "plain", "training", "cpu", "fp32", 1, (("batch_size", 1), ("ranks", 2)), "eager")


class Group:
    """Ranks that are threads of one process."""

    def __init__(self, count: int):
        self.values, self.said, self.meeting = [None] * count, None, threading.Barrier(count)
        self.own = threading.local()

    def share(self, value):
        if self.own.rank == 0:
            self.said = value
        self.barrier()
        said = self.said
        self.barrier()
        return said

    def gather(self, value):
        self.values[self.own.rank] = value
        self.barrier()
        found = list(self.values)
        self.barrier()
        return found

    def barrier(self):
        self.meeting.wait(PATIENCE)


class Ended(Exception):
    """The end of a rank's orders."""


@pytest.fixture
def ranked(monkeypatch):
    """Two ranks with a step each, as rank 0's order; a call of rank 1's takes three times as long as rank 0's."""
    group, made = Group(2), []
    monkeypatch.setattr(ranked_adapter, "time_calls", lambda variant, calls, clocks: calls * variant.step())

    def rank(number: int) -> Rank:
        group.own.rank = number
        adapter = SimpleNamespace(
            join=lambda count: group,
            synchronize=lambda output: None,
            to_numpy=lambda output: {"loss": np.ones(1) * output},
            communication=lambda step: (4.0 + 2 * number, 1.0 + step(), 8.0),
        )
        one = Rank(adapter, SimpleNamespace(cells=[CELL]), 2, None)
        one.steps[CELL.id] = Step(lambda: 1.0 + 2 * number, [()])
        one.end = lambda: (_ for _ in ()).throw(Ended)
        made.append(one)
        return one

    def follow():
        try:
            rank(1).follow()
        except Ended:
            group.gather(None)

    thread = threading.Thread(target=follow)
    thread.start()
    first = rank(0)

    def run(name, *arguments):
        group.share((name, arguments))
        return group.gather(None if name == "end" else getattr(first, name)(*arguments))

    run.made = made
    yield run, first
    run("end")
    thread.join(PATIENCE)


def test_a_sample_is_that_of_the_slowest_rank(ranked):
    run, first = ranked
    step = RankedStep(run, CELL.id, first)
    assert step.timer(4) == 4 * 3.0
    assert isinstance(step(), RankedOutput)
    assert [float(arrays["loss"][0]) for arrays in run("fetch")] == [1.0, 3.0]


def test_ranks_with_different_parameters_are_an_error(ranked):
    run, first = ranked
    RankedStep(run, CELL.id, first).check_parameters()  # without checksums: each holds a part
    first.steps[CELL.id].call = SimpleNamespace(checksum=lambda: 7)
    with pytest.raises(Untrustworthy, match="do not train one model"):
        RankedStep(run, CELL.id, first).check_parameters()
    RankedStep(lambda *_: [7, 7], CELL.id, first).check_parameters()


def test_submission_is_that_of_the_slowest_rank_from_equally_many_calls(ranked, monkeypatch):
    """As many calls on every rank: a collective of one rank alone would wait for ever."""
    run, first = ranked
    calls = Counter()

    def wall() -> float:  # each rank has its own clock: half of a call is submission
        calls[threading.get_ident()] += 1
        return float(calls[threading.get_ident()])

    monkeypatch.setattr(ranked_adapter, "Clocks", lambda: SimpleNamespace(wall=wall))
    assert RankedStep(run, CELL.id, first).submission() == (2.0, 1.0)
    assert set(calls.values()) == {3 * gpu_figures.CALLS[0]} and len(calls) == 2
    assert RankedStep(lambda *_: [(4.0, 1.0), (3.0, 2.0)], CELL.id, first).submission() == (4.0, 2.0)


def test_every_rank_times_the_loop_settles_and_is_released(ranked, monkeypatch):
    run, first = ranked
    monkeypatch.setattr(ranked_adapter, "loop_seconds", lambda clock: 1.0 + first.group.own.rank)
    whole, released = SimpleNamespace(run=run), []

    class Movable:
        def settle(self) -> float:
            return 3.0 + first.group.own.rank

        def release_cpus(self) -> None:
            released.append(first.group.own.rank)

    assert RankedAdapter.loops(whole) == RankedAdapter.settle(whole) == [1.0, 2.0]  # a CPU has no choice
    monkeypatch.setattr(Rank, "cores", Movable(), raising=False)
    for one in run.made:
        del one.cores
    assert RankedAdapter.loops(whole) == [1.0, 2.0] and RankedAdapter.settle(whole) == [3.0, 4.0]
    RankedAdapter.release_cpus(whole)
    assert sorted(released) == [0, 1]


def test_communication_is_the_mean_over_ranks(ranked):
    run, first = ranked
    found = RankedStep(run, CELL.id, first).communication()
    assert (found.seconds, found.exposed_s, found.spread) == (5.0, 3.0, 0.25)
    alone = RankedStep(lambda *_: [(1.0, 1.0, 2.0), None], CELL.id, first).communication()
    assert alone.seconds is None and "no collectives" in alone.problem


def test_the_first_rank_that_failed_is_to_blame(tmp_path):
    assert first_failure(tmp_path, {}) is None
    assert first_failure(tmp_path, {1: 7, 2: TAKEN_DOWN}) == ("crash", "Rank 1 exited with code 7.")
    for rank, at, status in ((1, 2.0, "error"), (2, 1.0, "oom")):
        left = {"rank": rank, "at": at, "status": status, "reason": "why"}
        (tmp_path / LEFT.format(rank)).write_text(json.dumps(left))
    assert first_failure(tmp_path, {1: 1, 2: 1}) == ("oom", "Rank 2: why")
    status, reason = first_failure(tmp_path, {1: 1, 3: -signal.SIGKILL})
    assert (status, reason[:29]) == ("crash", "Rank 3 was killed by SIGKILL ")
