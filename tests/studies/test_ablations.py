"""The ablations' bookkeeping: which pairs are finished, what goes on after time ran out, and the ratio's interval."""

from __future__ import annotations

import argparse
import json
import math

import pytest

from frameworks.policies import POLICIES
from studies import ablations


@pytest.fixture
def trial():
    policy = next(policy for policy in POLICIES if policy.name == "torch-openmp-idle")
    return ablations.Trial(policy, "bert-tiny", 2, "sleep")


def finished(trial, out, pair: int, choice: str, milliseconds: float, status: str = "ok", of: int = 1) -> None:
    """A run's folder with a record of one mode, of as many planned cells as told."""
    folder = trial.folder(out, pair, choice)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps({"cells": ["cell"] * of}))
    record = {"mode": "inductor", "status": status, "latency_ms_median": milliseconds, "speedup_vs_eager": 2.0}
    (folder / "records.jsonl").write_text(json.dumps({**record, "cpu_per_wall": 1.5}) + "\n")


def test_the_ratio_is_of_pairs_with_students_interval(trial, tmp_path):
    for pair, (users, other) in enumerate([(1.0, 2.0), (3.0, 5.0), (2.0, 4.2)], start=1):
        finished(trial, tmp_path, pair, "spin", users)
        finished(trial, tmp_path, pair, "sleep", other)
    (row,) = ablations.rows(trial, ablations.pairs_of(trial, tmp_path))
    logs = [math.log(1 / 2), math.log(3 / 5), math.log(2 / 4.2)]
    mean = sum(logs) / 3
    half = 1.2 * 4.302653 * math.sqrt(sum((value - mean) ** 2 for value in logs) / 2 / 3)  # t(0.975, 2), widened
    low, high = math.exp(mean - half), math.exp(mean + half)
    assert f"| {math.exp(mean):.3f} ({low:.3f} to {high:.3f}) | 3 |" in row
    assert "| 2 (1 to 3) | 4.2 (2 to 5) |" in row


def test_what_is_half_done_or_failed_is_in_no_pair(trial, tmp_path):
    finished(trial, tmp_path, 1, "spin", 1.0)
    finished(trial, tmp_path, 2, "spin", 1.0, of=2)
    finished(trial, tmp_path, 2, "sleep", 1.0)
    finished(trial, tmp_path, 3, "spin", 1.0)
    finished(trial, tmp_path, 3, "sleep", 1.0, status="mismatch")
    assert [len(pair) for pair in ablations.pairs_of(trial, tmp_path)] == [2]
    assert ablations.rows(trial, ablations.pairs_of(trial, tmp_path)) == []


def test_time_that_runs_out_leaves_the_rest_to_the_next_call(trial, tmp_path, monkeypatch):
    made = []

    def measure(trial, folder, choice, budget, more):
        made.append(f"{folder.name}")
        finished(trial, tmp_path, int(folder.name[:2]), choice, 1.0)

    monkeypatch.setattr(ablations, "measure", measure)
    options = argparse.Namespace(out=tmp_path, minutes=1, repeats=2, budget=1.0)
    seconds = iter([0, 10, 20, 70])
    assert not ablations.run([trial], options, [], lambda: next(seconds))
    assert made == ["01-spin", "01-sleep"]
    assert ablations.run([trial], options, [], lambda: 0)
    assert made == ["01-spin", "01-sleep", "02-sleep", "02-spin"]  # the first one changes
    assert "| 2 |" in (tmp_path / "ablations.md").read_text()


def test_one_thread_has_no_idle_ones(trial):
    assert trial.differs()
    assert not ablations.Trial(trial.policy, "bert-tiny", 1, "sleep").differs()


def test_every_choice_that_users_do_not_have_is_measured_against_theirs(tmp_path):
    cases = ablations.trials(["paddle-openmp-idle"], ["bert-tiny"], [2])
    assert [trial.other for trial in cases] == ["sleep", "spin-briefly"]
    for trial, milliseconds in zip(cases, (2.0, 4.0), strict=True):
        finished(trial, tmp_path, 1, "spin", 1.0)
        finished(trial, tmp_path, 1, trial.other, milliseconds)
    text = ablations.table(cases, tmp_path)
    assert text.index("## paddle-openmp-idle: sleep") < text.index("| 0.500 |")
    assert text.index("| 0.500 |") < text.index("## paddle-openmp-idle: spin-briefly") < text.index("| 0.250 |")
