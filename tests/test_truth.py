"""Which mode a report calls nearer the truth."""

from __future__ import annotations

import pytest
from doubles.reported import record

from reports.material import Material
from reports.points import Points
from reports.sections import truth


def told(eager: float | None, graph: float | None, reference: str = "numpy"):
    """The section on one eager and one graph cell with these errors."""
    errors = {"eager": eager, "graph": graph}
    rows = [
        record("alpha", mode, parity_rel_rms_err=error, parity_reference=reference) for mode, error in errors.items()
    ]
    return truth.section(Material(Points(rows)))


@pytest.mark.parametrize(
    ("eager", "graph", "nearer"),
    [
        (1e-2, 0.7e-2, "graph"),
        (0.7e-2, 1e-2, "eager"),
        (1e-2, 0.9e-2, "alike"),
        (0.0, 0.0, "alike"),
        (0.0, 1e-7, "eager"),
    ],
)
def test_the_smaller_error_is_nearer_unless_they_are_alike(eager, graph, nearer):
    section = told(eager, graph)
    (row,) = section.panels[0].table.rows
    assert row.cells[-1] == nearer
    assert [cell.value for cell in row.cells[5:7]] == [eager, graph]


def test_errors_against_another_cell_s_outputs_tell_nothing_of_the_truth():
    assert told(1e-2, 1e-3, reference="torch eager") is None
    assert told(None, 1e-3) is None
