"""Which processes move to fast CPUs, among which, and when they give them back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from doubles.clock import TICK, Machine

from measurement import machine
from measurement.cells import Cell
from measurement.sampling import Clocks
from worker.context import Context
from worker.explanation import Explanation


class Moving:
    """Cores, or the ranks' adapter, that note what is asked of them."""

    def __init__(self, movable: bool = True, out_of_step: bool = False):
        self.movable, self.out_of_step, self.asked = movable, out_of_step, []

    def settle(self) -> float | list[float]:
        self.asked.append("settle")
        return 1.0

    def release_cpus(self) -> None:
        self.asked.append("release")

    def loops(self) -> list[float]:
        return [1.0, 2.0]


def cell(ranks: int = 1) -> Cell:
    return Cell("torch", "mlp", "plain", "training", "gpu:0", "fp32", 1, (("batch_size", 1), ("ranks", ranks)), "eager")


def context(cores: Moving | None, ranked: Moving | None = None, processes: int = 1, elsewhere: tuple = ()) -> Context:
    made = Context.__new__(Context)
    made.cores, made.ranked, made.clocks = cores, ranked, Clocks()
    made.adapter, made.job = SimpleNamespace(processes=lambda cell: processes), SimpleNamespace(elsewhere=elsewhere)
    return made


@pytest.mark.parametrize("cores", [None, Moving(movable=False)])
def test_without_a_gpu_or_a_choice_of_cpus_nothing_moves(cores):
    with context(cores).on_fast_cpus(cell()) as settle:
        assert settle is None
    assert cores is None or not cores.asked


def test_a_process_settles_and_is_released_whatever_happens():
    cores = Moving()
    with pytest.raises(ZeroDivisionError), context(cores).on_fast_cpus(cell()) as settle:
        assert settle() == (1.0,)
        raise ZeroDivisionError
    assert cores.asked == ["settle", "release"]


def test_ranks_settle_together_but_not_for_a_cell_of_one_rank():
    cores, ranked = Moving(), Moving()
    with context(cores, ranked).on_fast_cpus(cell(2)) as settle:
        settle()
    assert (cores.asked, ranked.asked) == ([], ["settle", "release"])
    with context(cores, ranked).on_fast_cpus(cell(1)) as settle:
        settle()
    assert (cores.asked, ranked.asked) == (["settle", "release"],) * 2


def test_ranks_out_of_step_are_not_asked_to_release():
    """They would wait for ever."""
    ranked = Moving()
    with pytest.raises(ZeroDivisionError), context(Moving(), ranked).on_fast_cpus(cell(2)):
        ranked.out_of_step = True
        raise ZeroDivisionError
    assert not ranked.asked


def test_the_control_is_timed_on_every_rank():
    assert context(Moving(), Moving()).control(cell(2))() == [1.0, 2.0]
    assert len(context(Moving(), Moving()).control(cell(1))()) == 1
    alone, readings = context(None), iter([0.0, 3.0, 5.0])
    alone.clocks = Clocks(wall=lambda: next(readings))
    assert alone.control(cell())() == (2.0,)  # seconds of the faster of two


def test_processes_of_one_host_have_cpus_of_their_own(monkeypatch):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(machine, "first_sibling", lambda cpu: cpu)
    shares = []
    for place in "01":
        monkeypatch.setenv("EAGER_VS_GRAPH_PLACE", place)
        shares.append(context(None, processes=2).own_cpus(cell(2)))
    assert sorted(shares[0] + shares[1]) == list(range(8)) and len(shares[0]) == 4
    assert context(None, processes=1).own_cpus(cell(2)) == list(range(8))  # one process for both GPUs
    assert context(None, processes=2, elsewhere=(("srun",),)).own_cpus(cell(2)) == list(range(8))  # the step's share
    assert context(None, processes=9).own_cpus(cell(9)) == []


def test_an_explanation_times_modes_on_fast_cpus():
    cores, clock, explanation = Moving(), Machine(), Explanation.__new__(Explanation)
    explanation.context = made = context(cores)
    made.clocks, made.channel = clock.clocks, SimpleNamespace(phase=lambda *words: None)
    explanation.channel, made.job = made.channel, SimpleNamespace(seed=0, elsewhere=(), user_models={})
    members = [SimpleNamespace(cell=cell(), variant=clock.variant(name, 100 * TICK)) for name in "ab"]
    explanation.sample(members)
    assert set(cores.asked[:-1]) == {"settle"} and cores.asked[-1] == "release"
    assert all(len(member.variant.samples) == len(member.variant.loops) > 0 for member in members)
