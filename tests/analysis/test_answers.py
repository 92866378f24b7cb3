"""What is recommended at a shape, what is not, and who is fastest, on records made for each rule."""

from __future__ import annotations

import pytest
from doubles.advised import answered, cell, told
from doubles.reported import record

import frameworks
from analysis import sensitivity
from analysis.answers import Trust, best
from analysis.modes import labels
from analysis.rules import ALONE, STAY, USE
from analysis.settings import Shape
from measurement.statistics import INCONCLUSIVE

QUICK = 'alpha.compile(model, "quick")'


def choice(*rows: dict):
    """The only framework's choice at the only shape."""
    (answer,) = answered(*rows)
    (only,) = answer.choices
    return only


def test_the_fastest_mode_is_recommended_with_its_call_gain_and_break_even():
    rows = [cell(10.0), cell(8.0, 1.25, mode="plain", first=5.5), cell(2.5, 4.0, mode="quick", first=8.0)]
    assert told(*rows) == [
        f"alpha at batch 1, 128 tokens: use {QUICK}, 2.5 ms ±1 %, 4.00× eager (3.96–4.04).",
        "alpha quick pays for itself after 1,000 calls (10 s of eager calls).",
        "Also: alpha eager 10 ms.",
    ]
    found = choice(*rows)
    assert (found.kind, found.point.record.mode, found.default.record.mode) == (USE, "quick", "plain")


def test_of_modes_that_cannot_be_distinguished_the_default_is_recommended():
    rows = [cell(10.0), cell(5.02, 2.0, mode="plain"), cell(5.0, 2.0, mode="quick")]
    found = choice(*rows)
    assert found.point.record.mode == "plain"
    assert found.default is None
    assert choice(*rows[:2], cell(4.5, 2.2, mode="quick")).point.record.mode == "quick"


@pytest.mark.parametrize(
    ("speedup", "spread", "kind", "words"),
    [
        (1.1, 0.15, INCONCLUSIVE, "eager or plain: inconclusive, 10 ms ±1 %, plain 1.10× eager (0.94–1.26)."),
        (0.8, 0.01, STAY, "stay with eager, 10 ms ±1 %, plain 0.80× eager (0.79–0.81)."),
        (1.01, 0.005, STAY, "stay with eager, 10 ms ±1 %, plain 1.01× eager (1.00–1.02)."),
        (0.99, 0.02, STAY, "stay with eager, 10 ms ±1 %, plain 0.99× eager (0.97–1.01)."),
        (1.5, 0, INCONCLUSIVE, "eager or plain: inconclusive, 10 ms ±1 %."),
    ],
)
def test_what_is_not_shown_to_be_faster_is_never_recommended(speedup, spread, kind, words):
    rows = cell(10.0), cell(10.0 / speedup, speedup, mode="plain", spread=spread)
    assert choice(*rows).kind == kind and choice(*rows).point.eager
    assert told(*rows)[0] == f"alpha at batch 1, 128 tokens: {words}"


@pytest.mark.parametrize("why", [{"program": "differs"}, {"flags": "zero_outputs"}])
def test_what_is_excluded_is_named_and_never_chosen(why):
    rows = [cell(10.0), cell(2.0, 5.0, mode="quick", **why), cell(5.0, 2.0, mode="plain")]
    assert choice(*rows).point.record.mode == "plain"
    assert any(sentence.startswith("Excluded: alpha quick (") for sentence in told(*rows))
    (answer,) = answered(*rows)
    assert [rank.point.record.mode for rank in answer.ranks] == ["plain"] and len(answer.excluded) == 1
    assert choice(*rows[:2]).kind == ALONE


def test_nothing_is_said_over_an_eager_mode_that_is_excluded():
    rows = cell(10.0, flags="zero_outputs"), cell(5.0, 2.0, mode="plain")
    assert choice(*rows).kind == ALONE and choice(*rows).compared is None
    (answer,) = answered(*rows)
    assert answer.used == [] and best([answer]) == (answer, answer.choices[0])


def test_a_program_that_is_not_known_counts_and_is_said():
    sentences = told(cell(10.0), cell(5.0, 2.0, mode="plain", program="unknown"))
    assert "use alpha.compile(model)" in sentences[0]
    assert "Unknown whether the program is eager mode's: alpha plain." in sentences


def test_pairs_and_medians_that_contradict_each_other_are_not_believed():
    rows = cell(10.0), cell(12.0, 1.3, mode="plain")
    assert choice(*rows).kind == INCONCLUSIVE
    assert "Paired speedups and medians contradict each other: alpha plain." in told(*rows)


