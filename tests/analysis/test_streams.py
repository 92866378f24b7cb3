"""What streams say, on planted rows: totals, the calls from which a strategy pays, choices, fall-backs, words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from doubles.streams import planted, stream

from analysis import streams as analysis
from execution.streams import figures
from measurement.streams import CACHES, STRATEGIES, StreamJob, bounds, padded
from records import streams as rows
from records.streams import StreamRecord
from reports import rounds
from reports import streams as words
from reports.sections import streams as section


def by_name(records, caches="cold"):
    (cell,) = analysis.cells(records)
    return {arm.name: arm for arm in cell.with_caches(caches)}


def test_figures_of_a_stream_are_those_of_its_calls():
    seconds = [2.0] + [0.001] * 98 + [0.1]
    job = StreamJob("longest", (10,) * 100, (40,) * 100, (1, 3) * 50, 10, 40)
    found = figures(stream(seconds, setup_s=0.5), job, 0)
    assert found["shapes"] == 2
    assert found["total_s"] == pytest.approx(2.698) and found["longest_ms"] == 2000
    assert (found["p50_ms"], found["p99_ms"]) == pytest.approx((1.0, 100.0))
    assert found["padded_share"] == pytest.approx(0.75)
    assert found["tokens_per_s"] == pytest.approx(2 * 1000 / 2.698)
    assert found["memory_growth_bytes"] == 50 and found["flags"] is None


def test_first_calls_of_shapes_are_counted_beyond_later_calls():
    job = StreamJob("dynamic", (10, 11, 10, 11, 12, 10), (10, 11, 10, 11, 12, 10), (1,) * 6, 10, 12)
    assert figures(stream([9.0, 0.5, 0.1, 0.1, 0.3, 0.1]), job, 0)["new_shapes_s"] == pytest.approx(0.4 + 0.2)
    lengths = (7, *range(1, 101), *range(1, 101), *([5] * 200), 103)  # a call costs 1 ms a token; no shape is new
    alike = StreamJob("dynamic", lengths, lengths, (1,) * len(lengths), 1, 103)
    seconds = [9.0, *(1e-3 * length for length in lengths[1:])]
    assert figures(stream(seconds), alike, 0)["new_shapes_s"] == pytest.approx(0.003)  # 103 is compared with 100
    once = StreamJob("dynamic", (10, 11), (10, 11), (1, 1), 10, 11)
    assert figures(stream([9.0, 0.5]), once, 0)["new_shapes_s"] is None


def test_a_cuda_graph_is_recorded_on_the_second_call_of_a_shape():
    lengths = (10, 10, 10, 10, 11, 11, 11, 12, 12)
    seconds = [9.0, 0.5, 0.1, 0.3, 1.2, 0.6, 0.2, 1.2, 0.6]
    graphs = StreamJob("automatic-cuda-graphs", lengths, lengths, (1,) * 9, 10, 12)
    found = figures(stream(seconds), graphs, 3)
    assert found["later_ms"] == pytest.approx(200)  # the mean of 0.1 and 0.3, and 0.2; 12 takes the figure of 11
    assert found["new_shapes_s"] == pytest.approx(0.3 + 2 * (1.0 + 0.4)) and found["unseen_s"] == pytest.approx(3 * 1.4)


def test_a_stream_of_mostly_new_shapes_is_not_extrapolated():
    few = StreamJob("longest", (10, 11, 12, 10, 13), (10, 11, 12, 10, 13), (1,) * 5, 10, 13)
    found = figures(stream([9.0, 0.1, 0.1, 0.1, 0.1]), few, 2)
    assert found["later_ms"] is found["unseen_s"] is None
    base, known = planted("eager", 0.01, 0.01), planted("longest", 0.302, 0.002)
    (cell,) = analysis.cells([*base, replace(known[0], later_ms=None, unseen_s=None), *known[1:]])
    assert rounds.pays(cell.with_caches("cold")[1]) == "" and cell.choice("cold", 10_000) == ()
    assert words.choices(cell, "cold") == "With cold caches, for 1 call: eager; 100: longest."


def test_lengths_that_the_stream_lacks_cost_once():
    records = planted("eager", 0.01, 0.01) + planted("static", 0.3, 0.002)
    lacking = [replace(one, unseen_s=40.0) if one.strategy == "static" else one for one in records]
    assert by_name(lacking)["static"].pays == [
        (pytest.approx(38, rel=1e-6), pytest.approx(100, rel=1e-6)),
        (pytest.approx((40 + 0.298) / 0.008, rel=1e-6), math.inf),
    ]


def test_eager_mode_is_said_to_spend_time_on_new_shapes_where_it_does():
    found = planted("eager", 0.1, 0.01)
    new = [replace(record, new_shapes_s=0.25, shapes=20) for record in found]
    assert words.notes(*analysis.cells(new)) == ["The first calls of 19 new shapes cost eager mode 23 % of its time."]
    assert not words.notes(*analysis.cells(found))
    fused = [replace(record, device="gpu:0", dtype="bf16", cell=f"{record.cell},attention=fused") for record in new]
    assert "POLICY=torch-cudnn-attention=last" in words.notes(*analysis.cells(fused))[0]
    last = [replace(record, run_id="last", policies="torch-cudnn-attention=last") for record in fused]
    assert "POLICY" not in words.notes(*analysis.cells(last))[0]
    assert "POLICY" not in words.notes(*analysis.cells([replace(record, dtype="fp32") for record in fused]))[0]
    assert len(analysis.cells([*fused, *last])) == 2


def test_counters_that_differ_and_a_fall_back_are_flags():
    job = StreamJob("static", (10, 11), (10, 11), (1, 1), 10, 11)
    found = figures(stream([1.0, 0.1], reported=2, fell_back=1), job, 0)
    assert found["flags"] == "fell_back;miscounted" and found["fell_back"] == 2
    assert figures(stream([1.0, 0.1], reported=None), job, 0)["flags"] is None
    assert figures(stream([1.0, 0.1], right=False), job, 0)["status"] == "mismatch"


def test_a_strategy_pays_by_served_calls_and_then_by_usual_ones():
    eager, usual = planted("eager", 0.01, 0.01), {"longest": 2.0, "eager": 10.0}
    found = by_name(eager + planted("longest", 1.6, 0.002))["longest"]
    assert {one.strategy: one.later_ms for one in (eager[0], found.records[0])} == pytest.approx(usual)
    assert found.after(2).value == pytest.approx(1.602)
    assert found.after(1100).value == pytest.approx(1.6 + 1099 * 0.002)
    assert found.pays == [(pytest.approx((1.6 - 0.002) / 0.008, rel=1e-6), math.inf)]  # beyond 100 served calls
    served = by_name(eager + planted("longest", 0.302, 0.002))["longest"]
    assert served.pays == [(pytest.approx(38, rel=1e-6), math.inf)]


def test_arms_are_paired_by_round():
    found = by_name(planted("eager", 0.01, 0.01) + planted("longest", 0.302, 0.002))
    assert found["longest"].total.value == pytest.approx(0.5)
    assert found["longest"].ratio.value == pytest.approx(2.0)
    assert found["longest"].slower == 1


def test_a_choice_needs_an_interval():
    base = planted("eager", 0.01, 0.01, 0.01)
    (cell,) = analysis.cells(base + planted("longest", 0.3, 0.002, 0.01))
    assert cell.choice("cold", 100) == ("longest",)
    assert "use longest (padded to the longest)" in words.recommendation(cell, "cold")
    assert words.choices(cell, "cold") == "With cold caches, for 1 call: eager; 100 to 1,000,000: longest."
    (cell,) = analysis.cells(base + planted("longest", 0.3, 0.002, 0.01) + planted("marked", 0.3, 0.002, 0.011))
    assert set(cell.choice("cold", 100)) == {"longest", "marked"}
    assert "inconclusive between " in words.recommendation(cell, "cold")
    (cell,) = analysis.cells(base + planted("longest", 9.0, 0.002, 0.01))
    assert words.recommendation(cell, "cold").startswith("With cold caches stay with eager: ")
    (cell,) = analysis.cells(base[:2])
    assert words.recommendation(cell, "cold") == ""


def test_what_fell_back_or_is_wrong_is_no_choice():
    base = planted("eager", 0.01, 0.01, 0.01)
    (cell,) = analysis.cells(base + planted("static", 0.01, 0.001, 0.01, fell_back=8) + planted(
        "longest", 0.01, 0.001, 0.01, right=False))  # fmt: skip
    assert cell.choice("cold", 100) == ("eager",)
    assert "static runs eager mode's code for new lengths from call 9 on." in words.notes(cell)
    assert any(note.startswith("longest: mismatch") for note in words.notes(cell))


def test_a_strategy_that_is_wrong_in_some_processes_is_no_choice_with_any_caches():
    records = planted("eager", 0.01, 0.01, 0.01) + planted("eager", 0.01, 0.01, 0.01, caches="warm")
    cold = planted("longest", 0.01, 0.001, 0.01)
    records += planted("longest", 0.01, 0.001, 0.01, caches="warm") + cold[1:]
    (cell,) = analysis.cells(records + cold[:1])
    assert cell.choice("cold", 100) == cell.choice("warm", 100) == ("longest",)
    (cell,) = analysis.cells(records + planted("longest", 0.01, 0.001, rounds=1, right=False))
    assert cell.choice("cold", 100) == cell.choice("warm", 100) == ("eager",)
    assert any(note.startswith("longest: wrong in 1 of 5 processes") for note in words.notes(cell))


def test_eager_is_said_to_be_less_than_compared_graphs_alone():
    base = planted("eager", 0.01, 0.01, 0.01)
    (cell,) = analysis.cells(base + planted("static", 0.01, 0.02, 0.01) + planted("longest", 0.01, 0.02, fell_back=8))
    assert words.recommendation(cell, "cold").endswith(" s for the stream, less than static.")
    (cell,) = analysis.cells(base + planted("longest", 0.01, 0.02, fell_back=8))
    assert words.recommendation(cell, "cold").endswith(" s for the stream.")
    (cell,) = analysis.cells(base + planted("static", 0.01, 0.02, 0.01, rounds=2))
    assert words.recommendation(cell, "cold") == ""


def test_buckets_hold_every_length():
    assert bounds("powers", 100, ()) == [16, 32, 64, 100]
    assert bounds("multiples", 200, ()) == [64, 128, 192, 200]
    assert bounds("quantiles", 50, (5, 20, 50)) == [5, 20, 50]
    for strategy in STRATEGIES.values():
        to = padded(strategy, (1, 17, 64, 100), 100, (5, 20, 100))
        assert all(a >= b for a, b in zip(to, (1, 17, 64, 100), strict=True))
        assert (to == (1, 17, 64, 100)) == (not strategy.pads)
    assert padded(STRATEGIES["longest"], (1, 100), 100, ()) == (100, 100)


def test_records_are_read_as_they_were_written(tmp_path):
    records = planted("eager", 0.01, 0.01, rounds=2)
    for record in (*records, records[0]):
        rows.JOURNAL.append(tmp_path, record)
    assert rows.JOURNAL.read(tmp_path) == records
    rows.JOURNAL.write_csv(tmp_path, records)
    head, *body = (tmp_path / rows.JOURNAL.table).read_text().splitlines()
    assert len(body) == 2 and head.split(",")[:2] == ["schema_version", "run_id"] and "calls" not in head.split(",")


def test_the_block_has_ten_lines_of_table_and_the_page_a_chart():
    plain = [name for name in STRATEGIES if not name.endswith("graphs") and name != "polymorphic"]
    records = [
        record
        for caches in CACHES
        for place, name in enumerate(plain)
        for record in planted(name, 0.1 + place, 0.01 / (1 + place), 0.02, caches=caches)
    ]
    records += [
        StreamRecord(**{**vars(one), "status": "unsupported", "reason": "it needs a GPU", "total_s": None, "calls": ()})
        for one in planted("longest-cuda-graphs", 1.0, 1.0, rounds=1)
    ]
    found = analysis.cells(records)
    lines = words.WORDS.block(found[0])
    assert all(len(line) <= 80 for line in lines)
    first = next(place for place, line in enumerate(lines) if line.startswith("eager "))
    table = lines[first : first + words.MOST_ROWS - 1]
    assert [line.split()[0] for line in table] == words.strategies(found[0])
    assert any("longest-cuda-graphs: unsupported: it needs a GPU" in line for line in lines)
    page = section.html(found, "Streams", "make stream")
    assert page.count("<polyline") == len(plain) and page.count("<tr") == 2 * len(plain) + 1
    assert "NaN" not in page
