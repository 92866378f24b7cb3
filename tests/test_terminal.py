"""The table at the end of a run."""

from __future__ import annotations

import io

from rich.console import Console

from reports.terminal import counts, summary


def printed(records, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width)
    summary(records, console)
    return console.file.getvalue()


def speedup(value, low, high) -> dict:
    return {"speedup_vs_eager": value, "speedup_ci_low": low, "speedup_ci_high": high}


def test_eager_and_graph_stand_side_by_side(record):
    text = printed(
        [
            record(mode="graph", latency_ms_median=1.234, **speedup(2.0, 1.9, 2.1)),
            record(mode="eager", latency_ms_median=2.468),
            record(framework="beta", mode="eager", latency_ms_median=345.6, status="noisy"),
            record(framework="beta", mode="graph", status="crash", reason="It died.", latency_ms_median=None),
        ]
    )
    header = next(line for line in text.splitlines() if "eager" in line and "graph" in line and "shape" in line)
    assert header.index("eager") < header.index("graph")
    for part in ("2.47", "1.23", "2.00x", "1.90-2.10", "346~", "crash", "width=8, depth=2", "batch 4", "2 threads"):
        assert part in text
    assert "beta graph: crash: It died." in text
    assert "4 cells: 2 ok, 1 noisy, 1 crash" in text


def test_many_modes_get_a_row_each(record):
    records = [record(mode=f"mode-{i}", latency_ms_median=1.0 + i, **speedup(1.5, 1.4, 1.6)) for i in range(10)]
    text = printed(records)
    for i in range(10):
        row = next(line for line in text.splitlines() if f"mode-{i} " in line)
        assert "1.50x" in row
        assert "1.40-1.60" in row


def test_a_narrow_terminal_cuts_no_figure(record):
    modes = ("eager", "inductor-reduce-overhead", "inductor-max-autotune")
    records = [record(mode=m, latency_ms_median=12.34, **speedup(1.234, 1.456, 1.678)) for m in modes]
    assert "shape" in printed(records)
    assert all(mode in printed(records, width=80) for mode in modes)
    for width in (80, 60):
        assert printed(records, width).count("12.3") == 3
        assert printed(records, width).count("1.46-1.68") == 2


def test_a_missing_cell_is_blank_not_zero(record):
    records = [record(batch_size=1), record(batch_size=2), record(batch_size=2, mode="graph", latency_ms_median=7.0)]
    rows = [line for line in printed(records).splitlines() if "mlp plain" in line]
    assert "7" not in rows[0]
    assert "7" in rows[1]
    assert " 0 " not in rows[0]


def test_rows_are_in_order_of_size_in_whichever_order_they_were_done(record):
    rows = printed([record(batch_size=batch) for batch in (16, 4, 128, 1)]).splitlines()
    sizes = [row.split("batch ")[1].split(",")[0] for row in rows if "batch " in row]
    assert sizes == ["1", "4", "16", "128"]


def test_a_speedup_has_two_decimals_below_ten_and_three_digits_above(record):
    text = printed(
        [record(mode="graph", **speedup(9.876, 9.0, 12.345)), record(mode="other", **speedup(583.07, 544.63, 1608.8))]
    )
    for part in ("9.88x", "9.00-12.3", "583x", "545-1,609"):
        assert part in text


def test_counts_without_noise_say_nothing_of_it(record):
    assert counts([record()]) == "1 cells: 1 ok"


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
        [cell | {"status": "mismatch"} if cell["mode"] != "more" else cell for cell in cells]
    )
    unknown = {"other_load_cores": None, "steal_share": None}
    assert "not the same" not in counts([cell | unknown for cell in cells])
