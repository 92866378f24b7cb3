"""Two runs cell by cell: what is a move, what only looks like one, what is said first, exit codes."""

from __future__ import annotations

import io
import json
import math
import os
import random
import re
from dataclasses import replace
from statistics import median

import pytest
from doubles.reported import failed, record, write_run
from rich.console import Console

import runner
from analysis import changes
from analysis.comparison import FASTER, NOT_COMPARABLE, SAME, SLOWER, Compared, Comparison
from analysis.significance import independent_ratio
from measurement.statistics import INCONCLUSIVE, Interval, batch_interval
from records.record import Record
from reports import compare, run_headings, terminal
from reports.content import grid
from reports.names import Names


def compared(a: list[Record], b: list[Record], limit: float = 0.05) -> Comparison:
    """Two runs' records compared."""
    return replace(changes.compare(a, b, limit), cautions=tuple(run_headings.cautions(a, b)))


def clause(cell: Compared) -> str:
    """Return why a cell is not decided; empty where it is."""
    return compare.describe(cell.why) if cell.why else ""


SPEEDUPS = ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high")
EAGER, GRAPH = A = [record("alpha", "eager"), record("alpha", "graph")]


def times(row: Record, factor: float, speedup: float = 1.0, **changed) -> Record:
    """A record `factor` times as slow, its speedup `speedup` times as large."""
    figures = ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high")
    moved = {name: getattr(row, name) * factor for name in figures}
    faster = {name: (value := getattr(row, name)) and value * speedup for name in SPEEDUPS}
    return row | moved | faster | changed


def moved(eager: float, graph: float, **changed) -> list[Record]:
    """The run `A` with eager mode and its graph so many times as slow; the speedup follows."""
    return [times(EAGER, eager, **changed), times(GRAPH, graph, eager / graph, **changed)]


def verdicts(a: list[Record], b: list[Record]) -> dict[str, str]:
    """The verdicts by mode."""
    return {cell.cell.rpartition("/")[2]: cell.verdict for cell in compared(a, b).cells}


@pytest.mark.parametrize(
    ("graph", "expected"), [(1.1, SLOWER), (0.9, FASTER), (1.0, SAME), (1.01, SAME), (0.995, SAME), (1.05, SLOWER)]
)
def test_a_mode_that_moves_alone_has_a_verdict(graph, expected):
    assert verdicts(A, moved(1.0, graph)) == {"eager": SAME, "graph": expected}


@pytest.mark.parametrize(("added", "pairs_up"), [("quant=none,product=matmul", 2), ("quant=int8,product=matmul", 0)])
def test_cells_from_before_a_parameter_are_those_of_its_first_value(added, pairs_up):
    """Else a run from before would have no cell in common with a new one, and nothing would be slower."""
    older, newer = (
        [row | {"cell": row.cell.replace("/", f"/context=8,{more}/", 1)} for row in rows]
        for rows, more in ((A, "cache=static"), (moved(1.0, 1.5), f"cache=static,{added}"))
    )
    cells = [cell for cell in compared(older, newer).cells if cell.verdict != NOT_COMPARABLE]
    assert len(cells) == pairs_up and {cell.verdict for cell in cells} == ({SAME, SLOWER} if pairs_up else set())


@pytest.mark.parametrize("drift", [0.7, 1.2, 2.0])
def test_what_moves_all_modes_alike_may_be_the_machine(drift):
    comparison = compared(A, moved(drift, drift * 1.005))
    assert {cell.verdict for cell in comparison.cells} == {INCONCLUSIVE}
    assert f"graph changed by a factor of {drift * 1.005:.2f} as well: the cause may be the machine" in {
        clause(cell) for cell in comparison.cells
    }
    assert not comparison.decided and not comparison.over


def test_on_a_machine_that_drifts_what_moves_beyond_the_drift_is_seen():
    assert verdicts(A, moved(0.7, 0.8)) == {"eager": FASTER, "graph": INCONCLUSIVE}
    assert verdicts(A, moved(1.2, 1.3)) == {"eager": INCONCLUSIVE, "graph": SLOWER}
    assert verdicts(A, moved(0.9, 1.1)) == {"eager": FASTER, "graph": SLOWER}


