"""Two runs cell by cell: the four verdicts, what is said first, exit codes."""

from __future__ import annotations

import json
import math
import random
from statistics import median

import pytest
from doubles.reported import failed, record, write_run

import runner
from measurement.statistics import Interval, batch_interval, independent_ratio
from reports import compare
from reports.compare import FASTER, NOT_COMPARABLE, SAME, SLOWER, UNTOLD


def compared(a: list[dict], b: list[dict]) -> compare.Comparison:
    """Two runs' records compared."""
    return compare.compare(
        *({name: [row.get(name) for row in side] for name in compare.COLUMNS_READ} for side in (a, b))
    )


def verdict(a: dict, b: dict) -> tuple[str, str]:
    """The verdict on one cell, and why."""
    (found,) = compared([a], [b]).cells
    return found.verdict, found.why


def slower(factor: float, **changes) -> dict:
    return record("alpha", "eager", latency=20.0 * factor, **changes)


A = record("alpha", "eager")


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.1, SLOWER), (0.9, FASTER), (1.0, SAME), (1.01, SAME), (0.995, SAME)]
)
def test_verdicts_follow_the_interval_of_the_ratio(factor, expected):
    assert verdict(A, slower(factor)) == (expected, "")


def test_a_difference_within_a_wide_interval_is_none():
    assert verdict(A, slower(1.1, latency_ms_ci_low=15.0, latency_ms_ci_high=30.0)) == (SAME, "")


@pytest.mark.parametrize(
    ("launches", "expected"),
    [((1, 3), UNTOLD), ((3, 2), UNTOLD), ((1, 1), UNTOLD), ((3, 3), SLOWER), ((None, 5), SLOWER)],
)
def test_a_difference_between_single_processes_is_no_verdict(launches, expected):
    a, b = (row | {"launches": n} for row, n in zip((A, slower(1.5)), launches, strict=True))
    assert verdict(a, b) == (expected, "")
    assert bool(compared([a], [b]).over(0.05)) == (expected == SLOWER)
    assert any("breaks no limit" in text for text in compared([a], [b]).cautions) == (expected == UNTOLD)
    assert verdict(a, a)[0] == SAME


def test_a_difference_below_two_percent_is_none_however_narrow_the_interval():
    exact = {"latency_ms_ci_low": 20.29, "latency_ms_ci_high": 20.31}
    a = A | {"latency_ms_ci_low": 19.99, "latency_ms_ci_high": 20.01}
    assert verdict(a, slower(1.015, **exact)) == (SAME, "")


@pytest.mark.parametrize(
    ("b", "why"),
    [
        (failed("alpha", "eager", "crash", "It died."), "B: crash: It died."),
        (slower(1.0, weights="seed:1"), "the weights differ: seed:0 and seed:1"),
        (slower(1.0, latency_ms_ci_low=None), "B has too few samples for an interval"),
    ],
)
def test_what_cannot_be_compared_says_why(b, why):
    assert verdict(A, b) == (NOT_COMPARABLE, why)


SPIN, SLEEP = (
    {"settings": json.dumps({"a": choice, "policies": {"torch-openmp-idle": choice}})} for choice in ("spin", "sleep")
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (SPIN, SLEEP, (NOT_COMPARABLE, "the policies differ: torch-openmp-idle=spin and torch-openmp-idle=sleep")),
        (SPIN, SPIN, (SLOWER, "")),
        ({"settings": '{"a": 1}'}, SLEEP, (SLOWER, "")),  # older records do not say
        ({}, SLEEP, (SLOWER, "")),
    ],
)
def test_times_under_different_policies_are_not_of_the_same_thing(a, b, expected):
    assert verdict(A | a, slower(1.5) | b) == expected


def test_cells_of_one_run_only_and_cells_held_twice():
    other = record("beta", "eager")
    found = {cell.cell: cell.why for cell in compared([A, A], [A, other]).cells}
    assert found == {A["cell"]: "A holds it 2 times", other["cell"]: "only in B"}


