"""The claims of paddle-bert on records that make each hold, fail, and untellable."""

from __future__ import annotations

import io

import pytest
from doubles.synthetic import bert_table
from rich.console import Console

import experiments
from experiments import page
from experiments.evidence import Evidence, Records
from experiments.spec import PUBLISHED, Verdict

EXPERIMENT = experiments.get("paddle-bert")
HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def verdict(text: str, evidence: Evidence) -> Verdict:
    (claim,) = [claim for claim in EXPERIMENT.claims if text in claim.sentence]
    return claim.check(evidence).verdict


def growing(batch, length):
    return 5 * batch + length / 16


def shrinking(batch, length):
    return 60 - growing(batch, length)


def level(batch, length):
    return 20.0


@pytest.mark.parametrize(("gain", "expected"), [(growing, HOLDS), (shrinking, FAILS), (level, OPEN)])
@pytest.mark.parametrize("axis", ["sequence length", "batch"])
def test_the_gain_on_the_cpu_grows(axis, gain, expected):
    assert verdict(f"On the CPU the gain grows with the {axis}", bert_table(gain)) == expected


@pytest.mark.parametrize(("gain", "expected"), [(shrinking, HOLDS), (growing, FAILS), (level, OPEN)])
@pytest.mark.parametrize("axis", ["sequences grow", "the batch grows"])
def test_the_gain_on_the_gpu_shrinks(axis, gain, expected):
    assert verdict(f"On the GPU the gain shrinks as {axis}", bert_table(gain, device="gpu:0")) == expected


def test_wide_intervals_tell_nothing():
    assert verdict("grows with the sequence length", bert_table(growing, spread=0.9)) == OPEN
    assert verdict("grows with the sequence length", bert_table(growing, spread=0)) == OPEN


def test_growth_on_one_thread_is_not_asked_of_two():
    assert verdict("grows with the batch", bert_table(growing, threads=2)) == OPEN


@pytest.mark.parametrize(("gain", "expected"), [(5, HOLDS), (-5, FAILS), (0.5, OPEN)])
def test_the_static_graph_is_faster_at_every_shape(gain, expected):
    assert verdict("faster at every shape", bert_table(lambda batch, length: gain)) == expected


def test_one_slower_shape_is_enough_to_deny_it():
    assert verdict("faster at every shape", bert_table(lambda batch, length: -5 if length == 128 else 9)) == FAILS


@pytest.mark.parametrize(("cores", "one", "both"), [(1.0, HOLDS, FAILS), (1.9, FAILS, HOLDS), (1.4, OPEN, OPEN)])
def test_who_used_the_second_thread(cores, one, both):
    evidence = bert_table(level, threads=2, cores=cores)
    assert verdict("the dynamic graph uses one core", evidence) == one
    assert verdict("the static graph uses both", evidence) == both


def test_threads_are_not_told_by_records_with_one():
    assert verdict("the dynamic graph uses one core", bert_table(level, threads=1)) == OPEN


def test_the_published_figures_give_their_own_percentages():
    rows = EXPERIMENT.published()
    assert len(rows) == 18
    for row in rows:
        dynamic, static = float(row["dynamic_ms"]), float(row["static_ms"])
        assert 100 * (dynamic - static) / dynamic == pytest.approx(float(row["speedup_pct"]), abs=0.11)


def test_the_published_figures_themselves_grow_with_length_but_not_with_the_batch():
    answers = {claim.sentence: EXPERIMENT.answers(claim, Evidence(Records(()))) for claim in EXPERIMENT.claims}

    def published(text):
        (published,) = [answer[PUBLISHED] for sentence, answer in answers.items() if text in sentence]
        return published.verdict

    assert published("faster at every shape") == HOLDS
    assert published("On the CPU the gain grows with the sequence length") == HOLDS
    assert published("On the CPU the gain grows with the batch") == FAILS
    assert published("On the GPU the gain shrinks as sequences grow") == HOLDS
    assert published("the dynamic graph uses one core") == OPEN


@pytest.mark.parametrize("name", experiments.names())
def test_every_table_is_shown_without_records(name):
    console = Console(file=io.StringIO(), width=80)
    page.show(experiments.get(name), Evidence(Records([])), console)
    assert "Claims" in console.file.getvalue()


@pytest.mark.parametrize("width", [54, 120])
def test_numbers_are_whole_on_narrow_screens(width):
    console = Console(file=io.StringIO(), width=width)
    page.show(EXPERIMENT, bert_table(level), console)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert all(f" {value} " in shown for value in ("9,090", "6,880"))  # of the source
