"""What starts say: means over processes, pairs by round, total time over calls, and when a strategy pays."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from doubles.starts import planted

import frameworks
from analysis import starts as analysis
from measurement.starts import PHASES
from records.starts import StartRecord
from reports import rounds
from reports import starts as words
from reports.sections import starts as section


def by_name(records) -> dict[str, analysis.Strategy]:
    (cell,) = analysis.cells(records)
    return {one.name: one for one in cell.strategies}


def test_a_compiled_start_pays_from_the_calls_that_save_its_extra_seconds():
    found = by_name(planted("eager", 2.0, 10.0) + planted("compile", 12.0, 5.0))["compile"]
    assert found.difference.value == pytest.approx(10) and found.ratio.value == pytest.approx(6)
    assert found.after(101).value == pytest.approx(12.5)
    assert found.pays == [(pytest.approx(2001, rel=1e-6), math.inf)] and rounds.pays(found) == "from 2,000"


def test_the_undecided_calls_widen_with_scatter_and_hold_the_truth():
    found = by_name(planted("eager", 2.0, 10.0, 0.05) + planted("compile", 12.0, 5.0, 0.05))["compile"]
    ((low, high),) = found.undecided
    assert low < 2001 < high and high - low > 50 and found.pays == [(pytest.approx(high), math.inf)]
    undecided = by_name(planted("eager", 2.0, 10.0, 0.5) + planted("compile", 12.0, 9.0, 0.5))["compile"]
    assert undecided.pays == [] and rounds.pays(undecided) == "none up to 9,100"


def test_a_strategy_that_saves_nothing_a_call_never_pays():
    found = by_name(planted("eager", 2.0, 5.0) + planted("compile", 12.0, 6.0))["compile"]
    assert found.pays == found.undecided == [] and rounds.pays(found) == "none"


def test_a_strategy_may_pay_up_to_some_calls_alone():
    found = by_name(planted("eager", 20.0, 10.0) + planted("ahead-of-time", 1.0, 10.5))["ahead-of-time"]
    assert found.pays == [(1, pytest.approx(38_001, rel=1e-6))] and rounds.pays(found) == "up to 38,000"
    steady = (9.0, 6.0, 13.0, 11.0)
    made = [replace(one, steady_ms=ms) for one, ms in zip(planted("exported", 1.0, 1.0, rounds=4), steady, strict=True)]
    found = by_name(planted("eager", 2.0, 10.0, rounds=4) + made)["exported"]
    ((first, last),) = found.pays
    assert first == 1 and 100 < last < 1000 and found.undecided == [(pytest.approx(last), math.inf)]


def test_advice_is_given_where_intervals_separate():
    records = planted("eager", 2.0, 10.0, 0.01) + planted("compile", 12.0, 5.0, 0.01)
    (cell,) = analysis.cells(records)
    assert [cell.choice(calls) for calls in (1, 100, 10_000)] == [("eager",), ("eager",), ("compile",)]
    records += planted("regional", 12.0, 5.0, 0.011)
    (cell,) = analysis.cells(records)
    assert set(cell.choice(10_000)) == {"compile", "regional"}
    assert words.choices(cell) == (
        "For a process that answers 1 to 100 calls: eager; 10,000 to 1,000,000: compile or regional."
    )
    (cell,) = analysis.cells(records + planted("warm-cache", 12.0, 5.0, 0.012))
    least = r"not eager \([a-z-]+, [a-z-]+, …\)"  # by their means, which may differ with the calls
    assert re.fullmatch(rf".* eager; 10,000(: {least};)?( to)? 1,000,000: {least}\.", words.choices(cell))
    assert words.choices(cell) in " ".join(map(str.strip, words.WORDS.block(cell)))


def test_a_variant_and_wrong_answers_are_no_advice():
    wrong = [StartRecord(**{**vars(one), "status": "mismatch"}) for one in planted("compile", 0.1, 0.1)]
    records = planted("eager", 2.0, 10.0) + planted("ahead-of-time-no-compiler", 1.0, 1.0) + wrong
    (cell,) = analysis.cells(records)
    assert cell.choice(1) == ("eager",)
    assert by_name(records)["compile"].records == ()


def test_a_strategy_that_is_wrong_in_some_processes_is_no_advice():
    made = planted("compile", 0.1, 0.1)
    some = [StartRecord(**{**vars(one), "status": "mismatch", "reason": "off by 3"}) for one in made[:7]]
    (cell,) = analysis.cells(planted("eager", 2.0, 10.0) + some + made[7:])
    assert cell.choice(10_000) == ("eager",)
    sentence = "compile: wrong in 7 of 10 processes: off by 3"
    assert words.WORDS.block(cell)[-1] == sentence and sentence in section.html([cell], "Starts", "make start")


def test_a_crash_in_any_process_is_no_advice_and_is_named():
    made = planted("compile", 0.1, 0.1, 0.01)
    crash = StartRecord(**{**vars(made[2]), "status": "crash", "reason": "The worker was killed."})
    (cell,) = analysis.cells(planted("eager", 2.0, 10.0, 0.01) + made[:2] + [crash])
    assert cell.choice(1) == ("eager",)
    assert words.WORDS.block(cell)[-1] == "compile: crash in 1 of 3 processes: The worker was killed."


def test_nothing_is_advised_before_all_strategies_have_three_processes():
    (cell,) = analysis.cells(planted("eager", 2.0, 10.0, rounds=3) + planted("compile", 0.1, 0.1, rounds=2))
    assert cell.choice(1) == () and words.choices(cell) == ""


def test_processes_on_a_slow_host_are_counted():
    loops = [0.5, 0.5, 0.6, 0.63, 1.2]
    made = [
        StartRecord(**{**vars(one), "host_loop_ms": loop})
        for one, loop in zip(planted("eager", 2.0, 10.0, rounds=5), loops, strict=True)
    ]
    (cell,) = analysis.cells(made)
    assert words.notes(cell) == ["The host was slow in 2 of 5 processes, whose times count."]
    (cell,) = analysis.cells(made[:3])
    assert words.notes(cell) == []
    disturbed = [StartRecord(**{**vars(one), "flags": "unaccounted;other_load;steal"}) for one in made[3:]]
    (cell,) = analysis.cells(made[:3] + disturbed)
    assert words.notes(cell) == [
        "The host was slow in 2, other programs ran in 2 and the hypervisor took CPU time in 2 of 5 processes, "
        "whose times count."
    ]


def test_a_strategy_that_is_shown_to_lose_from_some_calls_says_so():
    steady = (9.0, 10.0, 13.0, 11.0)
    made = [replace(one, steady_ms=ms) for one, ms in zip(planted("capture", 2.0, 1.0, rounds=4), steady, strict=True)]
    found = by_name(planted("eager", 2.0, 1.0, rounds=4) + made)["capture"]
    assert found.undecided[0][0] == 1 and re.fullmatch(r"none from \d+", rounds.pays(found))
    assert rounds.pays(replace(found, records=found.records[:2])) == ""


def test_a_run_that_a_later_version_resumed_under_a_policy_stays_one_cell():
    records = planted("eager", 2.0, 10.0, rounds=3)
    records[2:] = [replace(one, policies="torch-openmp-idle=sleep") for one in records[2:]]
    (cell,) = analysis.cells(records)
    assert [one.policies for one in cell.records] == ["torch-openmp-idle=sleep"] * 3
    assert len(analysis.cells([*records[:2], replace(records[2], run_id="another")])) == 2


def test_two_processes_have_no_interval():
    records = planted("eager", 2.0, 10.0, rounds=2) + planted("compile", 12.0, 5.0, rounds=2)
    found = by_name(records)["compile"]
    assert found.first is None and found.pays == []
    assert words.row(found) == ("compile", "12", "", "5", "")
    (cell,) = analysis.cells(records)
    assert words.choices(cell) == ""


def test_the_block_fits_a_small_terminal_and_the_page_has_chart_and_table():
    names = ("eager", *frameworks.describe("torch").starts)
    records = [one for place, name in enumerate(names) for one in planted(name, 2.0 + 3 * place, 10.0 - place, 0.02)]
    records = [one for one in records if one.strategy != "regional"]
    long = "the model has no nn.ModuleList or nn.Sequential with blocks of one class."
    records += [
        StartRecord(**{**vars(one), "status": "unsupported", "reason": long, "first_answer_s": None})
        for one in planted("regional", 1.0, 1.0, rounds=1)
    ]
    cells = analysis.cells(records)
    lines = words.WORDS.block(cells[0])
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("regional: unsupported") for line in lines)
    page = section.html(cells, "Starts", "make start")
    assert page.count("<polyline") == page.count('class="band"') == len(names) - 1
    assert page.count("<tr") == len(names)
    columns = len(section.COLUMNS)
    assert (len(re.findall("<th[ >]", page)), page.count("<td")) == (columns, (len(names) - 1) * columns)
    assert "NaN" not in page and long in page


def test_phases_are_named_from_the_longest_on():
    found = by_name(planted("eager", 2.0, 10.0, build_s=0.001))["eager"]
    assert words.phases(found) == [("imports", 1.0), ("trace", 1.0)]
    assert {name.replace("_", " ") for name in PHASES} >= {name for name, _ in words.phases(found)}


def test_a_warm_cache_is_split_into_what_it_takes_beyond_eager_mode():
    records = planted("eager", 2.0, 10.0) + planted("warm-cache", 6.0, 5.0, load_s=0.75, build_s=0.001)
    (cell,) = analysis.cells(records)
    sentence = "warm-cache beyond eager: 4 s, of which imports 2 s, trace 2 s, load 0.75 s."
    assert words.WORDS.block(cell)[-1] == sentence and sentence in section.html([cell], "Starts", "make start")
    for others in ([], planted("eager", 7.0, 5.0)):
        (cell,) = analysis.cells(planted("warm-cache", 6.0, 5.0) + others)
        assert words.warm(cell) == ""


def test_a_heading_says_how_attention_is_computed():
    shape = "plain/inference/cpu/fp32/threads=2/batch_size=1,seq_len=128,mask=none,attention=explicit"
    changes = {"cell": f"jax/bert-tiny/{shape}", "framework": "jax", "workload": "bert-tiny"}
    (cell,) = analysis.cells([replace(one, **changes) for one in planted("eager", 2.0, 10.0)])
    heading = "jax bert-tiny, plain, cpu, fp32, 2 threads, batch 1, seq 128, mask=none, attention=explicit"
    assert words.heading(cell) == heading and " ".join(map(str.strip, words.WORDS.block(cell))).startswith(heading)