def wide(row: Record, share: float) -> Record:
    """A record whose latency has this half-width."""
    middle = row.latency_ms_median
    return row | {"latency_ms_ci_low": middle / (1 + share), "latency_ms_ci_high": middle * (1 + share)}


def without_speedups(rows: list[Record]) -> list[Record]:
    return [row | dict.fromkeys(SPEEDUPS) for row in rows]


@pytest.mark.parametrize(
    ("of_eager", "why"),
    [
        (1.01, "no other mode of the shape is precise enough to show whether the machine changed"),
        (0.97, "no other mode of the shape is precise enough to show whether the machine changed"),
        (1.2, "eager changed by a factor of 1.20 as well: the cause may be the machine"),
    ],
)
def test_only_a_mode_whose_change_is_shown_is_said_to_have_changed_as_well(of_eager, why):
    a, b = (without_speedups([wide(eager, 0.08), graph]) for eager, graph in (A, moved(of_eager, 1.08)))
    cells = {cell.cell.rpartition("/")[2]: cell for cell in compared(a, b).cells}
    assert (cells["graph"].verdict, clause(cells["graph"])) == (INCONCLUSIVE, why)
    assert ("no difference is shown" in clause(cells["eager"])) == (of_eager < 1.1)


def test_other_shapes_are_said_to_have_changed_only_where_that_is_shown():
    a = [record("alpha", "eager", *shape) for shape in ((1, 128), (1, 512))]
    a[1] = wide(a[1], 0.08)
    (cell, _) = compared(a, [times(a[0], 1.08), times(a[1], 1.01)]).cells
    assert clause(cell) == "the other shapes are not precise enough to show whether the machine changed"


def test_any_precise_mode_shows_that_the_machine_was_unchanged():
    """Eager mode changed least by its estimate, which shows nothing; the replay did not change."""
    third = record("alpha", "replay")
    a, b = (without_speedups([wide(eager, 0.15), graph, third]) for eager, graph in (A, moved(0.99, 1.08)))
    assert verdicts(a, b)["graph"] == SLOWER


@pytest.mark.parametrize(
    ("loop", "eager", "graph", "expected"),
    [
        (0.324, 1.08, 1.0, INCONCLUSIVE),  # the graph waits for the device
        (0.324, 1.2, 1.0, SLOWER),  # beyond the host's change
        (0.324, 0.92, 1.0, FASTER),  # against it
        (0.3, 1.08, 1.0, SLOWER),
        (None, 1.08, 1.0, SLOWER),
    ],
)
def test_the_host_s_speed_explains_what_waits_for_it(loop, eager, graph, expected):
    gpu = {"device": "gpu:0", "host_loop_ms_full": 0.3}
    waits = [{"host_ms_median": 1000.0}, {"host_ms_median": 0.1}]
    a, b = (
        [row | gpu | host | changed for row, host in zip(side, waits, strict=True)]
        for side, changed in ((A, {}), (moved(eager, graph), {"host_loop_ms_full": loop}))
    )
    cells = {cell.cell.rpartition("/")[2]: cell for cell in compared(a, b).cells}
    assert (cells["eager"].verdict, cells["graph"].verdict) == (expected, SAME)
    said = "the host's speed changed: its control loop took 1.08 times as long, which explains the change"
    assert clause(cells["eager"]) == (said if expected == INCONCLUSIVE else "")


def test_the_host_s_speed_explains_nothing_beside_a_mode_that_waits_for_it_and_did_not_change():
    a, b = ([row | {"host_loop_ms_full": loop} for row in side]
            for side, loop in ((A, 0.3), (moved(1.0, 1.08), 0.324)))  # fmt: skip
    assert verdicts(a, b) == {"eager": SAME, "graph": SLOWER}
    a, b = ([row | {"host_loop_ms_full": loop} for row in side]
            for side, loop in ((A, 0.3), (moved(1.08, 1.08), 0.324)))  # fmt: skip
    assert {clause(cell).partition(":")[0] for cell in compared(a, b).cells} == {"the host's speed changed"}