def test_no_speedup_over_an_eager_mode_that_nobody_deploys():
    rows = [cell(260.0, framework="idle"), cell(0.5, 520.0, framework="idle", first=12.0)]
    assert told(*rows) == [
        "idle at batch 1, 128 tokens: use idle.jit(model), 0.5 ms ±1 %.",
        "Not for deployment: idle eager 260 ms.",
    ]
    (answer,) = answered(*rows)
    assert [point.record.mode for point in answer.undeployed] == ["eager"] and not answer.used


def test_settings_are_never_mixed():
    rows = []
    for n, axis in enumerate(({}, {"implementation": "library"}, {"dtype": "bf16"}, {"parameters": {"mask": "full"}})):
        gain = 2.0 + n / 10
        rows += [cell(10.0, **axis), cell(10.0 / gain, gain, mode="plain", **axis)]
    found = answered(*rows)
    assert len({answer.setting.name for answer in found}) == 4 and all(len(one.choices) == 1 for one in found)


def test_a_mode_alone_is_not_compared():
    assert "not compared" in told(cell(5.0, 2.0, mode="plain"))[0]
    assert choice(cell(5.0)).kind == ALONE
    assert answered(cell(5.0, status="mismatch")) == []


@pytest.mark.parametrize("parameters", [None, "size=8;kind=a"])
def test_a_shape_without_a_batch_is_named_by_its_parameters(parameters):
    assert Shape.sized(None, None, parameters).text == ("size=8, kind=a" if parameters else "the only shape")


def test_every_mode_of_the_registry_has_a_call_that_a_user_can_type():
    known = labels()
    swept = {name for name in frameworks.NAMES if not frameworks.describe(name).is_reference}
    graphs = {key: said for key, said in known.items() if frameworks.describe(key[0]).mode(key[1]).graph}
    assert all("(" in said.call or "." in said.call for said in graphs.values())
    assert {framework for (framework, _), said in graphs.items() if said.default} == swept


def fastest(*rows: dict) -> str:
    """The sentence on who is fastest at the only shape."""
    (sentence,) = [text for text in told(*rows) if text.startswith("Fastest")]
    return sentence


def test_frameworks_are_ranked_by_latency():
    rows = [cell(10.0), cell(5.0, 2.0, mode="plain"), cell(9.0, framework="beta"), cell(4.0, 2.25, framework="beta")]
    assert fastest(*rows) == "Fastest: beta graph; alpha plain takes 1.25× as long (1.24–1.26)."


def test_interleaved_modes_are_compared_by_their_speedups():
    """A process on a slow core lengthens all latencies alike."""
    ends = "latency_ms_ci_low", "latency_ms_ci_high"
    rows = [
        cell(ms, gain, mode=mode, **dict(zip(ends, (0.7 * ms, 1.3 * ms), strict=True)))
        for ms, gain, mode in ((10.0, None, "eager"), (5.0, 2.0, "plain"), (4.5, 2.2, "quick"))
    ]
    assert choice(*rows).point.record.mode == "quick"
    wide = rows[2] | {"speedup_ci_low": 1.8, "speedup_ci_high": 2.6}
    assert choice(*rows[:2], wide).point.record.mode == "plain"


def test_there_is_no_winner_where_intervals_overlap():
    wide = {"latency_ms_ci_low": 2.1, "latency_ms_ci_high": 12.04}
    rows = [cell(5.0), cell(5.02, framework="beta", **wide)]
    assert fastest(*rows) == "Fastest: alpha eager or beta eager; the difference is within the uncertainty."
    rows[1] |= {"latency_ms_ci_low": None, "latency_ms_ci_high": None}
    assert fastest(*rows) == "Fastest: alpha eager or beta eager; the difference is within the uncertainty."


SLOW = {"flags": "host_slowed", "latency_slowed": True}


def test_a_time_of_a_slow_host_is_not_ranked():
    rows = [cell(5.0), cell(4.0, framework="beta", **SLOW), cell(6.0, framework="gamma")]
    assert fastest(*rows) == (
        "Fastest: alpha eager; gamma eager takes 1.20× as long (1.19–1.21); not ranked, host slowed: beta eager."
    )
    assert fastest(*rows[:2]) == "Fastest: alpha eager; not ranked, host slowed: beta eager."
    (answer,) = answered(*rows)
    assert [one.framework for one in answer.choices] == ["alpha", "gamma", "beta"]
    assert [rank.point.series for rank in answer.ranks] == ["alpha eager", "gamma eager"]
    assert best([answer])[1].framework == "alpha"


