"""A comparison as people read it: heading, short names, what is folded, what fits."""

from __future__ import annotations

import json
import os
import re

import pytest
from doubles.reported import failed, write_run
from test_compare import EAGER, A, compared, moved

import runner
from reports import compare, terminal
from reports.names import Names


def test_the_page_has_a_heading_short_names_and_folds_what_did_not_move(tmp_path, capsys):
    runs = [write_run(tmp_path / name, rows) for name, rows in (("before", A), ("after", moved(1.0, 1.2)))]
    given = {"framework": "alpha", "batch": [1, 4], "isolate": True, "weights": "/somewhere/else"}
    (runs[1] / "plan.json").write_text(json.dumps({"given": given}))
    assert runner.main(["compare", *map(str, runs)]) == 1
    page = (tmp_path / "after" / "comparison.md").read_text()
    assert page.startswith("### before → after: 1 slower by more than 5 %\n")
    facts = "2026-01-02 03:04 UTC · alpha 1.2 · suite 0123456789 · quick, 3 launches · A processor (abcd)"
    assert f"- **B**: after · {facts}\n  `make bench FRAMEWORK=alpha BATCH=1,4 ISOLATE=1 WEIGHTS=else`" in page
    assert "**2 cells: 1 slower, 1 same; 1 slower by more than 5 %.**" in page
    assert "All cells: bert, plain, cpu, fp32, 2 threads, batch 1, seq 128." in page
    assert "| alpha graph | 16 | 19.2 | 1.20 (1.19 to 1.21) | 1.20 (1.18 to 1.22) | slower |" in page
    assert page.index("#### Slower") < page.index("<details><summary>Same: 1 cell")
    assert max(map(len, re.findall(r"(?m)^\|.*", page))) < 100


def test_no_process_is_started_that_would_outlive_a_comparison_that_is_killed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was started"))
    runs = [write_run(tmp_path / name, rows) for name, rows in (("a", A), ("b", moved(1.0, 1.2)))]
    assert runner.main(["compare", *map(str, runs)]) == 1


def test_at_80_columns_a_row_is_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "_FILE_WIDTH", 80)
    runs = [write_run(tmp_path / name, rows) for name, rows in (("a", A), ("b", moved(1.0, 1.2)))]
    runner.main(["compare", *map(str, runs)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert len(lines) == 2 and max(map(len, lines)) <= 80


def test_the_answer_names_what_is_slower_and_what_broke():
    crashed = failed("alpha", "graph", "crash", "A reason.")
    assert compare.answer(compared(A, [EAGER, crashed])) == "1 broke"
    assert compare.answer(compared(A, moved(1.0, 1.1))) == "1 slower by more than 5 %"
    assert compare.answer(compared(A, A)) == "nothing is shown to be slower by more than 5 %"
    assert compare.answer(compared(A, moved(1.1, 1.1))) == "nothing could be decided"


def test_short_names_say_what_differs():
    cells = [f"a/{model}/plain/inference/cpu/fp32/threads=2/batch_size={batch},depth={depth}/eager"
             for model, batch, depth in (("mlp", 1, 8), ("mlp", 4, 8), ("bert", 1, 2))]  # fmt: skip
    names = Names(cells)
    assert [names[cell] for cell in cells] == ["a eager mlp batch 1", "a eager mlp batch 4", "a eager bert"]
    assert names.shared == "plain, cpu, fp32, 2 threads; mlp, depth=8; bert, batch 1, depth=2"
