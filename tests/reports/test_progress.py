"""What one sees while a run goes on, on terminals of several widths and in a file."""

from __future__ import annotations

import io
import json
import re

import pytest
from doubles.reported import failed, record, write_run
from rich.console import Console

from commands import bench
from execution.progress import Bar, fitted, line
from execution.worker_run import Figure
from measurement.cells import PEAK_PREFIX
from plan.plan import Bundle, Group
from records import runs
from reports.names import Names

LONG = "inductor-max-autotune-no-cudagraphs"


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def bert(cell, mode="eager", batch=1, **changes):
    parameters = (("batch_size", batch), ("seq_len", 128), ("mask", "none"))
    return cell(workload="bert-base", implementation="library", mode=mode, parameters=parameters, **changes)


def short(*cells) -> Names:
    return Names([cell.id for cell in cells], whole=True)


@pytest.fixture
def cells(cell):
    return [bert(cell, mode, batch) for batch in (1, 4) for mode in ("eager", LONG)] + [cell(framework="jax")]


def bundle(*cells) -> Bundle:
    return Bundle((Group(tuple(cells), frozenset(c.id for c in cells)),))


def bar(cells, width=80, estimates=None, launches=1, **console):
    clock = Clock()
    out = Console(file=io.StringIO(), width=width, **console)
    estimates = estimates or {cells[0].id: 60.0, cells[-1].id: 30.0}
    return Bar(out, cells, estimates, clock, processes=launches), clock, out


def screen(shown: Bar, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system="standard", force_terminal=True)
    console.print(shown.render())
    return [re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip() for text in console.file.getvalue().splitlines()]


# A run of five cells whose first compiles for 14 s, as it was looked at.
FACTS = "16 % · 14 s · about 76 s left"
BAR = {80: "━" * 7 + "╸" + "━" * 42, 100: "━" * 3 + "╸" + "━" * 20}
RECORDED = {
    80: [f"{BAR[80]} {FACTS}", f"torch {LONG} · bert-base 1×128 · compiling 14 s"],
    100: [f"{BAR[100]} {FACTS} torch inductor-max-autotune… · compiling 14 s"],
    120: [f"{BAR[100]} {FACTS} torch {LONG} · ber… · compiling 14 s"],
    160: [f"{BAR[100]} {FACTS} torch {LONG} · bert-base 1×128 · compiling 14 s"],
}


def test_every_width_has_bar_count_time_left_and_step(cells):
    for width in (60, 80, 100, 120, 160):
        shown, clock, _ = bar(cells, width)
        shown.bundle(bundle(*cells[:4]), 0)
        shown.phase(cells[1].id, "first call")
        clock.now += 14
        lines = screen(shown, width)
        assert lines == RECORDED.get(width, lines)
        assert len(lines) == (2 if width < 100 else 1)
        assert all(len(text) <= width for text in lines)
        text = " ".join(lines)
        for part in ("━━━━━", "16 %", "14 s", "about 76 s left", "torch inductor-max"):
            assert part in text, (width, part)


def test_a_short_step_is_whole_at_80_columns_and_moves_while_it_compiles(cell):
    cells = [bert(cell), bert(cell, "inductor")]
    shown, clock, _ = bar(cells, estimates={cells[0].id: 60.0})
    shown.bundle(bundle(*cells), 0)
    shown.phase(cells[1].id, "first call")
    clock.now += 14
    assert screen(shown, 80) == [
        f"{'━' * 11}╸{'━' * 38} 23 % · 14 s · about 46 s left",
        "torch inductor · bert-base 1×128 · compiling 14 s",
    ]
    clock.now += 1
    assert screen(shown, 80)[1].endswith("compiling 15 s")
    shown.phase(cells[1].id, "first call")  # said again by the worker: the seconds go on
    assert screen(shown, 80)[1].endswith("compiling 15 s")
    shown.phase(cells[0].id, "first call")
    assert screen(shown, 80)[1] == "torch eager · bert-base 1×128 · first call 0 s"
    shown.bundle(bundle(*cells), 1)
    shown.phase(None, "import")
    assert screen(shown, 80)[1] == "torch · importing 0 s · process 2 of 2"
    shown.progress(12, {c.id: s for c, s in zip(cells, (0.161, 0.149), strict=True)})
    assert screen(shown, 80)[1] == "torch · bert-base 1×128 · round 12 · eager 161, inductor 149 ms · process 2 of 2"
    shown.phase(PEAK_PREFIX + bert(cell).id, "sampling")
    assert "torch · peaks of the machine · sampling" in screen(shown, 80)[1]


