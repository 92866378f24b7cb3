"""False alarms and what is found of a slowdown, on runs drawn from a hierarchy of run, launch and round."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import drawn
from doubles.reported import record

from analysis import changes
from analysis.comparison import SLOWER, Comparison
from records.intervals import quantile
from studies.compare_power import MACHINES, still, synthetic


def test_the_same_code_twenty_times_and_a_slowdown_of_5_percent():
    """On a machine whose launches scatter by 1 %, in the profile `standard`; the seed makes the counts exact."""
    counts = synthetic(still(0.01), "standard", trials=20, seed=7)
    assert {name: (count.alarmed, count.comparisons) for name, count in counts.items()} == {
        "compare": (0, 20),
        "ab": (0, 20),
    }
    assert {name: (count.found, count.slowed) for name, count in counts.items()} == {
        "compare": (66, 80),
        "ab": (144, 160),
    }


def test_twenty_times_the_same_code_on_a_machine_that_is_shared():
    """Launches scatter by 6 %, and runs as a whole by 3 %, with no flag that says so: little is found, and no lies."""
    counts = synthetic(drawn.measured("cpu/two-cores"), "quick", trials=20, seed=3, drift=0.03)
    assert all(count.alarmed <= 1 for count in counts.values())
    assert all(count.undecided > 0.8 * count.cells for count in counts.values())


def test_what_measured_samples_say_of_launches():
    """The figures that studies/README.md states."""
    known = {folder: drawn.told(drawn.measured(folder)) for folder in MACHINES.values()}
    figures = ("eager", "graph", "ratio")
    assert {folder: [round(100 * told[name], 1) for name in figures] for folder, told in known.items()} == {
        "h200/torch-2.11-long": [1.9, 0.7, 1.5],
        "h200/torch-2.13-long": [2.9, 1.1, 1.1],
        "h200/torch-2.11-short": [16.2, 2.9, 11.7],
        "cpu/two-cores": [4.0, 6.2, 5.2],
    }


def test_drawn_launches_scatter_as_they_are_told_to():
    draw, scatter = np.random.default_rng(2), drawn.Scatter(((0.0004, 0.0003), (0.0003, 0.0009)), (1e-6, 1e-6))
    run = drawn.run(draw, [scatter], launches=4000, rounds=6)
    eager, graph = ([np.median(s) for s in launches.values()] for launches in list(run.samples.values())[:2])
    assert np.cov(eager, graph) == pytest.approx(np.array(scatter.launches), rel=0.1)


NO_SPEEDUP = dict.fromkeys(("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high"))


def changed(*sides: list[dict]) -> Comparison:
    return changes.compare(*sides)


@pytest.mark.parametrize(
    "cells",
    [
        [("eager", 1, 128), ("eager", 1, 512)],
        [("eager", 1, 128), ("eager", 1, 512), ("eager", 4, 128)],
        [(mode, 1, 128) for mode in "abcdefgh"],
    ],
)
def test_a_machine_that_is_slower_as_a_whole_is_rarely_taken_for_a_change(cells):
    """All cells moved by 10 %: of comparisons at most one in a hundred may call one slower, here two by chance."""
    draw = np.random.default_rng(7)

    def run(factor: float) -> list[dict]:
        rows = []
        for cell in cells:
            launches = np.log(factor) + draw.normal(0, 0.01, 6)
            half = quantile(5) * launches.std(ddof=1) / math.sqrt(6)
            low, middle, high = np.exp([launches.mean() - half, launches.mean(), launches.mean() + half])
            made = {"latency_ms_ci_low": low, "latency_ms_median": middle, "latency_ms_ci_high": high}
            rows.append(record("alpha", *cell) | made | NO_SPEEDUP | {"launches": 6})
        return rows

    alarms = sum(bool(changed(run(1.0), run(1.1)).with_verdict(SLOWER)) for _ in range(500))
    assert alarms <= 10
