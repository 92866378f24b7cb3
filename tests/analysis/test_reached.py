"""How near modes come to the bounds on their speedup, and that none is beyond."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

from analysis.facts import reached
from records import recordfile

RUNS = sorted([*ROOT.glob("results/[!r]*/**/records.jsonl"), *ROOT.glob("tests/runs/*/records.jsonl")])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("cuda-graph", 0.75), ("inductor", 0.5)],
)
def test_replaying_bounds_the_modes_that_run_eager_s_kernels(record, mode, expected):
    graph = record(framework="torch", mode=mode, speedup_vs_eager=3.0, bound_replay=4.0, bound_roofline=6.0)
    assert reached(graph) == expected
    assert reached(graph | {"bound_roofline": 2.0}) == 1.5
    assert reached(graph | {"bound_roofline": None, "bound_replay": None}) is None


def test_of_a_mode_or_framework_that_the_registry_lacks_the_roofline_alone_is_a_bound(record):
    graph = record(framework="alpha", mode="graph", speedup_vs_eager=3.0, bound_replay=1.0, bound_roofline=6.0)
    assert reached(graph) == 0.5


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_no_committed_speedup_exceeds_its_bound(path: Path):
    records = [record for record in recordfile.load(path).records if not record.excluded]
    eager = {record.cell.rpartition("/")[0] for record in records if record.is_baseline and record.flops}
    graphs = [r for r in records if r.speedup_vs_eager and r.cell.rpartition("/")[0] in eager]
    refuted = any("roofline_exceeded" in (record.flags or "") for record in records)
    for record in graphs:
        least, found = record.speedup.low if record.speedup else record.speedup_vs_eager, reached(record)
        beyond = least * found > record.speedup_vs_eager if found else not (refuted or record.merged)
        assert not beyond, record.cell
