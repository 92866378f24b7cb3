"""What records of a run say together: peaks of the machine, and what every cell's time is spent on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.reported import rows_of

from execution import peak_benchmarks
from measurement.cells import Cell, Effective
from measurement.peaks import Peaks, may_be_cached
from measurement.protocol import Hello
from measurement.statistics import Interval
from records import costs, recordfile
from records import record as schema
from records.cell_result import CellResult
from records.estimates import independent_ratio
from records.record import Record
from records.rooflines import changes, completed, doubled
from records.runs import Run


def record(framework="torch", mode="eager", workload="bert-base", batch=1, ms=100.0, **changes) -> Record:
    """A measured cell of a second's work for 10 % of its time, by its framework's peaks of 1 TFLOP/s and 10 GB/s."""
    return Record.from_row({
        "schema_version": schema.SCHEMA_VERSION, "run_id": "run", "machine_id": "m", "device": "cpu",
        "device_name": "A processor", "dtype": "fp32", "threads": 1, "framework": framework, "mode": mode,
        "workload": workload, "implementation": "plain", "pass": "inference", "status": "ok",
        "cell": f"{framework}/{workload}/plain/inference/cpu/fp32/threads=1/batch_size={batch},seq_len=8/{mode}",
        "latency_ms_median": ms, "latency_ms_min": ms, "latency_ms_ci_low": ms, "latency_ms_ci_high": ms,
        "flops": 10**10, "bytes": 10**8, "unfused_bytes": 10**9, "moved_bytes": 10**8, "transcendentals": 0,
        "framework_peak_tflops": 1.0, "framework_peak_gb_per_s": 10.0, **changes,
    })  # fmt: skip


def test_the_machine_s_peak_is_the_best_of_any_framework_and_says_whose():
    """Paddle's eager addition reaches 3 GB/s where torch's reaches 19."""
    paddle = record("paddle", framework_peak_tflops=1.2, framework_peak_gb_per_s=3.0, moved_bytes=200_000_000, ms=55.6)
    torch = record("torch", framework_peak_tflops=0.9, framework_peak_gb_per_s=19.0)
    alone = completed([paddle])[0]
    assert alone.bottleneck == "bandwidth"
    assert alone.flags == "roofline_exceeded"
    beside = completed([paddle, torch])[0]
    assert (beside.peak_tflops, beside.peak_gb_per_s) == (1.2, 19.0)
    assert (beside.framework_peak_tflops, beside.framework_peak_gb_per_s) == (1.2, 3.0)
    assert "peak_gb_per_s: torch eager, stream" in beside.peak_source
    assert beside.explained_share == pytest.approx(0.2 / 19 * 1e3 / 55.6)
    assert beside.bottleneck == "latency"  # slow operators, not the memory
    assert beside.flags is None


@pytest.mark.parametrize("other", [{"dtype": "bf16"}, {"threads": 2}, {"device": "gpu:0"}, {"machine_id": "n"}])
def test_peaks_of_other_kinds_do_not_count(other):
    mine = completed([record(), record("jax", framework_peak_tflops=9.0, **other)])[0]
    assert mine.peak_tflops == 1.0


def test_mfu_compares_across_frameworks():
    """The framework with the worst product is not flattered by it."""
    slow, fast = completed([record("jax", framework_peak_tflops=0.5, ms=20), record("torch", ms=20)])
    assert slow.mfu_pct == fast.mfu_pct == pytest.approx(50)


def test_a_cell_that_is_a_peak_benchmark_raises_the_peak_and_cannot_exceed_it():
    product = record("jax", "jit", workload="matmul", ms=8, moved_bytes=10**7)
    other, itself = completed([record(), product])
    assert other.peak_tflops == itself.peak_tflops == pytest.approx(1.25)
    assert "jax jit, matmul" in other.peak_source
    assert itself.flags is None
    (wrong,) = completed([product | {"status": "mismatch"}])
    assert wrong.peak_tflops == 1.0  # what computes something else is no peak


def test_a_chain_that_its_compiler_merges_is_no_peak_of_the_memory():
    chain = {"workload": "pointwise-chain", "ms": 5.0}
    for mode, peak in (("function", 10.0), ("function-unoptimized", 20.0)):
        assert completed([record("tensorflow", mode, **chain)])[0].peak_gb_per_s == pytest.approx(peak)


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({}, 10.0),  # 10 ms of arithmetic in a call of 100
        ({"bytes": 2 * 10**8}, 5.0),  # 20 ms of traffic
        ({"bytes": 6 * 10**7, "flops": 10**9}, 100.0),  # bytes that the caches may hold count for nothing
        ({"computes_in": "bfloat16;float32", "bytes": 2 * 10**8}, 5.0),
        ({"computes_in": "bfloat16;float32", "bytes": 1}, None),  # no rate is known of what it computes in
        ({"framework_peak_tflops": 100.0, "framework_peak_gb_per_s": 1e4}, 1000.0),
    ],
)
def test_every_mode_is_bounded_by_the_roofline_of_its_work_at_eager_s_time(changes, bound):
    eager, graph = completed([record(**changes), record(mode="graph", ms=50.0, **changes)])
    assert eager.bound_roofline == graph.bound_roofline == pytest.approx(bound)


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({"ms": 10.1}, 10.0),
        ({}, None),
        ({"status": "mismatch"}, 10.0),
        ({"machine_id": "n"}, 10.0),
        ({"framework": "tensorflow", "mode": "function", "workload": "pointwise-chain"}, 10.0),  # Grappler merges it
    ],
)
def test_a_right_cell_faster_than_the_peaks_allow_leaves_its_machine_without_bounds(changes, bound):
    fast = record(**{"mode": "graph", "workload": "other", "ms": 5.0} | changes)  # 10 ms of arithmetic
    assert completed([record(), fast])[0].bound_roofline == bound


def test_the_roofline_takes_the_data_sheet_s_rates_or_higher_ones_that_were_measured():
    gpu = {"device": "gpu:0", "device_name": "NVIDIA H200", "bytes": 1, "flops": 67 * 10**9}
    ((sheet,), (measured,)) = (completed([record(**gpu, framework_peak_tflops=rate)]) for rate in (50.0, 670.0))
    assert (sheet.bound_roofline, measured.bound_roofline) == pytest.approx((100.0, 1000.0))
    (tf32,) = completed([record(**gpu, tf32=True)])
    assert tf32.bound_roofline == pytest.approx(100 * 494.5 / 67)


@pytest.mark.parametrize("changes", [{"status": "mismatch"}, {"framework": "jax"}, {"batch": 2}, {"mode": "other"}])
def test_without_its_own_eager_mode_a_graph_has_no_bound(changes):
    assert completed([record(**changes), record(mode="graph")])[1].bound_roofline is None


# A token of GPT-2 124M on two cores at torch's own rates.
DECODE = dict(
    workload="gpt2-124m", flops=252_301_824, bytes=504_064_520, moved_bytes=505_990_664, ms=40.8,
    bytes_by_class="matmul=495066624;attention=9658368;copy=153608", framework_peak_tflops=0.192,
    framework_peak_gb_per_s=41.2, framework_peak_cached_gb_per_s=81.8, framework_peak_matvec_gb_per_s=11.0,
)  # fmt: skip


def regime_of(**changes) -> str:
    return completed([record(**(DECODE | changes))])[0].bottleneck


def test_time_of_products_of_one_row_is_no_overhead():
    assert regime_of() == "latency"
    assert regime_of(framework_peak_matvec_gb_per_s=41.2) == "overhead"  # such products would take 12 of the 41 ms
    assert regime_of(framework_peak_matvec_gb_per_s=None) == "overhead"  # recorded before they were measured
    assert regime_of(ms=23.5) == "bandwidth"  # XLA's
    assert regime_of(ms=300.0) == "overhead"


def test_a_tiny_model_is_overhead_and_a_large_product_compute_whatever_one_row_takes():
    tiny = dict(workload="mlp", flops=17_000, bytes=34_000, moved_bytes=36_000, bytes_by_class="matmul=33792")
    assert regime_of(**tiny, ms=0.02) == "overhead"  # its products 0.003 ms of it, though they are in the caches
    large = dict(flops=17_179_869_184, bytes=50_331_648, moved_bytes=50_331_648, bytes_by_class="matmul=50331648")
    assert regime_of(**large, workload="matmul", ms=100.0) == "compute"
    additions = dict(flops=1000, bytes=8, moved_bytes=12_000, bytes_by_class="pointwise=12000")
    assert regime_of(**additions, workload="op-overhead", ms=1.13) == "overhead"


def test_of_a_user_s_own_model_all_that_has_to_move_counts_as_products_bytes():
    own = dict(workload="model.py:Net", bytes_by_class="counted=505990664")
    assert regime_of(**own, counted_by="torch.utils.flop_counter") == "latency"
    assert regime_of(**own) == "overhead"


def test_a_product_of_one_row_may_show_the_memory_s_peak():
    """Paddle's addition reaches 4 GB/s, which its products pass: no call exceeds a roof that was seen exceeded."""
    (paddle,) = completed([record("paddle", **DECODE | {"framework_peak_gb_per_s": 4.4, "ms": 46.5})])
    assert (paddle.peak_gb_per_s, paddle.bottleneck, paddle.flags) == (11.0, "bandwidth", None)
    assert "peak_gb_per_s: paddle eager, matvec" in paddle.peak_source


