"""The table at the end of a run."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

import runner
from reports import terminal
from reports.terminal import counts, summary


def printed(records, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width)
    summary(records, console)
    return console.file.getvalue()


def speedup(value, low, high) -> dict:
    return {"speedup_vs_eager": value, "speedup_ci_low": low, "speedup_ci_high": high}


def test_without_any_figure_there_is_no_table(record):
    failed = record(status="error", reason="KeyError: 'x' (net.py:3)", latency_ms_median=None)
    assert printed([failed]) == "1 cell: 1 error\nalpha eager: error: KeyError: 'x' (net.py:3)\n"


def test_eager_and_graph_have_a_row_each(record):
    text = printed(
        [
            record(mode="graph", latency_ms_median=1.234, **speedup(2.0, 1.9, 2.1)),
            record(mode="eager", latency_ms_median=2.468),
            record(framework="beta", mode="eager", latency_ms_median=345.6),
            record(framework="beta", mode="graph", status="crash", reason="It died.", latency_ms_median=None),
        ]
    )
    assert text.index("alpha      eager") < text.index("alpha      graph")
    for part in (
        "2.47",
        "1.23*",
        "2.00×▲",
        "1.90 to 2.10",
        "346",
        "crash",
        "width=8, depth=2",
        "batch 4",
        "2 threads",
    ):
        assert part in text
    assert "beta graph: crash: It died." in text
    assert "4 cells: 3 ok, 1 crash" in text


def test_many_modes_get_a_row_each(record):
    records = [record(mode=f"mode-{i}", latency_ms_median=1.0 + i, **speedup(1.5, 1.4, 1.6)) for i in range(10)]
    text = printed(records)
    for i in range(10):
        row = next(line for line in text.splitlines() if f"mode-{i} " in line)
        assert "1.50×" in row
        assert "1.40 to 1.60" in row


def test_a_narrow_terminal_cuts_no_figure(record):
    modes = ("eager", "inductor-reduce-overhead", "inductor-max-autotune")
    records = [record(mode=m, latency_ms_median=12.34, **speedup(1.234, 1.456, 1.678)) for m in modes]
    assert all(mode in printed(records, width=80) for mode in modes)
    for width in (80, 60):
        assert printed(records, width).count("12.3") == 3
        assert printed(records, width).count("1.46 to 1.68") == 2


def test_rows_are_in_order_of_size_in_whichever_order_they_were_done(record):
    rows = printed([record(batch_size=batch) for batch in (16, 4, 128, 1)]).splitlines()
    sizes = [row.split("batch ")[1].split(",")[0] for row in rows if "batch " in row]
    assert sizes == ["1", "4", "16", "128"]


def test_a_speedup_has_two_decimals_below_ten_and_three_digits_above(record):
    text = printed(
        [record(mode="graph", **speedup(9.876, 9.0, 12.345)), record(mode="other", **speedup(583.07, 544.63, 1608.8))]
    )
    for part in ("9.88×", "9.00 to 12.3", "583×", "545 to 1,609"):
        assert part in text


def test_counts_of_good_cells_say_no_more(record):
    assert counts([record()]) == "1 cell: 1 ok"


def test_a_machine_that_was_not_the_same_for_all_frameworks_is_told(record):
    quiet = {"other_load_cores": 0.04, "steal_share": 0.0}
    cells = [record(framework=f, mode=m, **quiet) for f in ("alpha", "beta") for m in ("eager", "graph")]
    assert "not the same" not in counts(cells)
    taken = {"other_load_cores": 0.1, "steal_share": 0.55}
    cells += [record(framework="gamma", mode=m, **taken) for m in ("eager", "graph", "more")]
    assert "took 0.04 from alpha, 0.04 from beta, 0.65 from gamma (cores," in counts(cells)
    assert "not the same" not in counts(cells[4:])  # one framework: nothing to compare
    assert "not the same" not in counts([cell | {"device": "gpu:0"} for cell in cells])
    assert "not the same" not in counts(
        [cell | {"status": "mismatch"} if cell.mode != "more" else cell for cell in cells]
    )
    unknown = {"other_load_cores": None, "steal_share": None}
    assert "not the same" not in counts([cell | unknown for cell in cells])


def test_the_table_of_a_narrow_terminal_has_headers_that_fit_its_columns(record):
    modes = ("eager", "inductor-reduce-overhead", "inductor-max-autotune", "inductor-max-autotune-no-cudagraphs")
    records = [record(mode=m, latency_ms_median=12.34, **speedup(1.234, 1.156, 1.678)) for m in modes]
    for width in (80, 120):
        lines = printed(records, width).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].startswith("Latency in ms (median)")
    lines = printed(records, 80).splitlines()
    assert lines[1].split() == ["framework", "mode", "ms", "speedup", "interval"]
    assert lines[3] == "mlp plain, batch 4, width=8, depth=2, cpu fp32, 2 threads"  # a line of its own
    for head, figure in (("ms", "12.3*"), ("speedup", "1.23×▲"), ("interval", "1.16 to 1.68")):
        end = lines[1].index(head) + len(head)
        assert lines[5][:end].endswith(figure), lines[5]  # right under its name


def interval(median, low, high) -> dict:
    return {"latency_ms_median": median, "latency_ms_ci_low": low, "latency_ms_ci_high": high}


def test_the_fastest_is_marked_by_latency_and_what_is_not_told_from_it_too(record):
    """Whatever the speedups say: those of different frameworks are no ranking."""
    slow = record(framework="beta", mode="graph", **interval(5.0, 4.9, 5.1), **speedup(400.0, 390, 410))
    first, near = (
        record(**interval(2.0, 1.9, 2.1)),
        record(mode="graph", **interval(2.1, 2.05, 2.2), **speedup(1, 1, 1)),
    )
    assert terminal.fastest([slow, first, near]) == [first, near]
    text = printed([slow, first, near])
    assert "2*" in text
    assert "2.1*" in text
    assert "5*" not in text
    assert "* fastest, or not distinguishable from it" in text


def test_nothing_is_fastest_alone_across_machines_or_of_other_implementations(record):
    one, other = (record(mode=mode, machine_id=name) for mode, name in (("eager", "a"), ("graph", "b")))
    assert terminal.fastest([one]) == []
    assert terminal.fastest([one, other]) == []
    assert "*" not in printed([record(), record(mode="graph", implementation="library", latency_ms_median=1.0)])
    mismatch = record(mode="graph", status="mismatch", reason="Wrong.", latency_ms_median=0.1)
    faster = record(mode="other", machine_id="a", latency_ms_median=1.0)
    assert terminal.fastest([one, mismatch, faster])[0] is faster


def test_conditions_and_precision_have_a_line_each(record):
    records = [record(batch_size=b, flags="drift;other_load;steal" if b < 3 else None) for b in (1, 2, 3, 4)]
    assert counts(records).splitlines() == ["4 cells: 4 ok", "Conditions: other_load (2), steal (2)"]
    wide = {"target_half_width": 0.1, **interval(2.0, 1.7, 2.3)}
    text = counts([record(target_half_width=0.1, **interval(2.0, 1.9, 2.1)), record(batch_size=2, **wide)])
    assert text.splitlines()[1].startswith("1 of 2 miss the profile's half-width")


def test_a_model_that_is_partly_in_graphs_says_what_is_not(record):
    text = counts([record(mode="graph", flags="partial", reason="1 graph break: model.py:3 (item).")])
    assert "alpha graph: partial: 1 graph break: model.py:3 (item)." in text


def test_what_was_said_before_is_not_said_again(record):
    quiet, taken = ({"other_load_cores": cores, "steal_share": 0.0} for cores in (0.0, 0.9))
    records = [record(framework="alpha", **quiet), record(framework="beta", **taken)]
    (sentence,) = [text for text in counts(records).splitlines() if "not the same" in text]
    assert sentence not in counts(records, printed=[sentence])


def test_a_flag_of_the_cell_itself_is_named_at_the_end(record):
    text = counts([record(flags="other_load;program_differs"), record(batch_size=2, flags="program_differs")])
    assert "program_differs (2): " in text


def test_a_failure_names_its_modes_and_its_workload_where_there_are_several(record):
    failed = [record(mode=mode, status="error", reason="net.py:3: no.") for mode in ("eager", "graph")]
    assert "alpha eager, graph: error: net.py:3: no." in counts(failed)
    others = [cell | {"workload": "net.py", "reason": "Yes."} for cell in failed]
    lines = counts([*failed, *others, record(mode="more", workload="net.py", status="error", reason="Yes.")]).split(
        "\n"
    )
    assert lines[-2:] == [
        "alpha eager, graph, more of net.py: error: Yes.",
        "alpha eager, graph of mlp: error: net.py:3: no.",
    ]


def test_a_file_is_as_wide_as_columns_says(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal.console().width == 120
    for given, width in (("80", 80), ("200", 200), ("", 120), ("x", 120)):
        monkeypatch.setenv("COLUMNS", given)
        assert terminal.console().width == width


@pytest.mark.parametrize(
    ("low", "high", "mark"), [(1.01, 1.2, "▲"), (0.8, 0.99, "▼"), (0.9, 1.1, ""), (None, None, "")]
)
def test_a_speedup_has_a_mark_where_its_interval_tells(record, low, high, mark):
    text = printed([record(mode="graph", **speedup(1.0, low, high))])
    assert f"1.00×{mark} " in text


def test_a_report_says_each_sentence_once(record, tmp_path, capsys):
    quiet, taken = ({"other_load_cores": cores, "steal_share": 0.0} for cores in (0.0, 0.9))
    records = [record(framework="alpha", run_id="a", **quiet), record(framework="beta", run_id="a", **taken)]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(one.to_row()) + "\n" for one in records))
    assert runner.main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("was not the same for all") == 1