@pytest.mark.parametrize(
    ("loops", "threads", "factor", "expected"),
    [
        ((0.3, 0.3), 1, 1.5, SLOWER),
        ((0.3, 0.3), 1, 1.2, INCONCLUSIVE),
        ((0.3, 0.45), 1, 1.5, INCONCLUSIVE),
        ((0.3, None), 1, 1.5, INCONCLUSIVE),
        # The loop has one thread, and misses what a neighbour on another core takes from several.
        ((0.3, 0.3), 2, 1.9, INCONCLUSIVE),
        ((0.3, 0.3), 2, 2.1, SLOWER),
        ((0.3, 0.3), 2, 0.45, FASTER),
        ((0.3, 0.45), 2, 3.0, INCONCLUSIVE),
        ((0.3, None), 2, 3.0, INCONCLUSIVE),
    ],
)
def test_a_large_common_move_is_a_verdict_where_the_host_s_loop_stood_still(loops, threads, factor, expected):
    a, b = ([row | {"host_loop_ms_median": loop, "threads": threads} for row in side]
            for side, loop in zip((A, moved(factor, factor)), loops, strict=True))  # fmt: skip
    assert verdicts(a, b) == {"eager": expected, "graph": expected}


def test_a_gpu_s_clock_tells_of_modes_that_the_host_does_not_decide():
    gpu = {"device": "gpu:0", "host_ms_median": 0.1, "host_loop_ms_median": 0.3}
    for clocks, expected in (((1980.0, 1975.0), SLOWER), ((1980.0, 1400.0), INCONCLUSIVE)):
        a, b = ([row | gpu | {"gpu_sm_mhz": clock} for row in side]
                for side, clock in zip((A, moved(1.4, 1.4)), clocks, strict=True))  # fmt: skip
        assert set(verdicts(a, b).values()) == {expected}


def test_a_mode_alone_is_held_against_the_other_shapes():
    shapes = [(1, 128), (1, 512), (4, 128)]
    a = [record("alpha", "eager", *shape) for shape in shapes]
    one = compared(a, [times(a[0], 1.1), *a[1:]])
    assert [cell.verdict for cell in one.cells] == [SLOWER, SAME, SAME]
    everything = compared(a, [times(row, 1.1) for row in a])
    assert {cell.verdict for cell in everything.cells} == {INCONCLUSIVE}
    assert "the other shapes changed by a factor of 1.10 as well: the cause may be the machine" in clause(
        everything.cells[0]
    )
    (alone,) = compared(a[:1], [times(a[0], 1.1)]).cells
    assert (alone.verdict, clause(alone)) == (
        INCONCLUSIVE,
        "no other mode of the shape shows whether the machine changed",
    )


def test_a_wide_interval_shows_no_difference_and_rules_none_out():
    b = moved(1.0, 1.1)
    b[1] |= {"latency_ms_ci_low": 12.0, "latency_ms_ci_high": 24.0}
    cells = {cell.cell.rpartition("/")[2]: cell for cell in compared(A, b).cells}
    assert cells["graph"].verdict == INCONCLUSIVE
    assert clause(cells["graph"]) == "no difference is shown, and one beyond 5 % is not ruled out"


@pytest.mark.parametrize(
    ("launches", "expected"),
    [((1, 3), INCONCLUSIVE), ((3, 2), INCONCLUSIVE), ((1, 1), INCONCLUSIVE), ((3, 3), SLOWER), ((None, 5), SLOWER)],
)
def test_intervals_within_processes_are_no_verdict(launches, expected):
    a, b = ([row | {"launches": count} for row in side]
            for side, count in zip((A, moved(1.0, 1.5)), launches, strict=True))  # fmt: skip
    assert verdicts(a, b)["graph"] == expected
    assert bool(compared(a, b).over) == (expected == SLOWER)
    assert (verdicts(a, a)["graph"] == INCONCLUSIVE) == (launches[0] == 1)