def test_products_of_one_row_are_measured_last_with_weights_that_no_cache_holds(report):
    cell = Cell("numpy", "mlp", "plain", "inference", "cpu", "fp32", 1, (("batch_size", 1),), "eager")
    groups = peak_benchmarks.groups_for(cell)
    assert [group.cells[0].workload for group in groups] == ["matmul", "stream", "stream", "fused-cos", "matvec"]
    on_gpu = peak_benchmarks.groups_for(replace(cell, framework="torch", device="gpu:0"))
    assert len(on_gpu) == len(groups)
    for last in (groups[-1].cells[0], on_gpu[-1].cells[0]):
        assert last.workload == "matvec"
        assert not may_be_cached(costs.cost_of(replace(last, dtype="bf16")).compulsory_bytes, last.device)
    told = [CellResult(group.cells[0], reports=[report((2.0, 1.0))]) for group in groups]
    assert peak_benchmarks.peaks_from(told).matvec_bytes_per_s == 4 * (6144 * 6144 + 2 * 6144)
    assert peak_benchmarks.peaks_from(told[:-1]).matvec_bytes_per_s is None


@pytest.fixture
def kept(report, tmp_path, monkeypatch):
    """Keep peaks of a cell, with what disturbed them, and return where they lie."""
    monkeypatch.setattr(peak_benchmarks, "CACHE", tmp_path)
    cell = Cell("numpy", "mlp", "plain", "inference", "cpu", "fp32", 1, (("batch_size", 1),), "eager")

    def keep(noise: dict | None = None) -> tuple[Cell, list[Path]]:
        hello = Hello({"numpy": "2.0"}, Effective())
        told = [CellResult(cell, reports=[report(noise=noise)], hello=hello)]
        peak_benchmarks.keep(cell, "a machine", {}, told, Peaks(1e12, 1e10, "measured here"))
        return cell, list(tmp_path.glob("*.json"))

    return keep


