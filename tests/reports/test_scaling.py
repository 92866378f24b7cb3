"""Scaling along an axis: a line where a mode has three points, and panels of what is alike."""

from __future__ import annotations

from doubles.reported import built, elsewhere, record

from analysis.points import Points
from analysis.settings import Words
from reports import sections
from reports.report_data import ReportData

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
    assert all(len(panel.table.rows) == 2 for panel in apart)
    together = built(rows, across=True)["threads"].panels
    assert sorted(len(panel.table.rows) for panel in together) == [2, 4]


def test_a_rung_that_no_verdict_has_is_drawn_with_the_other_modes():
    rung = {("alpha", "graph"): Words(rung=True)}
    rows = [record("alpha", mode, latency=10.0) | {"batch_size": count} for count in (1, 2, 4) for mode in MODES]
    (panel,) = next(s for s in sections.build(ReportData(Points(rows), known=rung)) if s.key == "batch").panels
    assert {name for (name,) in figures(panel.table, 0)} == {"alpha eager", "alpha graph"}
    assert panel.setting == "0"  # that of eager mode


def test_a_row_is_a_mode_and_a_column_a_value():
    (panel,) = built(swept(4, 1, 2))["threads"].panels
    assert panel.table.columns == ("mode", "threads 1, ms", "threads 2, ms", "threads 4, ms")
    assert figures(panel.table, 0, 1, 2, 3) == [("alpha eager", 40.0, 20.0, 10.0), ("alpha graph", 32.0, 16.0, 8.0)]


def test_a_chart_has_a_mark_for_each_figure_and_a_line_for_each_mode():
    (panel,) = built(swept(1, 2, 4))["threads"].panels
    drawing = panel.charts[0].drawing
    assert drawing.count("<circle") == 6 and drawing.count("<polyline") == 2
    assert "> alpha graph</li>" in panel.legend