def test_machines_and_versions_come_first():
    moved = slower(1.0, machine_id="ffff", device_name="Another", framework_version="1.3", git_revision="9")
    comparison = compared([A], [moved])
    first, second, third, *_ = comparison.cautions
    assert first.startswith("Different machines: A on A processor (machine abcd1234), B on Another (machine ffff)")
    assert second == "Different versions: alpha 1.2 → 1.3."
    assert third.startswith("Different revisions")
    page = compare.page(comparison, "one", "two", 0.05)
    assert page.index("Different machines") < page.index("Different versions") < page.index("1 cell")
    assert compared([A], [A]).cautions == ()


@pytest.mark.parametrize(("ours", "theirs", "said"), [(0.3, 0.6, True), (0.6, 0.3, True), (0.3, 0.32, False),
                                                       (None, 0.6, False)])  # fmt: skip
def test_a_slower_host_is_said(ours, theirs, said):
    cautions = compared([A | {"host_loop_ms_median": ours}], [A | {"host_loop_ms_median": theirs}]).cautions
    assert any(text.startswith("A slower host") for text in cautions) == said


def test_the_page_folds_what_is_the_same():
    comparison = compared([A, record("beta", "eager")], [slower(1.2), record("beta", "eager")])
    page = compare.page(comparison, "one", "two", 0.05)
    assert "**2 cells: 1 slower, 1 same; 1 slower by more than 5 %.**" in page
    assert page.index("#### Slower") < page.index("<details><summary>Same")
    row = next(line for line in page.splitlines() if line.startswith(f"| {A['cell']}"))
    assert row == f"| {A['cell']} | 20 | 24 | 1.200 | 1.183 to 1.217 | slower |"


@pytest.mark.parametrize(
    ("b", "limit", "code"),
    [(1.1, "5%", 1), (1.1, "20%", 0), (1.03, "5%", 0), (0.5, "5%", 0), ("crash", "5%", 1), ("unsupported", "5%", 1)],
)
def test_the_exit_code_tells_whether_the_limit_is_kept(tmp_path, capsys, b, limit, code):
    changed = slower(b) if isinstance(b, float) else failed("alpha", "eager", b, "A reason.")
    runs = [write_run(tmp_path / name, [row]) for name, row in (("a", A), ("b", changed))]
    assert runner.main(["compare", *map(str, runs), "--max-slowdown", limit]) == code
    assert (tmp_path / "b" / "comparison.md").read_text().startswith("### A: a-run, B: a-run")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Say which runs to compare"),
        (["{a}"], "Say which runs to compare"),
        (["{a}", "{b}", "--max-slowdown", "0.05"], "MAX_SLOWDOWN is a percentage such as 5%"),
        (["{a}", "nowhere"], "nowhere holds no run"),
        (["{a}", "{b}"], "have no cell in common"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(tmp_path, capsys, words, sentence):
    paths = {name: write_run(tmp_path / name, [row]) for name, row in (("a", A), ("b", record("beta", "eager")))}
    assert runner.main(["compare", *(word.format(**paths) for word in words)]) == 2
    assert sentence in capsys.readouterr().err


def test_the_interval_of_independent_medians_covers_their_ratio():
    draw, held, trials = random.Random(7), 0, 400
    for _ in range(trials):
        sides = [[draw.lognormvariate(math.log(scale), 0.1) for _ in range(40)] for scale in (3.0, 2.0)]
        ratio = independent_ratio(*map(batch_interval, sides))
        held += ratio.low <= 1.5 <= ratio.high
        assert ratio.value == pytest.approx(median(sides[0]) / median(sides[1]))
    assert held / trials >= 0.93
    exact = Interval(2.0, 2.0, 2.0)
    assert independent_ratio(Interval(3.0, 2.7, 3.3), exact).low == pytest.approx(1.35)