def test_the_scope_that_a_record_tells_counts():
    within = [row | {"interval_scope": "within this process"} for row in A]
    assert set(verdicts(within, moved(1.0, 1.5)).values()) == {INCONCLUSIVE}


@pytest.mark.parametrize("side", [0, 1])
def test_conditions_change_no_verdict_and_explain_what_is_open(side):
    def verdicts_of(b: list[Record]) -> dict[str, tuple[str, str]]:
        runs = [A, b]
        runs[side] = [row | {"flags": "other_load"} for row in runs[side]]
        return {cell.cell.rpartition("/")[2]: (cell.verdict, clause(cell)) for cell in compared(*runs).cells}

    quiet = verdicts(A, moved(1.0, 1.5))
    assert {mode: verdict for mode, (verdict, _) in verdicts_of(moved(1.0, 1.5)).items()} == quiet
    wide = [row | {"latency_ms_ci_low": 0.1, "latency_ms_ci_high": 99.0} for row in A]
    for verdict, why in verdicts_of(wide).values():
        assert verdict == INCONCLUSIVE and why.endswith(f"; flags of {'AB'[side]}: other_load")


def test_a_slowed_host_leaves_open_only_what_it_decides():
    launched = {"device": "gpu:0", "host_ms_median": 0.1, "flags": "host_slowed"}
    assert verdicts([row | launched for row in A], [row | launched for row in moved(1.0, 1.5)])["graph"] == SLOWER
    waited = launched | {"host_ms_median": 1000.0}
    assert verdicts([row | waited for row in A], [row | waited for row in moved(1.0, 1.5)])["graph"] == INCONCLUSIVE


def test_of_many_cells_a_slight_one_is_chance():
    """4 % is shown of one shape, and of one among forty it is not: of so many one is off by as much for nothing."""

    def run(shapes: int, factor: float) -> list[Record]:
        rows = []
        for number in range(shapes):
            change = factor if not number else 1.0
            for row in moved(1.0, change):
                rows.append(row | {"cell": row.cell.replace("batch_size=1", f"batch_size={number}")})
        return rows

    for shapes, expected in ((1, 1), (40, 0)):
        comparison = compared(run(shapes, 1.0), run(shapes, 1.019), 0.2)
        strict = compared(run(shapes, 1.0), run(shapes, 1.04), 0.2)
        assert len(comparison.with_verdict(SLOWER)) == 0  # below what processes of the same code may differ by
        assert len(strict.with_verdict(SLOWER)) == expected


@pytest.mark.parametrize(
    ("b", "why"),
    [
        (failed("alpha", "graph", "crash", "It died."), "B: crash: It died"),
        (times(GRAPH, 1.0, weights="seed:1"), "the weights differ: seed:0 and seed:1"),
        (times(GRAPH, 1.0, latency_ms_ci_low=None), "B has too few samples for an interval"),
    ],
)
def test_what_cannot_be_compared_says_why(b, why):
    cells = {cell.cell.rpartition("/")[2]: cell for cell in compared(A, [EAGER, b]).cells}
    assert (cells["graph"].verdict, clause(cells["graph"])) == (NOT_COMPARABLE, why)


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
        (*[{"settings": '{"policies": {}}'}] * 2, (SLOWER, "")),  # a framework that has none
    ],
)
def test_times_under_different_policies_are_not_of_the_same_thing(a, b, expected):
    cells = compared([row | a for row in A], [row | b for row in moved(1.0, 1.5)]).cells
    (graph,) = (cell for cell in cells if cell.cell.endswith("graph"))
    assert (graph.verdict, clause(graph)) == expected


def test_cells_of_one_run_only_and_cells_held_twice():
    other = record("beta", "eager")
    whys = {cell.cell: clause(cell) for cell in compared([EAGER, EAGER], [EAGER, other]).cells}
    assert whys == {EAGER.cell: "A holds it 2 times", other.cell: "only in B"}