def test_time_left_of_bundles_whose_launches_take_turns_follows_the_launches(cells):
    """No bundle is done before the last launches, and the time left counts down nevertheless."""
    first, second = bundle(*cells[:4]), bundle(cells[-1])
    shown, clock, _ = bar(cells, launches=3)
    left = []
    for launch in range(3):
        for one, seconds in ((first, 20), (second, 10)):
            shown.bundle(one, launch)
            clock.now += seconds
            shown.process_done(one)
            left.append(shown.left())
    assert left == pytest.approx([70, 60, 40, 30, 10, 0])
    shown.bundle_done(first)
    shown.bundle_done(second)
    assert shown.left() == 0


def test_time_left_learns_the_pace_of_launches_and_of_those_that_were_not_needed(cells):
    first, second = bundle(*cells[:4]), bundle(cells[-1])
    shown, clock, _ = bar(cells, launches=3)
    shown.bundle(first, 0)
    clock.now += 40  # twice as long as thought
    shown.process_done(first)
    assert shown.left() == pytest.approx(2 * 70)
    shown.bundle_done(first)  # an interrupted run knew the others
    shown.bundle(second, 0)
    assert 0 < shown.left() <= 2 * 30


def test_time_left_counts_down_grows_with_a_slow_bundle_and_learns_its_pace(cells):
    shown, clock, _ = bar(cells)
    seen = []
    for _ in range(4):
        seen.append(shown.left())
        clock.now += 15
    assert seen == [90, 75, 60, 45]
    clock.now += 60  # twice as long as the bundle was thought to take: so may be the other
    assert shown.left() == pytest.approx(60, rel=0.1)
    shown.bundle_done(bundle(*cells[:4]))
    assert shown.left() == pytest.approx(60)
    clock.now += 10
    assert shown.left() == pytest.approx(50)
    shown.bundle_done(bundle(cells[-1]))
    assert shown.left() == 0


def test_a_file_gets_plain_lines_and_what_is_shared_once(cells, record):
    shown, _, out = bar(cells)
    with shown:
        shown.bundle(bundle(*cells[:4]), 0)
        shown.phase(cells[0].id, "sampling")
        shown.record(record(framework="torch", mode="eager") | {"cell": cells[0].id})
        shown.bundle_done(bundle(*cells[:4]))
    text = out.file.getvalue()
    assert "\r" not in text
    assert "\x1b" not in text
    first, second = text.splitlines()
    assert first == "All cells: cpu, fp32, 2 threads; bert-base, library, mask=none; mlp, plain, width=8, depth=2"
    assert second.split() == ["torch", "eager", "bert-base", "1×128", "2", "ms"]