def test_peaks_are_kept_for_later_runs_of_the_same_machine_and_settings(kept):
    cell, _ = kept()
    assert peak_benchmarks.kept(cell, "a machine", {}) == peak_benchmarks.Kept(
        Peaks(1e12, 1e10, "measured here"), {"numpy": "2.0"}
    )
    for other in (replace(cell, threads=2), replace(cell, dtype="bf16")):
        assert peak_benchmarks.kept(other, "a machine", {}) is None
    assert peak_benchmarks.kept(cell, "another", {}) is None
    assert peak_benchmarks.kept(cell, "a machine", {"threads": "users"}) is None


@pytest.mark.parametrize("content", ["", "[]", '{"peaks": {"flops_per_s": -1, "bytes_per_s": 1, "source": ""}}'])
def test_a_file_without_rates_holds_no_peaks(kept, content):
    cell, (path,) = kept()
    path.write_text(content)
    assert peak_benchmarks.kept(cell, "a machine", {}) is None


@pytest.mark.parametrize("noise", [{"other_load_cores": 0.2}, {"steal_share": 0.02}])
def test_peaks_of_a_busy_machine_are_not_kept(kept, noise):
    assert kept(noise)[1] == []


def test_a_small_vector_is_no_peak_of_the_memory():
    (peaks,) = completed([record(workload="stream", bytes=10**6, moved_bytes=10**6, ms=0.01)])
    assert peaks.peak_gb_per_s == 10.0
    assert peaks.peak_cached_gb_per_s == pytest.approx(100.0)


def test_what_fits_the_caches_is_not_held_against_the_memory_s_bandwidth():
    small = dict(bytes=8_000_000, moved_bytes=8_000_000, ms=0.5, flops=10**6, framework_peak_cached_gb_per_s=50.0)
    assert completed([record(**small)])[0].explained_share == pytest.approx(0.32)
    large = {**small, "bytes": 80_000_000}
    assert completed([record(**large)])[0].flags == "roofline_exceeded"


