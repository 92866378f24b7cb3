"""The block at the end of a run: the setting once, a row a framework, what follows from it, within 80 columns."""

from __future__ import annotations

import io
import json

import pytest
from conftest import ROOT
from rich.console import Console

import runner
from analysis.answers import by_setting
from analysis.modes import labels
from analysis.points import COLUMNS_READ, Points
from commands import report
from records.record import SCHEMA_VERSION
from reports import terminal


def printed(records, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    terminal.closing(by_setting(Points(records), labels()), records, console)
    return console.file.getvalue()


def speedup(value, low, high) -> dict:
    sign = "faster" if low > 1 else "inconclusive"
    return {"speedup_vs_eager": value, "speedup_ci_low": low, "speedup_ci_high": high, "sign": sign}


def cells(record, **columns) -> list:
    ends = {"latency_ms_ci_low": 2.419, "latency_ms_ci_high": 2.517}
    eager = record(mode="eager", latency_ms_median=2.468, **ends, **columns)
    return [eager, record(mode="graph", latency_ms_median=1.234, **speedup(2.0, 1.9, 2.1), **columns)]


def test_without_any_figure_there_are_reasons_alone(record):
    failed = record(status="error", reason="KeyError: 'x' (net.py:3)", latency_ms_median=None)
    assert printed([failed]) == "1 of 1 cell without figures:\nalpha eager: error: KeyError: 'x' (net.py:3)\n"


def test_the_setting_is_said_once_and_each_framework_has_a_row(record):
    beta = record(framework="beta", mode="eager", latency_ms_median=345.6)
    crash = record(framework="beta", mode="graph", status="crash", reason="It died.", latency_ms_median=None)
    text = printed([*cells(record), beta, crash])
    assert text.count("fp32") == 1 and text.count("2 threads") == 1
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "alpha graph 1.23 2.00× ±5 %" in rows and "beta eager 346" in rows
    assert "Fastest: alpha graph or beta eager" in text and "Also: alpha eager 2.47 ms." in text
    assert text.endswith("1 of 4 cells without figures:\nbeta graph: crash: It died.\n")
    assert text.index("width 8, depth 2, batch 4") < text.index("alpha  ")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("run", ["two-cores", "h200-c-short", "schema-7"])
def test_measured_runs_fit_and_keep_every_digit(run, width):
    records = report.read([str(ROOT / "tests/runs" / run)], COLUMNS_READ).records
    text = printed(records, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text.replace("{…}", "") and text.count("  ±  ") >= 1 and text.count("Trust:") == 1
    assert ("Type " in text) == (width == 80)  # what to type stands in the rows where there is room


def test_shapes_stand_in_order_of_size_and_very_many_are_counted(record):
    rows = printed([record(batch_size=batch) for batch in (16, 4, 128, 1)]).splitlines()
    assert [row.rpartition("batch ")[2].split()[0] for row in rows if "batch " in row] == ["1", "4", "16", "128"]
    many = printed([record(batch_size=batch) for batch in range(1, terminal.MOST_SHAPES + 3)])
    assert "2 more shapes in report.html." in many


def test_bounds_and_a_slower_core_are_said_in_a_line_each(record):
    eager, graph = cells(record)
    eager |= {"bound_replay": 7.6, "bound_roofline": 11.04, "host_ms_in_loops": 8.0}
    text = printed([eager, graph], 120)
    assert "Bounds: alpha 11× for any graph (roofline), 7.60× for a replay of eager's kernels." in text
    assert "alpha graph: 2× here; on a core half as fast about 4×." in text
    assert "possible speedup" not in printed(cells(record)) and "half as fast" not in printed(cells(record))


def test_a_speedup_on_a_slowed_host_is_no_headline(record):
    eager, graph = cells(record)
    text = printed([eager, graph | {"schema_version": SCHEMA_VERSION, "flags": "host_slowed"}])
    assert "host slowed" in text and "2.00×" not in text


def test_conditions_are_one_line(record):
    rows = cells(record)
    rows[0] |= {"flags": "other_load;steal"}
    rows[1] |= {"flags": "steal;drift"}
    line = printed(rows, 200).rpartition("Trust")[2]
    assert "other programs in 1, steal in 2 of 2 cells." in " ".join(line.split()) and "drift" not in line


def test_a_machine_that_was_not_the_same_for_all_frameworks_is_named(record):
    quiet = {"other_load_cores": 0.04, "steal_share": 0.0}
    rows = [record(framework=f, mode=m, **quiet) for f in ("alpha", "beta") for m in ("eager", "graph")]
    assert "different load" not in printed(rows)
    taken = {"other_load_cores": 0.1, "steal_share": 0.55}
    rows += [record(framework="gamma", mode=m, **taken) for m in ("eager", "graph", "more")]
    assert "took 0.04 from alpha, 0.04 from beta, 0.65 from gamma" in " ".join(printed(rows).split())


def test_a_failure_names_its_modes_and_its_workload_where_there_are_several(record):
    failed = [record(mode=mode, status="error", reason="net.py:3: no.") for mode in ("eager", "graph")]
    assert terminal.failures(failed) == ["alpha eager, graph: error: net.py:3: no."]
    others = [cell | {"workload": "net.py", "reason": "Yes."} for cell in failed]
    more = record(mode="more", workload="net.py", status="error", reason="Yes.")
    assert terminal.failures([*failed, *others, more]) == [
        "alpha eager, graph, more of net.py: error: Yes.",
        "alpha eager, graph of mlp: error: net.py:3: no.",
    ]


def test_a_finished_cell_is_a_line(record):
    eager, graph = cells(record)
    assert terminal.in_a_line(eager).plain == "    2.47 ms ±2 %"
    assert terminal.in_a_line(graph | {"flags": "steal;recompiled"}).plain.split() == [
        *("1.23", "ms", "2.00×", "±5", "%", "recompiled")
    ]
    assert terminal.in_a_line(eager | {"status": "crash"}).plain == "crash"


def test_a_file_is_as_wide_as_columns_says(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal.console().width == 120
    for given, width in (("80", 80), ("200", 200), ("", 120), ("x", 120)):
        monkeypatch.setenv("COLUMNS", given)
        assert terminal.console().width == width


def test_a_report_says_each_sentence_once(record, tmp_path, capsys):
    quiet, taken = ({"other_load_cores": cores, "steal_share": 0.0} for cores in (0.0, 0.9))
    records = [record(framework="alpha", run_id="a", **quiet), record(framework="beta", run_id="a", **taken)]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(one.to_row()) + "\n" for one in records))
    assert runner.main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("had different load for each framework") == 1
