"""What the report says of ratios: savings that follow from them, few launches, points that are missing, machines."""

from __future__ import annotations

import re

import pytest
from doubles.reported import built, elsewhere, record, small_set

from analysis import facts
from analysis.points import Points
from reports import brief
from reports.content import Card
from reports.material import Material
from reports.sections import notes


def test_saving_and_break_even_follow_the_paired_speedup_where_medians_disagree():
    ratio = {"speedup_vs_eager": 0.922, "speedup_ci_low": 0.825, "speedup_ci_high": 0.998}
    slower = record("alpha", "graph", latency=4.44) | ratio | {"break_even_calls": 16447.0}
    rows = [record("alpha", "eager", latency=4.73), slower]
    (pair,) = facts.pairs(Points(rows).measured)
    assert pair.gain_s == pytest.approx([4.73e-3 * (1 - 1 / speedup) for speedup in (0.922, 0.825, 0.998)])
    assert (pair.pays_after, pair.break_even) == (None, None)
    assert column(built(rows)["matrix"], "pays after calls") == ["never: slower"]
    assert any("not the quotient" in sentence for sentence in built(rows)["matrix"].sentences)
    (pair,) = facts.pairs(Points([rows[0], slower | {"speedup_vs_eager": 1.05, "speedup_ci_high": 1.1}]).measured)
    assert pair.break_even == (pytest.approx(5.0 / (4.73e-3 * (1 - 1 / 1.1))), None)
    assert pair.pays_after == pytest.approx(5.0 / (4.73e-3 * (1 - 1 / 1.05)))


def column(section, title: str, table: int = 0) -> list[str]:
    """The filled cells of a column."""
    content = section.panels[table].table
    cells = [row.cells[content.columns.index(title)] for row in content.rows]
    return [cell for cell in cells if cell]


@pytest.mark.parametrize(("launches", "suffix"), [(1, ", in 1 launch"), (2, ", in 2 launches"), (3, ""), (None, "")])
def test_a_difference_seen_in_few_launches_is_said_to_hold_there(launches, suffix):
    made = built([record(f, mode, launches=launches) for f in ("alpha", "beta") for mode in ("eager", "graph")])
    assert column(made["matrix"], "than eager") == ["faster" + suffix] * 2
    assert column(made["answer"], "real?") == ["yes" + suffix]
    assert sum("In 1 launch" in sentence for sentence in made["matrix"].sentences) == bool(suffix)
    told = {
        1: "Careful: seen in one process; others may differ.",
        2: "Careful: seen in 2 processes; others may differ.",
    }
    for sentence in made["answer"].panels[0].notes:
        assert ("Careful" in sentence) == bool(suffix) and sentence.endswith(told.get(launches, "calls)."))


@pytest.mark.parametrize(
    ("across", "machines", "answer"), [(False, "one machine", "Yes"), (True, "2 machines", "With care")]
)
def test_the_card_on_trust_counts_the_machines_of_its_figures(across, machines, answer):
    rows = [record("alpha", mode) for mode in ("eager", "graph")]
    chart, *_ = built([*rows, *elsewhere(rows)], across)["answer"].panels[0].charts
    (card,) = (card for card in chart.cards if card.question == "Can I trust it?")
    assert card.answer == answer and f"3 processes or more each, {machines}" in card.lines


def test_of_several_launches_the_fewest_count_and_what_was_not_told_apart_needs_no_remark():
    mixed = [record(f, m, launches=n) for f, n in (("alpha", 1), ("beta", 3)) for m in ("eager", "graph")]
    made = built(mixed)
    assert column(made["matrix"], "than eager") == ["faster", "faster, in 1 launch"]
    assert column(made["answer"], "real?") == ["yes, in 1 launch"]
    assert ["one process" in note for note in made["answer"].panels[0].notes] == [True, False]
    alike = {"speedup_ci_low": 0.9, "launches": 1}
    made = built([record("alpha", "eager", launches=1), record("alpha", "graph", **alike)])
    assert column(made["matrix"], "than eager") == ["inconclusive"]
    assert not any("In 1 launch" in sentence for sentence in made["matrix"].sentences)


def test_a_mode_that_pays_at_once_is_said_to():
    rows = [record("beta", "eager", first_call_s=9.0), record("beta", "graph")]
    made = built(rows)
    assert "pays for itself from the first call" in made["answer"].panels[0].notes[0]
    assert [cell.text for cell in column(made["matrix"], "pays after calls")] == ["0"]


@pytest.mark.parametrize(("reference", "shown"), [("numpy", ["0.01", "0.007"]), ("torch eager", []), (None, [])])
def test_errors_are_shown_against_references_in_float64_alone(reference, shown):
    errors = {"eager": 0.01, "graph": 0.007}
    rows = [record("alpha", m, parity_rel_rms_err=e, parity_reference=reference) for m, e in errors.items()]
    section = built(rows)["matrix"]
    assert ("error" in section.panels[0].table.columns) == bool(shown)
    assert not shown or sorted(cell.text for cell in column(section, "error")) == sorted(shown)


