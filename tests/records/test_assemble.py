"""From workers' reports to a record."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from statistics import median

import pytest

import workloads
from measurement.cells import Capture, Effective
from measurement.parity import INCOMPARABLE, Difference, Parity
from measurement.peaks import Peaks
from measurement.profiles import PROFILES
from measurement.protocol import Hello
from records import assemble, values
from records.assemble import record, speedup
from records.cell_result import CellResult, Context, Failure
from records.intervals import correction, over_processes
from records.record import Record
from records.rooflines import completed
from reports import numbers
from workloads import user_model

CONTEXT = Context(
    "run",
    "machine",
    "A processor",
    "abc",
    PROFILES["quick"],
    "cold",
    {"torch": ("torch-lite", "torch"), "tensorflow": ()},
)
HELLO = Hello({"torch": "9.9"}, Effective(threads=2, settings={"a": 1}))
GOOD = Parity(Difference(1e-6, 1e-6), 1e-4, "numpy")
PEAKS = Peaks(1e11, 1e10, "measured here")
CAPTURE = Capture(whole=True, graphs=1, graph_breaks=0, compilations=1, backend="stub")


@pytest.fixture
def result(cell, report):
    """An result of one launch with these samples."""

    def make(mode="eager", samples=(0.002,) * 12, parity=GOOD, framework="torch", **changes) -> CellResult:
        reports = [report(samples, process=0, worker="0001", **changes)]
        return CellResult(cell(mode=mode, framework=framework), "2026-01-01T00:00:00Z", reports, HELLO, None, parity)

    return make


def made(result, baseline=None, peaks=PEAKS) -> Record:
    row = record(result, baseline, workloads.get("mlp"), "seed:0", peaks, CONTEXT)
    assert values.problem(row.to_row()) is None
    return row


def test_every_mode_is_excluded_where_eager_mode_compiles_in_every_call(result):
    for compiles, why in ((True, "eager_compiles"), (False, None), (None, None)):
        eager, graph = result(compiles=compiles), result(mode="inductor", samples=(0.001,) * 12)
        assert [made(eager).excluded, made(graph, eager).excluded, made(graph).excluded] == [why, why, None]


def test_settings_hold_what_capture_said(result):
    capture = Capture(whole=True, graphs=1, graph_breaks=0, compilations=1, backend="stub", detail="7 kernels")
    settings = json.loads(made(result(capture=capture)).settings)
    assert (settings["a"], settings["captured"]) == (1, "7 kernels")


@pytest.mark.parametrize(
    ("calls", "synchronized", "flagged"),
    [(10, 0.0024, True), (10, 0.0023, False), (10, 0.0019, False), (10, None, False), (4, 0.009, False)],
)
def test_a_queue_that_takes_much_of_a_sample_is_flagged(result, calls, synchronized, flagged):
    """A sample of n calls of t lasts n t + q, a synchronized call t + q: here q is 2.2 and 1.7 % of ten calls."""
    row = made(result(calls_per_sample=calls, latency_sync_s=synchronized))
    assert ("queue" in (row.flags or "").split(";")) == flagged


def test_a_good_cell(result):
    row = made(result())
    assert row.status == "ok"
    assert row.latency_ms_median == pytest.approx(2.0)
    assert row.speedup_vs_eager == 1.0
    assert row.framework_version == "9.9"
    assert row.threads_effective == 2
    assert row.side_by_side == 1
    assert row.settings == '{"a": 1, "policies": {"torch-openmp-idle": "spin"}}'
    assert row.items_per_s == pytest.approx(4 / 0.002)
    assert row.flops == workloads.get("mlp").cost({"batch_size": 4, "width": 8, "depth": 2}, "fp32").flops
    (whole,) = completed([row])
    assert whole.mfu_pct == pytest.approx(100 * row.flops / 0.002 / 1e11)
    assert whole.bottleneck == "overhead"
    assert row.speedup_ci_low is None
    assert row.latency_sync_ms_median is row.device_ms_median is None


@pytest.mark.parametrize(
    ("parameters", "items", "tokens"),
    [("batch_size, seq_len=16", 4 / 0.002, 64 / 0.002), ("batch_size", 4 / 0.002, None), ("seq_len=16", None, None)],
)
def test_rates_of_a_user_model_need_its_batch_size(result, tmp_path, parameters, items, tokens):
    (tmp_path / "net.py").write_text(f"import torch\ndef model(): ...\ndef inputs({parameters}): ...\n")
    own = user_model.workload("net.py", str(tmp_path / "net.py"))
    shape = {"batch_size": 4, "seq_len": 16}
    shape = {parameter.name: shape[parameter.name] for parameter in own.parameters}
    named = {"tokens_per_call": own.tokens_per_call(shape), "real_tokens_per_call": own.real_tokens_per_call(shape)}
    one = replace(result(), cell=replace(result().cell, parameters=tuple(shape.items())))
    rates = assemble._rates(one, own, {"latency_ms_median": 2.0, **named})
    assert (rates["items_per_s"], rates["tokens_per_s"], rates["real_tokens_per_s"]) == (items, tokens, tokens)


@pytest.mark.parametrize(
    ("size", "device", "expected"),
    [
        (4_800_000_000, "NVIDIA H200", (2400.0, 50.0)),
        (4_800_000_000, "a GPU", (2400.0, None)),
        (127_000_000, "NVIDIA H200", None),
    ],
)
def test_bandwidth_compares_where_the_caches_cannot_hold_what_moves(size, device, expected):
    row = {"bytes": size, "device": "gpu:0", "device_name": device, "latency_ms_median": 2.0}
    rates = dict(zip(("achieved_gb_per_s", "datasheet_bandwidth_pct"), expected or (), strict=False))
    assert assemble.bandwidth(row) == pytest.approx(rates)


def test_the_speedup_is_of_pairs_not_of_medians(result):
    """Both modes drift by a factor of four; in every round the graph is twice as fast."""
    drifting = [0.002 * 4 ** (i / 11) for i in range(12)]
    eager, graph = result(samples=drifting), result("inductor", samples=[s / 2 for s in drifting])
    ratio = speedup(graph, eager)
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((2, 2, 2))
    row = made(graph, eager)
    assert row.speedup_vs_eager == pytest.approx(2)
    assert (row.status, row.sign, row.on_target) == ("ok", "faster", True)
    assert row.latency_half_width > row.target_half_width > row.speedup_half_width == pytest.approx(0)
    assert "drift" in row.flags.split(";")


STEADY = (0.002,) * 12
SCATTERED = tuple(0.002 * (1 + 0.5 * (i in (1, 2, 3, 5, 9, 10))) for i in range(12))


@pytest.mark.parametrize(
    ("eager", "graph", "on_target"),
    [
        (STEADY, STEADY, (True, True, True)),
        (SCATTERED, STEADY, (False, True, False)),
        (SCATTERED, SCATTERED, (False, False, True)),  # both bore the same
        (STEADY[:5], STEADY[:5], (False, False, False)),  # too few rounds for an interval
    ],
)
def test_latency_and_speedup_have_a_half_width_each_and_the_status_none(result, eager, graph, on_target):
    base = result(samples=eager, noise={**asdict(result().reports[0].noise), "steal_share": 0.5})
    rows = made(base), made(result("inductor", samples=graph), base)
    widths = rows[0].latency_half_width, rows[1].latency_half_width, rows[1].speedup_half_width
    target = rows[0].target_half_width
    assert tuple(width is not None and width <= target for width in widths) == on_target
    assert {row.status for row in rows} == {"ok"} and "steal" in rows[0].flags.split(";")
    assert [row.on_target for row in rows] == [on_target[0], on_target[2]]


@pytest.mark.parametrize(("percent", "on_target"), [(10.0, True), (10.4, True), (10.6, False)])
def test_a_figure_is_on_target_where_it_is_shown_so(result, percent, on_target):
    ends = {"latency_ms_ci_low": 1 - percent / 100, "latency_ms_ci_high": 1 + percent / 100}
    row = replace(made(result(samples=STEADY)), latency_ms_median=1.0, **ends)
    assert (row.target_half_width, row.on_target) == (0.1, on_target)
    assert (numbers.plus_minus(row.figure) == numbers.width(0.1)) == on_target


@pytest.mark.parametrize(("factor", "expected"), [(0.5, "faster"), (2.0, "slower"), (1.0, "inconclusive")])
def test_the_sign_is_what_the_interval_says(result, factor, expected):
    row = made(result("inductor", samples=[0.002 * factor] * 12), result())
    assert row.sign == expected


def test_a_graph_without_a_speedup_has_no_sign_or_an_open_one(result):
    elsewhere = result()
    elsewhere.reports[0] = replace(elsewhere.reports[0], worker="0002")  # no round of theirs is the graph's
    beside = made(result("inductor"), elsewhere)
    assert (beside.speedup_vs_eager, beside.sign, beside.speedup_half_width) == (None, "inconclusive", None)
    assert made(result("inductor")).sign is None  # eager was not asked for
    assert made(result()).sign is None


def test_a_broken_model_is_flagged_and_its_reason_kept(result):
    broken = Capture(whole=False, graphs=2, graph_breaks=1, compilations=2, breaks=(("model.py:3", "item"),))
    row = made(result("inductor", capture=broken), result())
    assert (row.status, row.reason) == ("ok", "1 graph break: model.py:3 (item).")
    assert "partial" in row.flags.split(";")


def test_the_latency_of_launches_is_not_pooled(result, report):
    """Two hundred samples that agree within a launch say nothing of how launches differ."""
    launches = result()
    launches.reports = [report((seconds,) * 200, process=i) for i, seconds in enumerate((0.001, 0.002, 0.004))]
    row = made(launches)
    assert row.latency_ms_median == pytest.approx(2.0)
    half = correction(3) * 4.3027 * math.log(2) / math.sqrt(3)
    ends = 2 * math.exp(-half), 2 * math.exp(half)
    assert (row.latency_ms_ci_low, row.latency_ms_ci_high) == pytest.approx(ends, rel=1e-4)
    assert row.interval_scope == "across processes"
    assert made(result()).interval_scope == "within this process"


def test_a_wrong_output_is_a_mismatch_whatever_the_time(result):
    row = made(result(parity=Parity(Difference(0.5, 0.25), 1e-4, "numpy")))
    assert row.status == "mismatch"
    assert row.reason == (
        "Outputs differ from numpy's by up to 0.5, a relative 0.25 (root mean square), where 0.0001 is allowed."
    )
    reference = "its own eager mode in float32 (float64 failed: no such kernel.), up to 3 times eager mode's own error"
    row = made(result(parity=Parity(INCOMPARABLE, 1e-4, reference)))
    assert row.reason == "Outputs differ from its own eager mode in float32's in shape, kind or number."
    row = made(result(parity=Parity(INCOMPARABLE, 1e-4, "numpy")))
    assert row.status == "mismatch"
    assert row.parity_max_abs_err is None


def test_a_failure_has_no_figures(cell):
    failed = CellResult(
        cell(), "2026-01-01T00:00:00Z", failure=Failure("crash", "The worker was killed.", "last words")
    )
    row = made(failed)
    assert (row.status, row.reason, row.stderr_tail) == ("crash", "The worker was killed.", "last words")
    assert row.latency_ms_median is None


def test_break_even(result):
    eager = result(samples=(0.003,) * 12, first_call_s=0.003)
    graph = result("inductor", samples=(0.001,) * 12, first_call_s=2.003)
    assert made(graph, eager).break_even_calls == pytest.approx(2.0 / 0.002)
    assert made(graph, eager).load_s is None
    loaded = result("inductor", samples=(0.001,) * 12, first_call_s=0.003, load_s=5.0)
    row = made(loaded, result(samples=(0.003,) * 12, first_call_s=0.003, load_s=1.0))
    assert (row.load_s, row.compile_s) == (5.0, pytest.approx(0.002))
    assert row.break_even_calls == pytest.approx((5.0 - 1.0) / 0.002)
    assert made(graph, eager).compile_s == pytest.approx(2.002)
    started = made(result("inductor", samples=(0.001,) * 12, first_call_s=2.003, compiler_start_s=8.0), eager)
    assert (started.compiler_start_s, started.break_even_calls) == (8.0, pytest.approx(10.0 / 0.002))
    assert started.compile_s == pytest.approx(2.002)
    slower = result("inductor", samples=(0.004,) * 12, first_call_s=2.0)
    assert made(slower, eager).break_even_calls is None

    for first_s in (0.003, 0.001):  # no longer than eager's, which loads libraries
        row = made(result("inductor", samples=(0.001,) * 12, first_call_s=first_s), eager)
        assert (row.break_even_calls, row.break_even_low, row.break_even_high) == (None, None, None)


def test_break_even_is_of_what_a_call_saves_in_each_process(result):
    eager, graph = result(samples=SCATTERED, first_call_s=0.0), result("inductor", first_call_s=1.0)
    row, saved = made(graph, eager), over_processes([[s - 0.002 for s in SCATTERED]])
    assert (row.break_even_low, row.break_even_high) == (pytest.approx(1 / saved.high), None)
    assert saved.low < 0  # it may be slower
    faster = made(result("inductor", samples=[s - 0.001 for s in SCATTERED], first_call_s=1.0), eager)
    assert faster.break_even_low == pytest.approx(1000) == faster.break_even_high  # though the speedup scatters


def test_a_break_even_includes_the_scatter_of_first_calls_over_processes_that_compiled(cell, report):
    seconds = (1.0, 2.0, 3.0)

    def of_mode(mode: str, sample: float, firsts, loaded=(None, None, None)) -> CellResult:
        reports = [
            report((sample,) * 12, process=n, worker=f"{n}", first_call_s=first, capture=replace(CAPTURE, loaded=known))
            for n, (first, known) in enumerate(zip(firsts, loaded, strict=True))
        ]
        return CellResult(cell(mode=mode), "2026-01-01T00:00:00Z", reports, HELLO, None, GOOD)

    eager, extra = of_mode("eager", 0.003, (0.5, 0.25, 0.0)), over_processes([[0.5], [1.75], [3.0]])
    row = made(of_mode("inductor", 0.001, seconds), eager)  # each over eager mode of its own process
    found = row.break_even_calls, row.break_even_low, row.break_even_high
    assert found == pytest.approx((1.75 / 0.002, max(0.0, extra.low / 0.002), extra.high / 0.002))
    row = made(of_mode("inductor", 0.001, seconds, (False, True, True)), eager)
    found = row.break_even_calls, row.break_even_low, row.break_even_high
    assert found == pytest.approx((0.75 / 0.002,) * 3)  # over the median of eager mode's


def test_the_interval_of_a_break_even_includes_its_estimate(result):
    """Eager's own time counts rounds that the pair does not: here the graph's host was slow in half of them."""
    fast, slow = (0.003,) * 12, (0.006,) * 12
    eager = result(samples=fast + slow, first_call_s=0.0)
    graph = result("inductor", samples=(0.001,) * 24, first_call_s=1.0, host_loop_s=[3e-4] * 13 + [6e-4] * 12)
    row = made(graph, eager)
    assert row.break_even_low <= row.break_even_calls <= row.break_even_high


def test_without_peaks_there_is_no_regime(result):
    (row,) = completed([made(result(), peaks=None)])
    assert row.bottleneck is None
    assert row.mfu_pct is None


def test_a_graph_that_does_not_fuse_moves_what_eager_moves(result):
    eager, fused, unfused = (made(result(mode, framework=f)) for f, mode in (
        ("torch", "eager"), ("torch", "inductor"), ("tensorflow", "function")
    ))  # fmt: skip
    assert fused.moved_bytes == fused.bytes < eager.moved_bytes
    assert unfused.moved_bytes == eager.moved_bytes == eager.unfused_bytes
    assert unfused.intensity == eager.intensity == eager.flops / eager.unfused_bytes


def test_tail_latency_is_of_single_calls(result):
    row = made(result(single_calls_s=[0.002] * 95 + [0.009] * 5))
    assert (row.single_calls, row.latency_call_ms_p50) == (100, pytest.approx(2.0))
    assert (row.latency_call_ms_p95, row.latency_call_ms_p99) == (pytest.approx(2.0), pytest.approx(9.0))
    few = made(result(single_calls_s=[0.002] * 12))
    assert (few.latency_call_ms_p95, few.latency_ms_p95) == (None, None)
    assert made(result()).single_calls == 0


def test_slow_turns_are_set_aside_and_the_host_s_speed_is_in_the_record(result):
    loop = [3e-4] * 9 + [6e-4] * 3
    row = made(result(samples=(0.002,) * 9 + (0.004,) * 3, host_loop_s=loop))
    assert (row.host_loop_ms_median, row.host_loop_ms_full) == pytest.approx((0.3, 0.3))
    assert (row.host_slowed_share, row.rounds_set_aside, row.samples) == (0.25, 3, 9)
    assert (row.latency_ms_ci_high, row.headline) == (pytest.approx(2.0), True)
    assert made(result(host_loop_s=[])).host_loop_ms_median is None


def test_a_host_slow_in_too_many_processes_gives_no_headline(result):
    often = made(result(samples=(0.002,) * 5 + (0.004,) * 7, host_loop_s=[3e-4] * 5 + [6e-4] * 7))
    assert (often.rounds_set_aside, often.samples, often.headline) == (0, 12, False)
    assert "host_slowed" in often.flags.split(";") and often.status == "ok" and often.excluded is None
    assert (often | {"schema_version": 8}).headline  # where the flag meant a share of slow rounds


@pytest.mark.parametrize(
    ("loops", "aside", "flagged"),
    [
        (([6.0e-4] * 12, [6.3e-4] * 12, [6.6e-4] * 12), 0, False),
        (([6.0e-4] * 12, [6.3e-4] * 12, [9.65e-4] * 12), 0, True),  # two processes are left
        (([6.0e-4] * 12, [6.3e-4] * 12, [6.6e-4] * 12, [9.65e-4] * 12), 12, False),
    ],
)
def test_full_speed_is_that_of_all_processes(result, report, loops, aside, flagged):
    several = result()
    several.reports = [report((0.002,) * len(loop), process=i, host_loop_s=loop) for i, loop in enumerate(loops)]
    row = made(several)
    assert (row.rounds_set_aside, row.processes) == (aside, len(loops))
    assert ("host_slowed" in (row.flags or "").split(";")) == flagged


def test_a_round_counts_for_a_pair_where_both_turns_are_good(result):
    eager = result(samples=(0.008,) * 2 + (0.004,) * 10, host_loop_s=[6e-4] * 2 + [3e-4] * 10)
    graph = result("inductor", samples=(0.001,) * 10 + (0.003,) * 2, host_loop_s=[3e-4] * 10 + [6e-4] * 2)
    row = made(graph, eager)
    assert (row.speedup_vs_eager, row.speedup_half_width) == pytest.approx((4, 0))
    most = result("inductor", samples=(0.001,) * 12, host_loop_s=[3e-4] * 6 + [6e-4] * 6)
    assert not made(most, eager).headline  # each has six good turns, the pair four
    assert made(eager).headline


def test_slow_turns_count_of_a_mode_that_never_waits_for_the_host(result):
    eager = result(samples=(0.008,) * 2 + (0.004,) * 10, host_loop_s=[6e-4] * 2 + [3e-4] * 10)
    slow = dict(samples=(0.001,) * 12, host_loop_s=[3e-4] * 2 + [6e-4] * 10)
    waits = made(result("inductor", host_s=0.0005, **slow), eager)
    assert (waits.headline, waits.latency_slowed, waits.slowed) == (False, True, True)
    row = made(result("inductor", host_s=0.0003, **slow), eager)
    assert (row.speedup_vs_eager, row.rounds_set_aside) == (pytest.approx(4), 0)
    assert row.host_slowed_share == pytest.approx(10 / 12)
    slow_eager = result(samples=(0.008,) * 12, host_loop_s=[3e-4] * 2 + [6e-4] * 10)
    row = made(result("inductor", host_s=0.0003, **slow), slow_eager)
    assert (row.headline, row.latency_slowed, row.slowed) == (False, False, False)
    assert (row | {"latency_slowed": None}).slowed  # as in earlier records


@pytest.mark.parametrize(("host_s", "loops"), [(0.0039, 4e-3 / 3.3e-4), (0.001, None), (None, None)])
def test_a_time_that_waits_for_the_host_is_given_in_loops_of_the_fastest_process(cell, report, host_s, loops):
    def of(mode: str, seconds: float) -> CellResult:
        speeds = [3e-4] * 3 + [3.3e-4] * 9, [3.5e-4] * 12  # the decile is 3e-4, the slower process does not count
        reports = [
            report((seconds * median(loops) / 3.3e-4,) * 12, process=number, host_loop_s=loops, host_s=host_s)
            for number, loops in enumerate(speeds)
        ]
        return CellResult(cell(mode=mode, device="gpu:0"), "2026-01-01T00:00:00Z", reports, HELLO, None, GOOD)

    eager, graph = of("eager", 4e-3), of("inductor", 1e-3)
    assert made(eager).host_ms_in_loops == made(graph, eager).host_ms_in_loops == pytest.approx(loops)


def test_a_user_s_model_that_nobody_counts_has_a_record_without_bandwidth(result, monkeypatch):
    monkeypatch.setattr(assemble, "known_cost", lambda cell, user_model: None)
    assert made(result()).achieved_gb_per_s is None


def test_tokens_are_timed_apart(result):
    """The first apart from the others, of which a percentile is told once there are enough of them."""
    parts = (0.010, *[0.002] * 18, 0.004), (0.012, *[0.002] * 19)
    row = made(result(parts_s=parts))
    assert (row.first_token_ms_median, row.inter_token_ms_p50) == (pytest.approx(11.0), pytest.approx(2.0))
    assert (row.inter_token_ms_p95, row.inter_token_ms_p99) == (pytest.approx(2.0), None)
    assert made(result()).first_token_ms_median is None


def test_compiling_pays_for_itself_after_so_many_tokens(result):
    graph, eager = result("inductor", samples=(0.001,) * 12, first_call_s=2.003), result(samples=(0.003,) * 12)
    row, generate = made(graph, eager).to_row(), workloads.get("llama-tiny", "generate")
    parameters = {"batch_size": 3, "prompt": 4, "tokens": 5, "attention": "explicit"}
    graph.cell = replace(graph.cell, parameters=tuple(parameters.items()))
    assert assemble.break_even_tokens(generate, graph, row) == {"break_even_tokens": 15 * row["break_even_calls"]}
    assert assemble.break_even_tokens(workloads.get("llama-tiny", "prefill"), graph, row) == {}
    assert assemble.break_even_tokens(generate, graph, row | {"break_even_calls": None}) == {}
