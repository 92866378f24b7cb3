"""Many runs as a trend: where a series steps and where it only scatters, what stands on the axis, what is written."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from doubles.reported import profile, record, write_run

import runner
from analysis.significance import Estimates
from analysis.steps import steps
from reports import terminal, trend
from reports.trend import History, Line, Moment


def series(levels: list[float | None], error: float = 0.005, launches: int = 6) -> list[Estimates | None]:
    """Points with these levels, known to so much."""
    return [
        level and Estimates(np.float64(math.log(level)), np.float64(error), np.float64(launches - 1))
        for level in levels
    ]


def test_a_step_is_found_where_it_is_and_with_its_size():
    (step,) = steps(series([1.0, 1.002, 0.999, 1.08, 1.081, 1.079]), floor=0.02)
    assert (step.at, step.ratio.value) == (3, pytest.approx(1.08, abs=0.002))
    assert step.ratio.low < 1.08 < step.ratio.high


def test_several_steps_are_found_in_their_order():
    stepped = steps(series([1.0, 1.001, 1.2, 1.201, 1.199, 0.9, 0.901, 0.9]))
    assert [(step.at, round(step.ratio.value, 2)) for step in stepped] == [(2, 1.2), (5, 0.75)]


@pytest.mark.parametrize("levels", [[1.0, 1.01, 1.0, 1.0, 1.0, 1.4, 1.4], [1.0, 1.0, 1.3, 1.3, 1.31, 1.8, 1.8]])
def test_a_split_beside_the_step_is_none_of_its_own(levels):
    stepped = [(step.at, step.ratio.value) for step in steps(series(levels), 2, 0.02)]
    assert stepped == [
        (n, pytest.approx(b / a, rel=0.02)) for n, (a, b) in enumerate(itertools.pairwise(levels), 1) if b > 1.1 * a
    ]


def test_two_runs_suffice_where_launches_tell():
    assert [step.at for step in steps(series([1.0, 1.1]))] == [1]
    assert steps(series([1.0, 1.1], error=0.05)) == []


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        ([1.0, 1.06, 0.95, 1.03, 0.97, 1.05], "runs scatter by more than their launches say"),
        ([1.0, 1.015, 1.015, 1.015], "no more than two processes of the same code may differ by"),
        ([1.0], "nothing to compare with"),
        ([None, 1.0, None], "likewise"),
    ],
)
def test_what_is_no_step(levels, why):
    assert steps(series(levels, error=0.002), floor=0.02) == [], why


def test_runs_that_lack_the_cell_do_not_matter():
    assert [step.at for step in steps(series([1.0, None, 1.0, None, 1.3, 1.3]))] == [4]


def test_more_lines_ask_for_more():
    points = series([1.0, 1.03], error=0.006)
    assert len(steps(points)) == 1 and steps(points, series=100) == []


def test_of_drawn_series_few_step_for_nothing():
    """Twelve runs whose launches and runs scatter by 1 % each: 5 % of series would step for nothing, at most."""
    draw = np.random.default_rng(3)
    false = 0
    for _ in range(100):
        levels = np.exp(draw.normal(0, 0.01, 12)) * [np.exp(draw.normal(0, 0.01, 6)).mean() for _ in range(12)]
        false += bool(steps(series(levels.tolist(), error=0.004)))
    assert false <= 5


def test_a_drift_that_accumulates_is_reported_as_steps():
    """Of random walks of 12 runs with 2 % from one to the next nearly half have one, as docs/reports.md says."""
    draw = np.random.default_rng(5)
    walks = np.cumsum(draw.normal(0, 0.02, (200, 12)), axis=1) + draw.normal(0, 0.005, (200, 12))
    stepped = sum(bool(steps(series(levels), floor=0.02)) for levels in np.exp(walks).tolist())
    assert 70 <= stepped <= 110


def run_of(tmp_path, number: int, eager: float, graph: float, **changed) -> str:
    """A run's folder: an eager mode and a graph that take so many times as long."""
    stamp = {"started_at": f"2026-0{number}-02T03:04:05Z", "run_id": f"run-{number}", "launches": 6, **changed}
    rows = []
    for mode, factor in (("eager", eager), ("graph", graph)):
        row = record("alpha", mode, **stamp)
        ratios = {name: (value := getattr(row, name)) and value * eager / factor for name in
                  ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high")} if mode == "graph" else {}  # fmt: skip
        names = ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high")
        rows.append(row | {name: getattr(row, name) * factor for name in names} | ratios)
    return str(write_run(tmp_path / f"run-{number}", rows))


def told(capsys, tmp_path, *folders: str, words=()) -> tuple[int, str, str, str]:
    """The exit code, what was printed, and both files."""
    code = runner.main(["compare", *folders, "--history", "--out", str(tmp_path / "out"), *words])
    shown = capsys.readouterr()
    files = [(tmp_path / "out" / name) for name in ("history.md", "history.html")]
    return code, shown.out + shown.err, *(file.read_text() if file.exists() else "" for file in files)


def test_three_runs_and_a_folder_of_runs_are_a_history_by_themselves(capsys, tmp_path):
    folders = [run_of(tmp_path, n, 1.0, 1.0) for n in (1, 2, 3)]
    write_run(tmp_path / "run-0", [], [profile("eager", 0.02)])
    for words in (folders, [str(tmp_path)]):
        assert runner.main(["compare", *words, "--out", str(tmp_path / "out")]) == 0
        assert "2 cells over 3 runs" in capsys.readouterr().out
        (tmp_path / "out/history.md").unlink()


def test_runs_are_followed_by_date_and_their_steps_told(capsys, tmp_path):
    levels = [(1.0, 1.0), (1.0, 1.0), (1.0, 1.3), (1.0, 1.3), (1.0, 1.3)]
    folders = [run_of(tmp_path, n, *level, framework_version="1.2" if n < 3 else "1.3", git_revision=f"abc{n}")
               for n, level in enumerate(levels, 1)]  # fmt: skip
    code, out, page, html = told(capsys, tmp_path, ",".join(reversed(folders)))
    assert code == 0
    assert "2 cells over 5 runs, 1 step up (slower), 0 steps down (faster)" in out
    assert "▁▁███" in out and "16 → 20.8" in out and "slower, 3: +30.0 %" in " ".join(out.split())
    assert "| alpha graph | 16 → 20.8 | ▁▁███ | slower, 2026-03-02 alpha 1.3 abc3: +30.0 % (" in page
    header = "| 2026-01-02 alpha 1.2 abc1, ms | 2026-02-02 alpha 1.2 abc2, ms | 2026-03-02 alpha 1.3 abc3, ms |"
    assert header in page
    assert "| alpha eager | 20 → 20 | ▁▁▁▁▁ |  | 20 ±1 % | 20 ±1 % |" in page
    assert ">slower, 2026-03-02 alpha 1.3 abc3: +30.0 %" in html


def test_a_step_of_all_modes_may_be_the_machine_s(capsys, tmp_path):
    folders = [run_of(tmp_path, n, level, level) for n, level in enumerate((1.0, 1.0, 1.3, 1.3), 1)]
    code, out, page, html = told(capsys, tmp_path, *folders)
    out = " ".join(out.split())  # wherever a terminal folds it
    assert code == 0 and "0 steps up (slower), 0 steps down (faster), 2 that all modes share" in out
    assert out.count("all modes, 3: +30.0 %") == page.count("all modes, 2026-03-02: +30.0 %") == 2
    assert html.count("all modes, 2026-03-02: +30.0 %") == 2


@pytest.mark.parametrize("changed", [{"launches": 2}, {"flags": "host_slowed"}])
def test_a_folder_of_runs_is_each_of_them_and_few_launches_or_a_slow_host_make_no_step(capsys, tmp_path, changed):
    for number, level in enumerate((1.0, 1.0, 1.5), 1):
        run_of(tmp_path / "all", number, level, level * (1.2 if number == 3 else 1), **changed)
    code, out, page, _ = told(capsys, tmp_path, str(tmp_path / "all"))
    assert code == 0 and "2 cells over 3 runs, 0 steps up" in out and "| steps |" not in page


def test_machines_have_lines_of_their_own(capsys, tmp_path):
    folders = [run_of(tmp_path, n, 1.0 + n % 2, 1.0 + n % 2, machine_id=f"{'ab'[n % 2] * 4}") for n in range(1, 5)]
    code, out, page, _ = told(capsys, tmp_path, *folders)
    assert code == 0 and "Several machines: bbbb, aaaa" in out
    assert "4 cells over 4 runs, 0 steps up" in out and "alpha eager (aaaa)" in page


def test_a_run_of_two_machines_has_each_cell_with_its_own(capsys, tmp_path):
    """As one that another node went on with: its cells are no slower for that."""
    folders = [run_of(tmp_path, n, 1.0, 1.0, machine_id="aaaa") for n in (1, 2)]
    folders += [run_of(tmp_path, n, 1.0, 2.0, machine_id="aaaa") for n in (3, 4)]
    for folder in folders[2:]:
        path = Path(folder) / "records.jsonl"
        eager, graph = map(json.loads, path.read_text().splitlines())
        path.write_text("\n".join(map(json.dumps, (eager, graph | {"machine_id": "bbbb"}))) + "\n")
    code, out, page, _ = told(capsys, tmp_path, *folders)
    assert code == 0 and "Several machines: aaaa, bbbb" in out
    assert "3 cells over 4 runs, 0 steps up" in out
    assert "| alpha graph (aaaa) | 16 → 16 | ▁▁ | 16 ±1 % | 16 ±1 % |  |  |" in page
    assert "| alpha graph (bbbb) | 32 → 32 | ▁▁ |  |  | 32 ±1 % | 32 ±1 % |" in page


@pytest.mark.parametrize(
    ("count", "words", "sentence"),
    [
        (1, (), "Name at least two runs"),
        (0, (), "Name at least two runs: make compare RUN="),
        (2, ("--filter", "nothing"), "Name at least two runs"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(capsys, tmp_path, count, words, sentence):
    folders = [run_of(tmp_path, n, 1.0, 1.0) for n in range(1, count + 1)]
    code, out, *_ = told(capsys, tmp_path, *folders, words=words)
    assert code == 2 and sentence in out and out.count("\n") == 1


def test_runs_without_a_cell_in_common_say_so(capsys, tmp_path):
    folders = [run_of(tmp_path, n, 1.0, 1.0, machine_id=str(n) * 4) for n in (1, 2)]
    code, out, *_ = told(capsys, tmp_path, *folders)
    assert code == 2 and "No cell was measured twice on the same machine" in out


def test_a_line_fits_80_columns(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "_FILE_WIDTH", 80)
    folders = [run_of(tmp_path, n, level, level) for n, level in enumerate((1.0, 1.0, 1.3, 1.3), 1)]
    _, out, *_ = told(capsys, tmp_path, *folders)
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert len(rows) == 2 and max(map(len, rows)) <= 80


def test_labels_say_what_differs_and_the_time_where_the_date_does_not():
    moments = [Moment(f"r{hour}", "", f"2026-01-01T0{hour}:00:00Z", {"a": "1"}, "abc") for hour in (1, 2)]
    line = Line("a/w/x=1/eager", (None, None), ())
    assert History(tuple(moments), (line,)).labels == ["2026-01-01 01:00", "2026-01-01 02:00"]


def test_bars_are_flat_within_what_is_the_same():
    assert trend.bars([1.0, 1.01, None, 1.0]) == "▁▁ ▁" and trend.bars([1.0, 1.04]) == "▁▂"
    assert trend.bars([1.0, 2.0, 4.0]) == "▁▅█"


def test_the_page_needs_no_network(capsys, tmp_path):
    folders = [run_of(tmp_path, n, 1.0, level, run_id="<b>&") for n, level in enumerate((1.0, 1.0, 1.3, 1.3), 1)]
    *_, html = told(capsys, tmp_path, *folders)
    assert "http" not in html and "<script" not in html and "<b>" not in html
