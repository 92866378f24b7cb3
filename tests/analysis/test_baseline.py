"""The mode that speedups are relative to is told by its description, whatever its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from conftest import ROOMS, ROOT, listed_files
from doubles.reported import record

import frameworks
from analysis import facts
from analysis.points import Points
from frameworks.description import Framework, Mode
from plan.plan import baseline_of, estimated_seconds, modes_of, plan
from plan.plan import profile_of as profile
from plan.sweep import resolve
from records import statuses

OTHERWISE = Framework(
    name="torch",
    title="Otherwise",
    distributions=("otherwise",),
    modes=(Mode("step by step", graph=False, summary=""), Mode("graph", graph=True, summary="")),
    default_graph=("graph",),
    models={"plain": ("mlp",)},
)


@pytest.fixture
def otherwise(monkeypatch):
    """A framework in the registry, in torch's place, whose baseline is called otherwise."""
    monkeypatch.setattr(frameworks, "describe", lambda name: OTHERWISE)


def test_words_and_plans_know_it(otherwise, cell):
    assert modes_of("torch", ["eager"]) == ["step by step"]
    assert modes_of("torch", ["eager", "graph"]) == ["step by step", "graph"]
    assert baseline_of(cell(mode="graph")) == cell(mode="step by step")
    sweep = resolve({"framework": "torch", "workload": "mlp"})
    (graph,) = (cell for cell in plan(sweep).cells if cell.mode == "graph")
    (bundle,) = plan(sweep, frozenset({graph.id})).bundles
    assert bundle.groups[0].lacking == {baseline_of(graph).id}
    (again,) = plan(sweep, frozenset({baseline_of(graph).id})).bundles
    assert [cell.mode for cell in again.groups[0].cells] == ["step by step", "graph"]  # a ratio needs both
    assert estimated_seconds(bundle, profile(sweep), "cold") < estimated_seconds(again, profile(sweep), "cold")


def test_reports_know_it_by_its_column():
    rows = [
        record("beta", "graph", baseline=False),
        record("beta", "step by step", baseline=True, first_call_s=0.5, speedup_vs_eager=1.0),
    ]
    (pair,) = facts.pairs(Points(rows).measured)
    assert (pair.eager.record.mode, pair.graph.record.mode) == ("step by step", "graph")


@pytest.mark.parametrize(
    ("columns", "is_baseline"),
    [
        ({"mode": "step by step", "baseline": True}, True),
        ({"mode": "eager", "baseline": False}, False),
        ({"mode": "eager"}, True),  # up to version 4
        ({"mode": "graph", "baseline": None}, False),
    ],
)
def test_older_records_are_told_by_name(columns, is_baseline):
    assert statuses.is_baseline(columns["mode"], columns.get("baseline")) is is_baseline


@pytest.mark.parametrize("name", frameworks.NAMES)
def test_every_framework_has_one(name):
    assert len([mode for mode in frameworks.describe(name).modes if not mode.graph and not mode.cache]) == 1


ASKING = ("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition")


def told_by_name(source: str) -> list[int]:
    """Lines that compare something with the usual name of a baseline mode, or give it a name to be compared with."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        sides += [node.value] if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) else []
        asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING
        sides += node.args if asks else []
        texts = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)]
        lines += [node.lineno for text in texts if text.rpartition("/")[2] == "eager"]
    return lines


def test_no_code_but_a_framework_s_own_goes_by_its_name():
    parts = (*ROOMS, "measurement", "reports", "worker")
    code = [path for path in listed_files() if path.suffix == ".py"]
    files = [path for path in code if path.parts[0] in parts or path.parts[:-1] == ("frameworks",)]
    assert {path for path in files if told_by_name((ROOT / path).read_text())} == {Path("records/statuses.py")}


@pytest.mark.parametrize(
    "line",
    ['y = cell.mode != "eager"', '_EAGER = "eager"', '_EAGER: str = "eager"', 'y = cell.id.endswith("/eager")'],
)
def test_going_by_the_name_is_found(line):
    assert told_by_name(f"x = 1\n{line}") == [2]
    assert told_by_name('words = {"eager": 1}') == []
