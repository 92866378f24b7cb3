"""The JSON of a finished run, and the exit code that follows from it."""

from __future__ import annotations

import argparse
import json
import os
from types import SimpleNamespace

import pytest
from conftest import ROOT

from commands import answer, bench
from measurement.refusals import DONE, FINDING, INCOMPLETE
from records import recordfile
from records.record import SCHEMA_VERSION


@pytest.fixture(scope="module")
def found():
    folder = ROOT / "tests/runs/two-cores"
    return answer.answered(recordfile.load(folder / "records.jsonl").records, folder)


def test_every_record_is_a_figure_and_every_framework_has_an_answer(found):
    assert len(found["figures"]) == len((ROOT / "tests/runs/two-cores/records.jsonl").read_text().splitlines())
    assert {"torch", "jax", "tensorflow", "paddle"} <= {choice["framework"] for choice in found["choices"]}
    assert all(choice["cell"] in {row["cell"] for row in found["figures"]} for choice in found["choices"])
    assert any("bert-base" in sentence and "torch" in sentence for sentence in found["verdicts"])
    assert json.loads(json.dumps(found))["run"].endswith("two-cores")


def graph(record, high: float | None, **columns):
    """Return a graph mode's record with the upper end of a speedup."""
    ends = {} if high is None else {"speedup_vs_eager": high - 0.05, "speedup_ci_low": high - 0.1}
    return record(mode="inductor", schema_version=SCHEMA_VERSION) | {**ends, "speedup_ci_high": high, **columns}


@pytest.mark.parametrize(
    ("kind", "high", "limit", "code"),
    [
        ("use", 1.3, None, DONE),
        ("stay", 0.9, None, DONE),
        ("inconclusive", 1.1, None, INCOMPLETE),
        ("stay", 0.9, 0.05, FINDING),
        ("stay", 0.96, 0.05, DONE),
        ("stay", None, 0.05, DONE),
        ("inconclusive", 0.9, 0.05, FINDING),
    ],
)
def test_the_exit_code_says_slower_inconclusive_or_answered(record, kind, high, limit, code):
    assert answer.code({"choices": [{"answer": kind}]}, [graph(record, high)], limit) == code


@pytest.mark.parametrize(
    ("asked", "passes", "code"),
    [({}, False, INCOMPLETE), ({}, True, DONE), ({"json": True}, True, INCOMPLETE), ({"max_slowdown": "5%"}, True, 3)],
)
def test_undecided_is_code_3_unless_make_asks_for_no_code(monkeypatch, tmp_path, asked, passes, code):
    monkeypatch.delenv(bench.UNDECIDED_PASSES, raising=False)
    if passes:
        monkeypatch.setenv(bench.UNDECIDED_PASSES, "1")
    run = SimpleNamespace(records=list, folder=tmp_path)
    monkeypatch.setattr(bench, "bench", lambda request, then, more: then(run) or DONE)
    monkeypatch.setattr(bench.Request, "from_arguments", lambda arguments: None)
    assert bench.run(argparse.Namespace(**({"json": False, "max_slowdown": None} | asked))) == code


@pytest.mark.parametrize("columns", [{"program": "differs"}, {"status": "mismatch"}, {"flags": "host_slowed"}])
def test_what_enters_no_headline_makes_no_finding(record, columns):
    assert answer.code({"choices": [{"answer": "stay"}]}, [graph(record, 0.5, **columns)], 0.05) == DONE


def test_what_is_printed_meanwhile_goes_to_standard_error(capfd):
    with answer.on_stderr():
        print("progress")
        os.system("echo of another process")
    print("{}")
    printed = capfd.readouterr()
    assert printed.out == "{}\n" and printed.err == "progress\nof another process\n"