def test_where_the_host_slowed_all_nothing_is_fastest():
    rows = [cell(5.0, **SLOW), cell(4.0, framework="beta", **SLOW)]
    (answer,) = answered(*rows)
    assert (answer.fastest, answer.next, answer.ranks) == ([], None, [])
    assert "Not ranked, host slowed: beta eager, alpha eager." in told(*rows)
    assert best([answer])[1].framework == "beta"
    assert not any(text.startswith("Not ranked") for text in told(rows[0]))  # one alone has no rank


def test_a_flag_on_the_pair_alone_leaves_the_time_in_the_ranking():
    pair = {"flags": "host_slowed", "latency_slowed": False}
    assert fastest(cell(5.0), cell(4.0, framework="beta", **pair)).startswith("Fastest: beta eager; alpha eager takes")


def test_of_another_machine_s_points_a_slowed_one_is_named_last():
    there = {"framework": "beta", "machine_id": "ffff", "device_name": "Another processor"}
    slow = cell(4.0, 2.25, **there, **SLOW)
    assert "Not ranked, from another machine: beta eager 9 ms." in told(cell(10.0), cell(9.0, **there), slow)
    assert "Not ranked, from another machine: beta graph 4 ms (host slowed)." in told(cell(10.0), slow)


def test_frameworks_of_other_machines_are_named_and_not_ranked_unless_asked_for():
    there = {"framework": "beta", "machine_id": "ffff", "device_name": "Another processor"}
    rows = [cell(10.0), cell(5.0, 2.0, mode="plain"), cell(9.0, **there), cell(4.0, 2.25, **there)]
    here, other = answered(*rows)
    assert [point.series for point in here.elsewhere] == ["beta graph"] and len(other.elsewhere) == 1
    assert [one.framework for one in here.choices] == ["alpha"]
    assert "Not ranked, from another machine: beta graph 4 ms." in told(*rows)
    once = cell(3.0, 2.25, **there | {"machine_id": "eeee", "launches": 1})
    assert [point.median_ms for point in answered(*rows, once)[0].elsewhere] == [4.0]
    (together,) = answered(*rows, across=True)
    assert [one.framework for one in together.choices] == ["beta", "alpha"]


def test_the_best_figure_is_the_largest_speedup_that_users_get():
    rows = [cell(10.0, batch_size=batch) for batch in (1, 8)]
    rows += [cell(5.0, 2.0, mode="plain", batch_size=1), cell(2.0, 5.0, mode="plain", batch_size=8)]
    rows += [cell(1.0, 99.0, framework="idle", batch_size=1)]
    answer, chosen = best(answered(*rows))
    assert (answer.shape.batch, chosen.framework) == (8, "alpha")
    idle = answered(cell(2.0, framework="idle"), cell(1.0, 99.0, framework="idle"))
    assert best(idle)[1].point.record.mode == "graph"


def test_figures_rest_on_processes_comparisons_widths_and_conditions():
    rows = [record("alpha", mode, parity_reference="numpy") for mode in ("eager", "graph")]
    found = Trust.from_records(rows)
    assert (found.cells, found.processes, found.compared, found.conditions) == (2, (3, 3), 2, {})
    assert not found.few and found.within == (2, 2)
    rows[1] |= {"launches": 1, "flags": "steal;drift", "parity_reference": None, "speedup_ci_high": 2.5}
    found = Trust.from_records([*rows, rows[1] | {"status": "crash"}])
    assert (found.cells, found.processes, found.compared) == (2, (1, 3), 1)
    assert found.few and found.conditions == {"steal": 1} and found.within == (1, 2)


def test_on_a_slower_core_what_waits_for_the_host_takes_longer():
    eager = cell(4.0, host_ms_in_loops=12.0)
    replayed = cell(1.0, 4.0, mode="quick", host_ms_median=0.1)
    assert sensitivity.slowed(eager, replayed) == pytest.approx(4.0 * 2)
    waiting = replayed | {"host_ms_median": 0.9}  # the graph waits as well, for 1.8 ms
    assert sensitivity.slowed(eager, waiting) == pytest.approx(4.0 * 2 / 1.8)
    on_slow_cores = replayed | {"host_ms_median": 1.3}  # median of all turns, also of slow ones
    assert sensitivity.slowed(eager, on_slow_cores) == pytest.approx(4.0 * 2 / 2)
    assert sensitivity.slowed(cell(4.0), replayed) is None