def test_a_terminal_gets_the_bar_and_it_goes_away(cells, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    shown, _, out = bar(cells, force_terminal=True)
    with shown:
        pass
    assert "0 % · " in out.file.getvalue()


def finished(record, cell, **changes) -> dict:
    figures = {"speedup_vs_eager": 1.0712, "speedup_ci_low": 1.03, "speedup_ci_high": 1.13}
    fields = {"mode": cell.mode, "latency_ms_median": 149.3, "flags": "drift;other_load", **figures, **changes}
    return record(**fields) | {"cell": cell.id}


def test_a_finished_cell_is_a_line_of_80_columns_with_more_figures_than_flags(cells, record):
    names = short(*cells)
    text = line(finished(record, cells[1]), names).plain
    assert len(text) <= 80
    for part in ("149 ms", "1.07× ±5 %", "torch inductor"):
        assert part in text
    assert "other_load" not in text
    without = short(*(cell for cell in cells if cell.mode != LONG))
    assert line(finished(record, cells[0], mode="eager"), without).plain.startswith("torch eager  bert-base 1×128")


def test_figures_are_never_cut_for_names(cell, record):
    cells = [bert(cell, LONG, 123456, dtype=dtype, device=device) for dtype in ("fp32", "bf16") for device in "ab"]
    changes = {"speedup_vs_eager": 1234.5, "speedup_ci_low": 1111.1, "speedup_ci_high": 9999.9}
    text = line(finished(record, cells[0], latency_ms_median=123456.7, **changes), short(*cells)).plain
    assert len(text) <= 80
    for part in ("123,457 ms", "1,234× ±360 %", "torch ind", "graphs  ", "…"):
        assert part in text, text


def test_a_flag_of_the_cell_is_named_and_a_failure_says_why(cells, record):
    names = short(*cells)
    differs = line(finished(record, cells[1], flags="other_load;program_differs"), names).plain
    assert differs.endswith("program_differs")
    failed = record(mode=LONG, status="unsupported", reason="It needs a GPU. " * 9, latency_ms_median=None)
    text = line(failed | {"cell": cells[1].id}, names).plain
    assert "unsupported: It needs a" in text
    assert len(text) == 80
    assert text.endswith("…")
    hostile = line(failed | {"cell": cells[1].id, "reason": "\x1b[2J\x1b]0;gone"}, names).plain
    assert r"unsupported: \x1b[2J\x1b]0;gone" in hostile


def test_names_say_what_differs_and_share_the_rest(cell):
    alike = short(bert(cell), bert(cell, "inductor"))
    assert alike.shared == "bert-base 1×128, library, cpu, fp32, 2 threads, mask=none".partition(", ")[2]
    assert alike.shape(bert(cell).id) == "bert-base 1×128"
    mixed = [bert(cell, dtype="bf16"), bert(cell, threads=1), cell(), cell(pass_name="training")]
    assert short(*mixed).shared == "cpu; bert-base, library, mask=none; mlp, plain, fp32, 2 threads, width=8, depth=2"
    assert [short(*mixed)[one.id] for one in mixed] == [
        "torch eager bert-base 1×128 bf16 2 threads",
        "torch eager bert-base 1×128 fp32 1 thread",
        "torch eager mlp batch 4",
        "torch eager mlp batch 4 training",
    ]


def test_the_end_of_a_run_says_what_to_do_next_in_words_that_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    here, away = tmp_path / "2026-11-22", tmp_path / "my runs" / "a"
    earlier, other = tmp_path / "2026-11-20", tmp_path / "2026-11-21"
    for number, (folder, cell) in enumerate([(earlier, "x"), (other, "y"), (here, "x"), (away, "x")], 1):
        write_run(folder, [record("alpha", "eager", cell=cell)])
        (folder / "plan.json").write_text(json.dumps({"given": {}, "number": number}))
    measured = frozenset("x")
    assert bench.next_steps(runs.Run(here), measured) == "make report · make compare A=2026-11-20 B=2026-11-22"
    assert bench.next_steps(runs.Run(away), measured) == (
        f"make report RUN='{away}' · make compare A=2026-11-22 B='{away}'"
    )
    # Without an earlier run of the same cells, or without figures, there is nothing to compare.
    assert bench.next_steps(runs.Run(earlier), measured) == "make report"
    assert bench.next_steps(runs.Run(here), frozenset("z")) == "make report"
    assert bench.next_steps(runs.Run(here), bench.measured_cells([failed("alpha", "eager", "crash", "x")])) == (
        "make report"
    )


def test_a_terminal_shows_first_figures_below_the_bar_until_a_cell_has_its_record(cell, record):
    """Better ones take their place after each process."""
    cells = [bert(cell), bert(cell, "inductor"), bert(cell, LONG)]
    shown, _, _ = bar(cells, 60, estimates={cells[0].id: 60.0}, launches=3)
    shown.bundle(bundle(*cells), 0)
    shown.figures(0, {cells[0].id: Figure(0.00406)})
    shown.figures(0, {cells[1].id: Figure(0.00235, 1.728)})
    assert screen(shown, 60)[2:] == [
        "provisional (1 process)                  ms   over eager",
        "  torch eager bert-base 1×128          4.06",
        "  torch inductor bert-base 1×128       2.35         1.7×",
    ]
    shown.figures(1, {cells[0].id: Figure(0.00402), cells[1].id: Figure(0.00231, 1.74)})
    assert screen(shown, 60)[2].startswith("provisional (2 processes)")
    shown.record(record(framework="torch", mode="eager") | {"cell": cells[0].id})
    shown.figures(2, {cells[0].id: Figure(0.00401)})  # of the process that the record includes
    assert [text.split()[-2:] for text in screen(shown, 60)[3:]] == [["2.31", "1.7×"]]


def test_a_file_gets_a_line_of_first_figures_as_soon_as_two_modes_can_be_compared(cell):
    cells = [bert(cell), bert(cell, "inductor"), bert(cell, LONG)]
    shown, _, out = bar(cells, estimates={cells[0].id: 60.0}, launches=3)
    shown.bundle(bundle(*cells), 0)
    known = Figure(0.00406), Figure(0.00235, 1.728), Figure(0.00056, 7.2, slowed=True)
    for one, figure in zip(cells, known, strict=True):
        shown.figures(0, {one.id: figure})
    shown.figures(1, {cells[0].id: Figure(1.1028), cells[1].id: Figure(0.00731, 150.86)})
    assert out.file.getvalue().splitlines() == [
        "process 1/3: torch bert-base 1×128: eager 4.06 ms, inductor 2.35 ms (1.7×), provisional",
        f"process 1/3: torch bert-base 1×128: {LONG} 0.56 ms (7.2×, host slowed), provisional",
        "process 2/3: torch bert-base 1×128: eager 1,103 ms, inductor 7.31 ms (150×)",
    ]


def test_lines_stand_in_columns_whatever_is_in_them(cells, record):
    names = short(*cells)
    eager = line(finished(record, cells[0], mode="eager", latency_ms_median=0.0827), names).plain
    graph = line(finished(record, cells[1]), names).plain
    other = line(finished(record, cells[4], mode="eager", latency_ms_median=12345.0), names).plain
    assert {text.index(" ms") for text in (eager, graph, other)} == {eager.index(" ms")}
    assert {text.index(name) for text, name in ((eager, "bert-base"), (graph, "bert-base"), (other, "mlp"))} == {
        eager.index("bert-base")
    }


def test_what_is_too_long_is_cut_in_its_middle():
    assert fitted("torch inductor-max-autotune", 40) == "torch inductor-max-autotune".ljust(40)
    assert fitted("torch inductor-max-autotune-no-cudagraphs", 30) == "torch inductor-max…-cudagraphs"
    assert [fitted("abcdef", width) for width in (0, 1, 2, 3)] == ["", "…", "a…", "a…f"]


def test_what_follows_from_the_workload_is_not_repeated_in_every_line(cell):
    """bert-base is the library's, the MLP plain, and there is no other."""
    names = short(bert(cell), cell())
    assert names.shape(bert(cell).id) == "bert-base 1×128"
    assert names.shared.startswith("cpu, fp32, 2 threads; bert-base, library")
