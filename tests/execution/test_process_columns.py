"""Columns on the cell of records of `make start` and `make stream`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from execution.rounds import Rounds
from measurement.cells import Cell, Effective
from measurement.protocol import Hello
from plan import sweep
from plan.plan import Group


@pytest.mark.parametrize("package", ["paddlepaddle", "paddlepaddle-gpu"])
def test_the_version_is_that_of_the_installed_package(package):
    cell = Cell("paddle", "mlp", "plain", "inference", "cpu", "fp32", 1, (), "eager")
    launcher = SimpleNamespace(sweep=sweep.resolve({}))
    run = SimpleNamespace(run=SimpleNamespace(id="run"), revision=None, machine=("", ""), launcher=launcher)
    hello = Hello({"python": "3.11", package: "3.3.1", "paddlenlp": "3.0"}, Effective())
    assert Rounds.columns(run, Group((cell,), frozenset()), hello)["framework_version"] == "3.3.1"
