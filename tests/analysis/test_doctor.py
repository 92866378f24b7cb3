"""How a self-check judges trials whose truth is known, and the whole command on NumPy."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import ROOT

import runner
from analysis.fitness import (
    Check,
    Trial,
    must_cover,
    needed,
    parent_check,
    pooled_checks,
    reach,
    threads_check,
    trial_checks,
)
from measurement.statistics import Interval
from reports.fitness import found_in, trusted, verdict


def trials(question: str, truth: float, *ratios: tuple[float, float, float]) -> list[Trial]:
    return [Trial("alpha", question, truth, Interval(*values)) for values in ratios]


def held(checks: list[Check]) -> list[bool]:
    return [check.holds for check in checks]


def test_a_trial_knows_its_error_coverage_and_finding():
    (trial,) = trials("0.05", 1 / 1.05, (0.95, 0.93, 0.97))
    assert trial.covers
    assert trial.found_slower
    assert trial.error == pytest.approx(0.0025)
    missing = Trial("alpha", "again", 1.0, None)
    assert not missing.covers
    assert missing.error == float("inf")


@pytest.mark.parametrize(
    ("ratio", "near", "covers"),
    [
        ((1.019, 0.98, 1.04), True, True),
        ((1.021, 0.98, 1.06), False, True),
        ((1.01, 1.001, 1.02), True, False),
        ((0.979, 0.95, 0.99), False, False),
    ],
)
def test_one_pair_of_the_same_step_must_be_near_one_and_cover_it(ratio, near, covers):
    assert held(trial_checks(trials("again", 1.0, ratio))) == [near, covers]


def test_over_many_trials_shares_decide():
    good, wide, off = (1.0, 0.99, 1.01), (1.03, 0.9, 1.1), (1.01, 1.005, 1.02)
    assert held(trial_checks(trials("again", 1.0, *[good] * 38, wide, wide))) == [True, True]  # 95 % within 2 %
    assert held(trial_checks(trials("again", 1.0, *[good] * 37, wide, wide, wide))) == [False, True]
    assert held(trial_checks(trials("again", 1.0, *[good] * 34, *[off] * 6))) == [True, True]
    assert held(trial_checks(trials("again", 1.0, *[good] * 33, *[off] * 7))) == [True, False]


def test_among_few_trials_one_miss_more_is_chance():
    assert [needed(n) for n in (1, 2, 10, 19, 20, 40)] == [1, 1, 9, 18, 19, 38]


@pytest.mark.parametrize("count", [2, 10, 20, 40, 160])
def test_right_intervals_fail_a_check_in_one_of_a_hundred_at_most(count):
    def chance_of_fewer(least: int) -> float:
        return sum(math.comb(count, k) * 0.95**k * 0.05 ** (count - k) for k in range(least))

    assert chance_of_fewer(must_cover(count)) <= 0.01 < chance_of_fewer(must_cover(count) + 1)
    assert must_cover(1) == 1


def test_trials_of_all_frameworks_are_judged_together_as_well():
    one = trials("again", 1.0, (1.0, 0.99, 1.01))
    assert pooled_checks(one) == []
    pooled = pooled_checks([*one, replace(one[0], framework="beta")])
    assert [check.framework for check in pooled] == ["all", "all"]
    assert found_in(pooled[0]).startswith("2 of 2")


def test_a_small_delay_must_be_covered_a_larger_one_found_as_well():
    assert len(trial_checks(trials("0.02", 1 / 1.02, (0.98, 0.97, 1.001)))) == 1
    assert held(trial_checks(trials("0.05", 1 / 1.05, (0.96, 0.94, 1.001)))) == [True, False]
    assert held(trial_checks(trials("0.05", 1 / 1.05, (0.96, 0.955, 0.965)))) == [False, True]


def test_too_few_samples_hold_nothing():
    checks = trial_checks([Trial("alpha", "again", 1.0, None)])
    assert held(checks) == [False, False]
    assert found_in(checks[0]) == "too few samples"


def test_threads_and_the_parent():
    assert threads_check("alpha", 2, [1.2, 2.1]).holds
    assert not threads_check("alpha", 2, [1.2, 2.11]).holds
    assert parent_check("alpha", 0.009).holds
    assert not parent_check("alpha", 0.011).holds


def test_the_verdict_is_a_sentence():
    good, bad = Check("alpha", "timer agrees", True), Check("", "clock", False)
    clock = "the machine: the clock resolves a thousandth of a sample"
    assert verdict([good], 1) == "This machine is fit for measuring: all 1 checks hold."
    assert verdict([good, bad], 40).startswith(f"1 of 2 checks hold. Failed: {clock}. Stop other work on the machine")
    assert f"Failed: {clock}; {clock}; {clock}; and 2 more. Stop" in verdict([bad] * 5, 40)
    assert "one 95 % interval in twenty" in verdict([good, bad], 1)


def test_the_reach_is_how_far_intervals_went_from_the_truth_whichever_it_is():
    same = trials("again", 1.0, (1.0, 0.99, 1.013))
    assert reach(same) == pytest.approx(0.013)
    slowed = trials("0.05", 1 / 1.05, (0.95, 0.93 / 1.05, 0.96))
    assert reach([*same, *slowed]) == pytest.approx(0.07)
    assert reach([*same, *trials("timer", 1.0, (1.5, 1.4, 1.6))]) == pytest.approx(0.013)  # another clock
    assert reach([]) is None
    assert reach([*same, Trial("alpha", "again", 1.0, None)]) is None


def test_of_many_trials_one_in_twenty_may_reach_farther():
    near, far = (1.0, 0.99, 1.01), (1.0, 0.8, 1.3)
    assert reach(trials("again", 1.0, *[near] * 19, far)) == pytest.approx(0.01)
    assert reach(trials("again", 1.0, *[near] * 18, far, far)) == pytest.approx(0.3)
    assert reach(trials("again", 1.0, *[near] * 5, far)) == pytest.approx(0.3)


def test_which_differences_can_be_trusted_is_rounded_up_and_the_worst_framework_s():
    one = trials("again", 1.0, (1.0, 0.99, 1.0101))
    other = [replace(trial, framework="beta") for trial in trials("again", 1.0, (1.0, 0.9655, 1.01))]
    assert trusted(one) == "Differences above 1.5 % can be trusted here."
    assert trusted([*one, *other]) == "Differences above 3.5 % can be trusted here (alpha 1.5 %, beta 3.5 %)."
    missing = Trial("beta", "again", 1.0, None)
    assert (
        trusted([*one, missing])
        == "There are too few samples of beta to determine which differences can be trusted here."
    )
    assert trusted([]) == "There are too few samples to determine which differences can be trusted here."


@pytest.mark.slow
def test_the_command_checks_numpy_and_keeps_its_trials(tmp_path):
    out = tmp_path / "check.json"
    words = ["--framework", "numpy", "--threads", "1", "--budget", "0.3", "--repeats", "2", "--out", str(out)]
    done = subprocess.run([sys.executable, "runner.py", "doctor", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    kept = json.loads(out.read_text())
    assert [trial["question"] for trial in kept["trials"]] == ["again", "timer", "0.02", "0.05", "0.1"] * 2
    found = [trial["found"] for trial in kept["trials"] if trial["found"]]  # none from the few rounds of a busy machine
    assert all(interval["low"] <= interval["value"] <= interval["high"] for interval in found)
    assert kept["asked"]["repeats"] == 2
    assert done.returncode == int(not all(check["holds"] for check in kept["checks"]))
    assert "checks hold" in done.stdout
    assert done.stdout.strip().splitlines()[-1].startswith(kept["trusted"][:60])
    assert "\r" not in done.stdout
    assert "All cells: plain, cpu, fp32, 1 thread" in done.stdout


def test_a_senseless_number_is_refused(capsys):
    assert runner.main(["doctor", "--repeats", "0"]) == 2
    assert "REPEATS must be a whole number" in capsys.readouterr().err
