"""Scaling along an axis: a line where a mode has three points, panels of what is alike, ratios to the first point."""

from __future__ import annotations

import pytest
from doubles.reported import built, elsewhere, record

from analysis.points import Points
from reports import sections
from reports.material import Material
from reports.verdict import Words

MODES = ("eager", "graph")


def swept(*threads: int) -> list[dict]:
    return [record("alpha", mode, threads=count) for count in threads for mode in MODES]


def figures(table, *places: int) -> list[tuple]:
    """Some cells of every row: values of numbers, else texts."""
    return [tuple(getattr(row.cells[place], "value", row.cells[place]) for place in places) for row in table.rows]


def test_three_values_of_a_mode_make_a_line_and_two_do_not():
    assert "threads" in built(swept(1, 2, 4))
    assert "threads" not in built(swept(1, 2))
    apart = [record("alpha", "eager", threads=count) for count in (1, 2)]
    apart += [record("beta", "eager", threads=count) for count in (2, 4)]
    assert "threads" not in built(apart)


def test_a_panel_holds_what_is_alike_but_for_the_axis():
    half = [row | {"dtype": "bf16"} for row in swept(1, 2, 4)]
    rows = [*swept(1, 2, 4), *half, *elsewhere(swept(1, 2, 4))]
    apart = built(rows)["threads"].panels
    assert len(apart) == 3 and len({panel.title for panel in apart}) == 3
    assert all(len(panel.table.rows) == 6 for panel in apart)
    together = built(rows, across=True)["threads"].panels
    assert sorted(len(panel.table.rows) for panel in together) == [6, 12]


def test_a_rung_that_no_verdict_has_is_drawn_with_the_other_modes():
    rung = {("alpha", "graph"): Words(rung=True)}
    rows = [record("alpha", mode, latency=10.0) | {"batch_size": count} for count in (1, 2, 4) for mode in MODES]
    (panel,) = next(s for s in sections.build(Material(Points(rows), known=rung)) if s.key == "batch").panels
    assert {name for (name,) in figures(panel.table, 0)} == {"alpha eager", "alpha graph"}
    assert panel.setting == "0"  # that of eager mode


def test_ratios_are_to_the_first_point_of_the_mode():
    (panel,) = built(swept(1, 2, 4))["threads"].panels
    ratios = [("", 2.0, 4.0)] * 2  # twice the threads, half the time
    assert figures(panel.table, 0, 1, 3) == [
        (f"alpha {mode}", count, pytest.approx(ratio) if ratio else "")
        for mode, row in zip(MODES, ratios, strict=True)
        for count, ratio in zip((1, 2, 4), row, strict=True)
    ]
    batches = [record("alpha", "eager", latency=10.0 * count) | {"batch_size": count} for count in (4, 1, 2)]
    (panel,) = built(batches)["batch"].panels
    assert figures(panel.table, 1, 2) == [(1, 10.0), (2, 20.0), (4, 40.0)]
    assert [ratio for (ratio,) in figures(panel.table, 3)][1:] == [pytest.approx(2.0), pytest.approx(4.0)]


def test_a_chart_has_a_mark_for_each_figure_and_a_line_for_each_mode():
    (panel,) = built(swept(1, 2, 4))["threads"].panels
    drawing = panel.charts[0].drawing
    assert drawing.count("<circle") == 6 and drawing.count("<polyline") == 2
    assert "> alpha graph</li>" in panel.legend
