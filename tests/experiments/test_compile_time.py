"""The claims of compile-time on starts that make each hold, fail, and inconclusive."""

from __future__ import annotations

import pytest
from doubles.starts import planted
from doubles.synthetic import FAILS, HOLDS, OPEN, verdict

import experiments
from analysis.starts import cells
from experiments.evidence import Evidence, Records

EXPERIMENT = experiments.get("compile-time")
EAGER, WHOLE = (5.0, 10.0), (25.0, 5.0)  # seconds to the first answer, milliseconds per call


def evidence(scatter: float = 0.01, **others: tuple[float, float]) -> Evidence:
    starts = {"eager": EAGER, "compile": WHOLE} | {name.replace("_", "-"): figures for name, figures in others.items()}
    records = [record for name, (first, ms) in starts.items() for record in planted(name, first, ms, scatter)]
    return Evidence(Records(()), starts=tuple(cells(records)))


@pytest.mark.parametrize(
    ("text", "others", "expected"),
    [
        ("Compiling a repeated block", {"regional": (7.0, 5.0)}, HOLDS),
        ("Compiling a repeated block", {"regional": (10.0, 5.0)}, FAILS),
        ("It is 3.5", {"regional": (9.0, 5.0)}, HOLDS),
        ("It is 1.7", {"regional": (20.0, 5.0)}, FAILS),
        ("In the steady state both", {"regional": (9.0, 5.0)}, HOLDS),
        ("In the steady state both", {"regional": (9.0, 6.0)}, FAILS),
        ("The blocks' code is slower", {"regional": (9.0, 6.0)}, HOLDS),
        ("The blocks' code is slower", {"regional": (9.0, 4.0)}, FAILS),
        ("The blocks' code is faster", {"regional": (9.0, 4.0)}, HOLDS),
        ("Loaded cache artifacts", {"shipped_cache": (12.0, 5.0)}, HOLDS),
        ("Loaded cache artifacts", {"shipped_cache": (6.0, 5.0)}, FAILS),
        ("So does a local cache", {"warm_cache": (12.0, 5.0)}, HOLDS),
        ("Code from a cache", {"warm_cache": (12.0, 5.8)}, HOLDS),
        ("1,900 calls", {}, HOLDS),
        ("1,900 calls", {"compile": (10.0, 5.0)}, FAILS),
        ("So does a local cache", {}, OPEN),
    ],
)
def test_claims_follow_the_starts(text, others, expected):
    assert verdict("compile-time", text, evidence(**others)) == expected


def test_a_cost_that_is_lost_in_scatter_has_no_ratio():
    (claim,) = [claim for claim in EXPERIMENT.claims if claim.sentence.startswith("It is 3.5")]
    assert claim.check(evidence(scatter=0.3, regional=(5.2, 5.0))).verdict == OPEN


def test_the_table_has_a_row_for_each_strategy():
    ours, theirs = EXPERIMENT.tables(evidence(regional=(9.0, 5.0)), EXPERIMENT.published())
    assert [row[1] for row in ours.rows] == ["eager", "compile", "regional"]
    assert len(theirs.rows) == len(EXPERIMENT.published())
