"""What the comparison with scripts written by hand calls agreement, and what a script runs under."""

from __future__ import annotations

import argparse
import os
import random

import pytest
from doubles.environment import run_in

import frameworks
from measurement.statistics import Interval
from studies import against_by_hand as comparison


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((1.0, 0.99, 1.01), comparison.AGREES),
        ((1.0, 0.99, 1.03), comparison.NOT_SHOWN),  # reaches 1, and beyond the margin
        ((1.0, 0.794, 1.202), comparison.NOT_SHOWN),  # the wider, the less it shows
        ((1.015, 1.01, 1.019), comparison.AGREES),  # without reaching 1
        ((1.04, 1.03, 1.05), comparison.DIFFERS),
        ((0.9, 0.85, 0.97), comparison.DIFFERS),
    ],
)
def test_agreement_takes_the_whole_interval(interval, verdict):
    assert comparison.verdict(Interval(*interval), 0.02) == verdict


@pytest.mark.parametrize(("scatter", "agrees"), [(0.001, True), (0.2, False)])
def test_more_noise_makes_no_agreement(scatter, agrees, capsys):
    draw = random.Random(0)
    runs = [{"ms": 1.0, "samples_ms": [1.0 + scatter * draw.gauss(0, 1) for _ in range(40)]} for _ in range(2)]
    record = {"latency_ms_median": 1.001, "latency_ms_ci_low": 1.0, "latency_ms_ci_high": 1.002, "regime": "compute"}
    assert comparison.compared("graph", runs, record) == agrees
    assert comparison.compared("eager", runs, record)  # of which nothing is wanted
    assert ("not shown to agree within 2%" in capsys.readouterr().out) != agrees


def test_a_record_without_figures_is_no_agreement(capsys):
    record = {**dict.fromkeys(("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high")), "status": "oom"}
    assert not comparison.compared("graph", [{"ms": 1.0, "samples_ms": [1.0] * 9}], {**record, "reason": "too large"})
    assert "oom: too large" in capsys.readouterr().out


@pytest.mark.slow
def test_a_paired_script_loads_the_code_that_the_suite_compiled(tmp_path):
    run_in(
        "torch",
        f"""
import os, sys
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {str(tmp_path)!r}
sys.path.insert(0, "studies/by_hand")
import paired
paired.use_same_code("torch", "inductor")
assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == os.path.join({str(tmp_path)!r}, "inductor")
""",
    )


def test_a_users_script_has_nothing_of_the_suites(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    options = argparse.Namespace(environment="users", threads=1, device="cpu")
    variables, cpus = comparison.surroundings(options, "paddle")
    assert variables == dict(os.environ)
    assert len(cpus) == 1
    options.environment = "worker"
    variables, cpus = comparison.surroundings(options, "paddle")
    assert variables["OMP_NUM_THREADS"] == "1"
    assert frameworks.describe("paddle").environment(1, "cpu").items() <= variables.items()