def test_growth_is_known_where_both_batches_are_whichever_was_first():
    one, two = record(batch=1, ms=10), record(batch=2, ms=10.5)
    for order in ([one, two], [two, one]):
        growths = {row.cell: row.batch_doubling_growth for row in completed(order)}
        assert growths == {one.cell: pytest.approx(0.05), two.cell: None}


def test_a_batch_of_one_machine_is_no_double_of_another_s():
    """As in a run whose slots are nodes; how fast a node is would count as what the batch adds."""
    one, two = record(batch=1, ms=10, machine_id="a"), record(batch=2, ms=10.5, machine_id="b")
    assert [row.batch_doubling_growth for row in completed([one, two])] == [None, None]
    again = record(batch=2, ms=11, machine_id="a")
    assert [row.batch_doubling_growth for row in completed([one, again, two])] == [pytest.approx(0.1), None, None]


def test_growth_tells_overhead_only_where_the_roofline_grows_and_noise_does_not_hide_it():
    one = record(batch=1, ms=20)
    grown = record(batch=2, ms=20.4, flops=2 * 10**10)
    assert completed([one, record(batch=2, ms=30, flops=2 * 10**10)])[0].bottleneck == "compute"
    assert completed([one, grown])[0].bottleneck == "overhead"
    assert completed([one, grown | {"latency_ms_ci_high": 25.0}])[0].bottleneck == "compute"
    weights = dict(flops=10**6, bytes=10**8, moved_bytes=10**8)  # twice the batch adds 1 % of traffic
    twice = record(batch=2, ms=20.4, **weights | {"moved_bytes": 101 * 10**6})
    assert completed([one | weights, twice])[0].bottleneck == "bandwidth"


def test_workloads_without_batches_are_not_doubled():
    assert doubled("torch/stream/plain/inference/cpu/fp32/threads=1/elements=5/eager") is None
    assert doubled("torch/mlp/x/batch_size=12,width=8/eager") == "torch/mlp/x/batch_size=24,width=8/eager"


def test_records_of_earlier_versions_and_failures_stay_as_they_are():
    old = record(schema_version=3, peak_tflops=0.06, regime="mixed", moved_bytes=None)
    failed = record() | {"status": "oom", "latency_ms_median": None}
    assert rows_of(completed([old, failed])) == rows_of([old, failed])


@pytest.mark.parametrize("missing", ["device", "flops", "bytes", "moved_bytes"])
def test_what_is_left_of_a_damaged_record_stays_as_it_is(missing):
    damaged = record() | {missing: None}
    assert rows_of(completed([damaged, record("jax")])[:1]) == rows_of([damaged])
    assert damaged.cell not in changes(lambda: [damaged, record("jax")])


@pytest.mark.parametrize(
    ("peaks", "device", "flagged"),
    [
        ({"framework_peak_tflops": 68.0}, "NVIDIA H200", True),
        ({"framework_peak_gb_per_s": 4801.0}, "NVIDIA H200", True),
        ({"framework_peak_tflops": 66.0, "framework_peak_gb_per_s": 4799.0}, "NVIDIA H200", False),
        ({"framework_peak_tflops": 68.0}, "NVIDIA GH200 480GB", False),
    ],
)
def test_a_measured_peak_above_the_data_sheet_is_flagged(peaks, device, flagged):
    (row,) = completed([record(device="gpu:0", device_name=device, **peaks)])
    assert ("peak_above_datasheet" in (row.flags or "").split(";")) == flagged


def test_completing_twice_changes_nothing():
    once = completed([record(flags="drift"), record("jax", ms=5)])
    assert once[1].flags == "roofline_exceeded"
    assert rows_of(completed(once)) == rows_of(once)


def test_records_and_table_agree_after_a_later_framework_reached_a_higher_peak(tmp_path):
    """As a run goes on, or is resumed: the first framework's records are brought up to date with the second's."""
    run = Run(tmp_path)
    run.append_record(record("paddle", framework_peak_gb_per_s=3.0))
    run.write_csv()
    assert run.records()[0].peak_gb_per_s == 3.0
    run.append_record(record("torch", framework_peak_gb_per_s=19.0))
    run.write_csv()
    lines = [json.loads(line) for line in run.records_path.read_text().splitlines()]
    assert [line["peak_gb_per_s"] for line in lines] == [19.0, 19.0]
    assert list(lines[0]) == list(schema.NAMES)
    assert rows_of(recordfile.load(run.csv_path).records) == rows_of(recordfile.load(run.records_path).records)
    assert run.finished() == {line["cell"] for line in lines}


