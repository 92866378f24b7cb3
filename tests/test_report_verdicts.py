"""What the report says of ratios: savings that follow from them, few launches, points that are missing, machines."""

from __future__ import annotations

import pytest
from doubles.reported import built, record

from reports import facts
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