def test_machines_and_versions_come_first():
    elsewhere = {"machine_id": "ffff", "device_name": "Another", "framework_version": "1.3", "git_revision": "9"}
    comparison = compared(A, moved(1.0, 1.0, **elsewhere))
    first, second, third, *_ = comparison.cautions
    assert first.startswith("Different machines: A on A processor (machine abcd1234), B on Another (machine ffff)")
    assert second == "Different versions: alpha 1.2 → 1.3."
    assert third.startswith("Different revisions")
    page = compare.page(comparison)
    assert page.index("Different machines") < page.index("Different versions") < page.index("2 cells")
    assert compared(A, A).cautions == ()


@pytest.mark.parametrize(("ours", "theirs", "said"), [(0.3, 0.6, True), (0.6, 0.3, True), (0.3, 0.32, False),
                                                       (None, 0.6, False)])  # fmt: skip
def test_a_slower_host_is_said(ours, theirs, said):
    cautions = compared([EAGER | {"host_loop_ms_median": ours}], [EAGER | {"host_loop_ms_median": theirs}]).cautions
    sentence = "so a host or its Python is slower. This alone changes times that the host limits."
    assert any(text.endswith(sentence) for text in cautions) == said


@pytest.mark.parametrize(
    ("ours", "theirs", "sides"),
    [
        ("drift;program_differs", None, "1 cell in A and 0 cells in B"),
        ("program_differs", "program_differs", "1 cell in A and 1 cell in B"),
        ("drift", None, None),
    ],
)
def test_another_program_than_eager_s_is_said(ours, theirs, sides):
    cautions = compared([EAGER, GRAPH | {"flags": ours}], [EAGER, GRAPH | {"flags": theirs}]).cautions
    assert [text.partition(" (")[0] for text in cautions] == (
        [f"Other operators than eager mode's: {sides}"] if sides else []
    )


@pytest.mark.parametrize(
    ("b", "limit", "code"),
    [
        (moved(1.0, 1.1), "5%", 1),
        (moved(1.0, 1.1), "20%", 0),
        (moved(1.0, 1.03), "5%", 0),
        (moved(1.0, 0.5), "5%", 0),
        (moved(1.0, 1.0), "5%", 0),
        (moved(1.1, 1.1), "5%", 3),
        ([EAGER, failed("alpha", "graph", "crash", "A reason.")], "5%", 1),
        ([EAGER, failed("alpha", "graph", "unsupported", "A reason.")], "5%", 1),
        (moved(1.0, 1.5, flags="steal"), "5%", 1),
    ],
)
def test_the_exit_code_tells_slower_from_nothing_decided(tmp_path, capsys, b, limit, code):
    runs = [write_run(tmp_path / name, rows) for name, rows in (("a", A), ("b", b))]
    assert runner.main(["compare", *map(str, runs), "--max-slowdown", limit]) == code
    assert capsys.readouterr().out.startswith("a → b: ")  # the answer, before everything else


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Name the runs to compare"),
        (["{a}"], "Name the runs to compare"),
        (["{a}", "{b}", "--max-slowdown", "0.05"], "MAX_SLOWDOWN must be a percentage such as 5%"),
        (["{a}", "nowhere"], "nowhere contains no run"),
        (["{a}", "{b}"], "have no cell in common"),
        (["{a}", "{a}/records.jsonl"], "are the same run; name two runs"),
        (["{a}", "{b}", "{a}", "--max-slowdown", "5%"], "MAX_SLOWDOWN applies to two runs"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(tmp_path, capsys, words, sentence):
    paths = {name: write_run(tmp_path / name, [row]) for name, row in (("a", EAGER), ("b", record("beta", "eager")))}
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
    assert independent_ratio(Interval(3.0, 2.7, 10 / 3), exact).low == pytest.approx(1.35)


def test_the_page_has_a_heading_short_names_and_folds_what_did_not_move(tmp_path):
    runs = [write_run(tmp_path / name, rows) for name, rows in (("before", A), ("after", moved(1.0, 1.2)))]
    given = {"framework": "alpha", "batch": [1, 4], "isolate": True, "weights": "/somewhere/else"}
    (runs[1] / "plan.json").write_text(json.dumps({"given": given}))
    assert runner.main(["compare", *map(str, runs)]) == 1
    page = (tmp_path / "after" / "comparison.md").read_text()
    assert page.startswith("### before → after: 1 slower by more than 5 %\n")
    facts = "2026-01-02 03:04 UTC · alpha 1.2 · suite 0123456789 · quick, 3 processes · A processor (abcd)"
    assert f"- **B**: after · {facts}\n  `make bench FRAMEWORK=alpha BATCH=1,4 ISOLATE=1 WEIGHTS=else`" in page
    assert "**2 cells: 1 slower, 1 same; 1 slower by more than 5 %.**" in page
    assert "All cells: bert, plain, cpu, fp32, 2 threads, batch 1, seq 128." in page
    assert "| alpha graph | 16 | 19.2 | 1.20× ±0.9 % | 1.20× ±2 % | slower |" in page
    assert page.index("#### Slower") < page.index("<details><summary>Same: 1 cell")
    assert max(map(len, re.findall(r"(?m)^\|.*", page))) < 100


def test_no_process_is_started_that_would_outlive_a_comparison_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was started"))
    runs = [write_run(tmp_path / name, rows) for name, rows in (("a", A), ("b", moved(1.0, 1.2)))]
    assert runner.main(["compare", *map(str, runs)]) == 1


def test_at_80_columns_a_row_is_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "_FILE_WIDTH", 80)
    runs = [write_run(tmp_path / name, rows) for name, rows in (("a", A), ("b", moved(1.0, 1.2)))]
    runner.main(["compare", *map(str, runs)])
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("alpha ")]
    assert len(rows) == 2 and max(map(len, rows)) <= 80 and "1.20× ±0.9 %" in rows[0]


