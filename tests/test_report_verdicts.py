"""What the report says of ratios: savings that follow from them, few launches, points that are missing, machines."""

from __future__ import annotations

import pytest
from doubles.reported import built, elsewhere, record

from reports import facts, markdown, page, sections
from reports.points import Points
from reports.sections import compiling

NEVER = "never: slower"


def test_saving_and_break_even_follow_the_paired_speedup_where_medians_disagree():
    ratio = {"speedup_vs_eager": 0.922, "speedup_ci_low": 0.825, "speedup_ci_high": 0.998}
    slower = record("alpha", "graph", latency=4.44) | ratio | {"break_even_calls": 16447.0}
    rows = [record("alpha", "eager", latency=4.73), slower]
    (pair,) = facts.pairs(Points(rows).measured)
    assert pair.gain_s == pytest.approx([4.73e-3 * (1 - 1 / speedup) for speedup in (0.922, 0.825, 0.998)])
    assert (pair.pays_after, pair.break_even, pair.pays(100_000)) == (None, None, "no")
    cells = dict(zip(compiling.COLUMNS, built(rows)["compiling"].panels[0].table.rows[0].cells, strict=True))
    assert (cells["saved per call, ms"].text, cells["break-even, calls"], cells["range"]) == ("-0.4", NEVER, "")
    assert built(rows)["compiling"].panels[0].chart is None
    assert any("not the quotient" in sentence for sentence in built(rows)["speedup"].sentences)
    (pair,) = facts.pairs(Points([rows[0], slower | {"speedup_vs_eager": 1.05, "speedup_ci_high": 1.1}]).measured)
    assert pair.break_even == (pytest.approx(5.0 / (4.73e-3 * (1 - 1 / 1.1))), None)
    assert pair.pays_after == pytest.approx(5.0 / (4.73e-3 * (1 - 1 / 1.05)))


def last_cells(section, panel: int = 0) -> list[str]:
    return [row.cells[-1] for row in section.panels[panel].table.rows]


@pytest.mark.parametrize(("launches", "suffix"), [(1, ", in 1 launch"), (2, ", in 2 launches"), (3, ""), (None, "")])
def test_a_difference_seen_in_few_launches_is_said_to_hold_there(launches, suffix):
    made = built([record(f, mode, launches=launches) for f in ("alpha", "beta") for mode in ("eager", "graph")])
    assert last_cells(made["speedup"]) == ["faster" + suffix] * 2
    assert last_cells(made["frameworks"]) == ["yes" + suffix]
    assert last_cells(made["frameworks"], 1) == ["fastest", *["yes" + suffix] * 3]
    ranges = [row.cells[6] for row in made["compiling"].panels[0].table.rows]
    assert all(("launch" in text) == bool(suffix) and text.endswith(suffix) for text in ranges)
    for key in ("answer", "speedup", "frameworks", "compiling"):
        assert sum("PROFILE=standard" in sentence for sentence in made[key].sentences) == bool(suffix)
    drawn = [made["speedup"].panels[0].chart, made["frameworks"].panels[1].chart]
    assert {row["thin"] for chart in drawn for row in chart.drawing["data"]["values"]} == {bool(suffix)}
    answer = " ".join(made["answer"].sentences)
    assert ("the difference is real" in answer, "certainly" in answer) == (not suffix, not suffix)
    assert (f"with 16 ms (they differ{suffix})" in answer) == bool(suffix)
    assert ("All of the 3 differences told here come from fewer than three launches" in answer) == bool(suffix)


def test_of_several_launches_the_fewest_count_and_what_was_not_told_apart_needs_no_remark():
    mixed = [record(f, m, launches=n) for f, n in (("alpha", 1), ("beta", 3)) for m in ("eager", "graph")]
    made = built(mixed)
    assert last_cells(made["speedup"]) == ["faster, in 1 launch", "faster"]
    assert last_cells(made["frameworks"]) == ["yes, in 1 launch"]
    assert "2 of the 3 differences told here come" in made["answer"].sentences[3]
    alike = {"speedup_ci_low": 0.9, "launches": 1}
    made = built([record("alpha", "eager", launches=1), record("alpha", "graph", **alike)])
    assert last_cells(made["speedup"]) == ["no difference shown"]
    assert not any("PROFILE" in sentence for key in ("answer", "speedup") for sentence in made[key].sentences[-1:])


def test_modes_that_pay_at_once_are_named_because_no_point_can_show_them():
    modes = ("eager", "graph")
    rows = [record("alpha", mode, *shape) for shape in ((1, 128), (4, 128)) for mode in modes]
    rows += [record("beta", "eager", first_call_s=9.0), record("beta", "graph")]
    panel = built(rows)["compiling"].panels[0]
    assert panel.note == "Pays from the first call: beta graph (batch 1, seq 128)."
    assert {row["series"] for row in panel.chart.drawing["data"]["values"]} == {"alpha graph"}
    assert panel.note in markdown.report("", [built(rows)["compiling"]])
    assert panel.note in page.html("", sections.Material(Points(rows)), [built(rows)["compiling"]])
    many = [record("beta", m, first_call_s=1.0, parameters=f"n={n}") for n in range(6) for m in modes]
    assert built(many)["compiling"].panels[0].note.endswith("seq 128, n=3; 2 more in the table).")
    assert built(rows[:4])["compiling"].panels[0].note == ""
    untold = record("beta", "graph", speedup_ci_low=0.9)
    wanted = "Pays from the first call if it is faster, which was not shown: beta graph (batch 1, seq 128)."
    assert built([rows[4], untold])["compiling"].panels[0].note == wanted
    slower = record("beta", "graph", speedup_vs_eager=0.8, speedup_ci_low=0.7, speedup_ci_high=0.9)
    assert built([rows[4], slower])["compiling"].panels[0].note == ""


def test_the_way_out_is_named_where_only_machines_keep_frameworks_apart():
    alpha, beta = ([record(f, mode) for mode in ("eager", "graph")] for f in ("alpha", "beta"))
    apart = built(alpha + elsewhere(beta))
    said = "one machine, so nothing is said of which is fastest; ACROSS=1 compares machines."
    assert apart["answer"].sentences[1].endswith(said)
    assert "ACROSS=1" in apart["frameworks"].sentences[0]
    other = [row | {"workload": "mlp"} for row in beta]
    for rows in (alpha + elsewhere(other), alpha + other, alpha + elsewhere(alpha)):
        sentences = [s for key in ("answer", "frameworks") if key in built(rows) for s in built(rows)[key].sentences]
        assert not any("ACROSS" in sentence for sentence in sentences)


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