def doubled_cosines() -> list[Record]:
    """A cell and its double, twice the cosines in the same time: without those its roofline hardly grows."""
    cosines = dict(flops=10**8, moved_bytes=10**7, framework_peak_gtranscendentals_per_s=1.0)
    one = record(batch=1, ms=20.0, transcendentals=10**7, **cosines)
    return [one, record(batch=2, ms=20.4, transcendentals=2 * 10**7, **cosines)]


def whole_run() -> list[Record]:
    """Records of a run as they come, and a pair of another machine's."""
    made = ("peak_tflops", "peak_gb_per_s", "mfu_pct", "regime", "flags")
    path = ROOT / "tests/runs/two-cores/records.jsonl"
    return [record | dict.fromkeys(made) for record in (*recordfile.load(path).records, *doubled_cosines())]


def test_what_changes_is_what_judging_whole_records_makes():
    records = whole_run()
    changed = changes(lambda: iter(records))
    assert {"regime", "mfu_pct"} <= set().union(*changed.values())
    judged = completed(records)
    assert [row.to_row() | changed.get(row.cell, {}) for row in records] == rows_of(judged)
    assert [row.bottleneck for row in judged[-2:]] == ["overhead", "compute"]


def test_completing_leaves_torn_and_unchanged_lines_as_they_are(tmp_path):
    run = Run(tmp_path)
    run.append_record(record("numpy") | {"status": "oom", "reason": "No memory.", "latency_ms_median": None})
    with open(run.records_path, "ab") as file:
        file.write(b'{"cell": "torn", "lat\n[1, 2]\n\n')
    run.append_record(record("torch"))
    before = run.records_path.read_bytes().splitlines(keepends=True)
    run.write_csv()
    after = run.records_path.read_bytes().splitlines(keepends=True)
    assert after[:4] == before[:4]
    assert json.loads(after[4])["regime"] == "overhead"
    assert json.loads(before[4])["regime"] is None
    assert len(after) == 5


def test_bandwidth_is_a_share_of_the_machine_s_where_caches_cannot_help():
    (large,) = completed([record() | {"achieved_gb_per_s": 2.5}])
    assert large.bandwidth_pct == pytest.approx(25.0)
    assert completed([record()])[0].bandwidth_pct is None


def test_several_ranks_are_compared_with_one_by_independent_intervals():
    """10 ms ±1 % on one rank and 12.5 ms ±1 % on two: 80 % (Welch), ±1.4 % over many processes."""
    width = {"latency_ms_ci_low": 0.99, "latency_ms_ci_high": 1.01}

    def timed(ms: float, ranks: str, processes: int = 200) -> Record:
        name = f"torch/mlp/plain/training/cpu/fp32/threads=1/batch_size=3,accumulate=1{ranks}/eager"
        return record(ms=ms, cell=name, launches=processes) | {name: ms * share for name, share in width.items()}

    one, two = completed([timed(10, ""), timed(12.5, ",ranks=2,strategy=ddp")])
    assert one.efficiency is None
    assert two.efficiency.value == pytest.approx(0.8)
    assert two.efficiency.relative_half_width == pytest.approx(0.01 * 2**0.5, rel=1e-2)
    assert completed([two])[0].efficiency == two.efficiency  # without the other record nothing is changed
    _, few = completed([timed(10, "", 3), timed(12.5, ",ranks=2,strategy=ddp", 5)])
    assert few.efficiency == independent_ratio(Interval(10, 9.9, 10.1), Interval(12.5, 12.375, 12.625), (3, 5))
    for numbers in ((2, 5), (3, 1)):
        _, two = completed([timed(10, "", numbers[0]), timed(12.5, ",ranks=2,strategy=ddp", numbers[1])])
        assert two.scaling_efficiency == pytest.approx(0.8) and two.efficiency is None
    slow = {"latency_slowed": True}
    for slowed in ((slow, {}), ({}, slow)):  # neither half-width says that the host was slow
        sides = timed(10, ""), timed(12.5, ",ranks=2,strategy=ddp")
        _, two = completed([side | change for side, change in zip(sides, slowed, strict=True)])
        assert two.scaling_efficiency == pytest.approx(0.8) and two.efficiency is None