def test_cells_without_a_verdict_are_a_line_for_each_reason(tmp_path, capsys):
    runs = [write_run(tmp_path / name, rows) for name, rows in (("a", A), ("b", moved(1.1, 1.1)))]
    runner.main(["compare", *map(str, runs)])
    lines = capsys.readouterr().out.splitlines()
    assert not any(line.startswith("alpha ") for line in lines)
    assert [line.partition(" (")[0] for line in lines if line.startswith("inconclusive")] == [
        "inconclusive, 1 cell"
    ] * 2


def test_a_terminal_s_table_drops_columns_and_never_digits():
    columns, rows = ("name", "words", "ms"), [("alpha", "a long text", "1,234.5 (1,233 to 1,236)")]
    for width, shown in ((60, 3), (35, 2)):
        console = Console(file=io.StringIO(), width=width)
        console.print(grid(columns, rows, width, dropped=(1,)))
        text = console.file.getvalue()
        assert "1,234.5 (1,233 to 1,236)" in text and ("a long text" in text) == (shown == 3)


def test_the_answer_names_what_is_slower_and_what_broke():
    crashed = failed("alpha", "graph", "crash", "A reason.")
    assert compare.answer(compared(A, [EAGER, crashed])) == "1 broke"
    assert compare.answer(compared(A, moved(1.0, 1.1))) == "1 slower by more than 5 %"
    assert compare.answer(compared(A, A)) == "no cell is shown to be slower by more than 5 %"
    assert compare.answer(compared(A, moved(1.1, 1.1))) == "nothing could be decided"


def test_short_names_say_what_differs():
    cells = [f"a/{model}/plain/inference/cpu/fp32/threads=2/batch_size={batch},depth={depth}/eager"
             for model, batch, depth in (("mlp", 1, 8), ("mlp", 4, 8), ("bert", 1, 2))]  # fmt: skip
    names = Names(cells)
    assert [names[cell] for cell in cells] == ["a eager mlp batch 1", "a eager mlp batch 4", "a eager bert"]
    assert names.shared == "plain, cpu, fp32, 2 threads; mlp, depth=8; bert, batch 1, depth=2"