def test_the_way_out_is_named_where_only_machines_keep_frameworks_apart():
    alpha, beta = ([record(f, mode) for mode in ("eager", "graph")] for f in ("alpha", "beta"))
    assert "ACROSS=1" in built(alpha + elsewhere(beta))["answer"].sentences[-1]
    other = [row | {"workload": "mlp"} for row in beta]
    for rows in (alpha + elsewhere(other), alpha + other, alpha + elsewhere(alpha)):
        assert not any("ACROSS" in sentence for sentence in built(rows)["answer"].sentences)


def test_each_machine_that_treated_frameworks_unequally_is_named_in_the_answer():
    taken = {"steal_share": 0.3, "other_load_cores": 0.0}
    rows = [record(f, m) | ({} if f == "alpha" else taken) for f in ("alpha", "beta") for m in ("eager", "graph")]
    (told,) = [sentence for sentence in built(rows)["answer"].sentences if "not the same" in sentence]
    assert told.startswith(
        "The machine was not the same for all: other work and the hypervisor took 0 from alpha, 0.3 "
    )
    other = elsewhere(rows[:2]) + elsewhere([row | {"steal_share": 0.7} for row in rows[2:]])
    told = [sentence for sentence in built([*rows, *other])["answer"].sentences if "not the same" in sentence]
    assert ["0.3 from beta" in told[0], "0.7 from beta" in told[1]] == [True, True]
    assert told[0].split(" was not")[0] != told[1].split(" was not")[0]


def trusted(rows: list[dict]) -> Card:
    """The last card of the first shape."""
    return built(rows)["answer"].panels[0].charts[0].cards[-1]


def test_outputs_are_ticked_where_all_were_compared():
    compared = [record("alpha", mode) | {"parity_reference": "numpy"} for mode in ("eager", "graph")]
    assert "2 of 2 outputs compared with a reference, all agree" in trusted(compared).lines
    compared[0] |= {"parity_reference": None}
    assert "1 of 2 outputs compared with a reference, all agree" in trusted(compared).lines


def test_a_graph_that_was_not_timed_beside_eager_is_no_tick():
    rows = [row | ({} if row.mode == "eager" else {"speedup_vs_eager": None}) for row in small_set()[:4]]
    assert "1 graph not timed in turn with eager mode" in trusted(rows).lines


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"speedup_ci_high": 9.0}, "1 of 4 figures miss their half-width"),
        ({"launches": 1}, "one process each, one machine"),
        ({"program": "differs"}, "1 excluded: program_differs"),
        ({"program": "unknown"}, "the program of 1 graph is not known"),
    ],
)
def test_what_speaks_against_figures_of_a_shape_is_said_at_a_glance(changed, line):
    rows = small_set()[:12]
    (place,) = [n for n, r in enumerate(rows) if r.cell == rows[0].cell.replace("/eager", "/graph")]
    rows[place] |= changed
    cards = [chart.cards[-1] for chart in built(rows)["answer"].panels[0].charts]
    assert {(card.answer, card.kind) for card in cards if line in card.lines} == {("With care", "unsure")}


def test_sentences_speak_of_no_chart_since_markdown_has_none():
    threads = [record("alpha", mode, threads=n) for n in (1, 2, 4) for mode in ("eager", "graph")]
    whole = {**built(small_set()), **built(threads), **built(elsewhere(small_set()[:2]) + small_set()[2:])}
    assert {"matrix", "threads", "answer"} <= whole.keys()
    for section in whole.values():
        for sentence in section.sentences:
            assert not re.search(r"\b(charts?|grey|bars?|drawn|shown in|straight line)\b", sentence), sentence


def test_gpus_that_are_alike_are_counted_and_their_driver_is_called_so():
    gpu = {"name": "A GPU", "memory.total": "8 GiB", "driver_version": "580.1", "uuid": "GPU-1"}
    facts_of = {"abcd1234": {"cpu": "A processor", "gpus": [gpu, gpu | {"uuid": "GPU-2"}, gpu | {"name": "Another"}]}}
    made = notes.machine_section(Material(Points(small_set()), machines=facts_of))
    said = made.panels[0].table.rows[0].cells[2]
    assert said == "processor A processor; 2 GPUs: A GPU, 8 GiB, driver 580.1; 1 GPU: Another, 8 GiB, driver 580.1"


def test_a_summary_s_sentence_keeps_its_cautions():
    rows = [record("alpha", mode, launches=1) for mode in ("eager", "graph", "quick")]
    text = brief.summary("One", Material(Points(rows)))
    (told,) = [line for line in text.splitlines() if line.startswith("- **")]
    assert (
        told.endswith("quick may be as good. Careful: seen in one process; others may differ.")
        and "To be read with care" not in text
    )
    differing = record("alpha", "graph", program="differs")
    text = brief.summary("One", Material(Points([record("alpha", "eager"), differing])))
    assert "has figures beside eager mode. Excluded: graph (another program than eager mode's).\n" in text
