"""From a profiler's events to the time of every kernel: nesting, overlap, what XLA's fusions hold."""

from __future__ import annotations

import pytest

from frameworks.traces import hlo, xplane
from frameworks.traces.events import Event
from frameworks.traces.profile import reduce, union_s
from frameworks.traces.xplane import Row


def seconds(profile) -> dict[str, float]:
    return {name: took for name, took, *_ in profile.kernels}


def test_an_operator_s_time_is_what_those_inside_it_leave():
    events = [
        Event("linear", 0.0, 10.0),
        Event("t", 1.0, 2.0),
        Event("addmm", 4.0, 5.0),
        Event("copy_", 5.0, 1.0),
        Event("gelu", 10.0, 3.0),  # begins as the first ends: beside it, not inside
    ]
    profile = reduce(events, wall_s=20.0, calls=1)
    assert seconds(profile) == {"addmm": 4.0, "linear": 3.0, "gelu": 3.0, "t": 2.0, "copy_": 1.0}
    assert profile.kernels[0][0] == "addmm"  # the longest first
    assert profile.busy_s == 13.0
    assert profile.wall_s == 20.0


def test_lanes_do_not_nest_and_busy_time_is_not_counted_twice():
    events = [Event("a", 0.0, 4.0, lane=1), Event("b", 1.0, 2.0, lane=2), Event("b", 6.0, 2.0, lane=2)]
    profile = reduce(events, wall_s=10.0, calls=2)
    assert seconds(profile) == {"a": 2.0, "b": 2.0}  # per call
    assert dict((name, count) for name, _, count, _ in profile.kernels) == {"a": 0.5, "b": 1.0}
    assert profile.busy_s == 3.0
    assert profile.wall_s == 5.0


def test_events_that_count_from_1970_are_refused():
    with pytest.raises(ValueError, match="count from the first call's start"):
        reduce([Event("matmul", 1795550423.451597, 4e-05)], wall_s=1.0, calls=1)


def test_union_of_nothing():
    assert union_s([]) == 0.0
    assert reduce([], 1.0, 1).kernels == ()


# The shape of what XLA writes, shortened.
MODULE = """HloModule jit_whole_model_0, is_scheduled=true, entry_computation_layout={(f32[4,4]{1,0})->f32[4]{0}}

%region_0.1 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%a, %b), metadata={op_name="reduce_sum"}
}

%fused_computation (p: f32[4,4], q: f32[4,4]) -> f32[4,4] {
  %p = f32[4,4]{1,0} parameter(0)
  %q = f32[4,4]{1,0} parameter(1)
  %dot.0 = f32[4,4]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %constant.1 = f32[] constant(2)
  %broadcast.1 = f32[4,4]{1,0} broadcast(%constant.1), dimensions={}
  ROOT %multiply.0 = f32[4,4]{1,0} multiply(%dot.0, %broadcast.1)
}

ENTRY %main (x.1: f32[4,4]) -> f32[4] {
  %x.1 = f32[4,4]{1,0} parameter(0)
  %constant.2 = f32[] constant(0)
  %ynn_fusion.3 = f32[4,4]{1,0} fusion(%x.1, %x.1), kind=kCustom, calls=%fused_computation
  %cublas.1 = (f32[4,4]{1,0}, s8[16]{0}) custom-call(%x.1, %ynn_fusion.3), custom_call_target="__cublas$gemm"
  ROOT %reduce.9 = f32[4]{0} reduce(%ynn_fusion.3, %constant.2), dimensions={1}, to_apply=%region_0.1
}
"""


def test_what_is_inside_xla_s_kernels():
    name, operations = hlo.parse(MODULE)
    assert name == "jit_whole_model_0"
    assert operations["ynn_fusion.3"] == "dot,broadcast,multiply"
    assert operations["reduce.9"] == "reduce,add"
    assert operations["cublas.1"] == "__cublas$gemm"


def test_a_product_with_a_batch_says_so():
    batched = "dot(%p, %q), lhs_batch_dims={0}, lhs_contracting_dims={1}"
    _, operations = hlo.parse(MODULE.replace("dot(%p, %q), lhs_contracting_dims={1}", batched))
    assert operations["ynn_fusion.3"] == "batched-dot,broadcast,multiply"
    config = 'backend_config={"dot_dimension_numbers":{"lhs_batch_dimensions":["0"]}}, custom_call_target'
    _, operations = hlo.parse(MODULE.replace("custom_call_target", config))
    assert operations["cublas.1"] == "batched-__cublas$gemm"
    config = config.replace('["0"]', "[]")
    assert hlo.parse(MODULE.replace("custom_call_target", config))[1]["cublas.1"] == "__cublas$gemm"


def test_a_kernel_s_name_says_what_it_holds(tmp_path):
    (tmp_path / "module_0001.jit_whole_model_0.cpu_after_optimizations.txt").write_text(MODULE)
    (tmp_path / "module_0001.jit_whole_model_0.before_optimizations.txt").write_text("HloModule other")
    modules = hlo.read(tmp_path)
    assert list(modules) == ["jit_whole_model_0"]
    assert (
        hlo.described("ynn_fusion.3", "jit_whole_model_0", "ynn_fusion.3", modules)
        == "ynn_fusion{dot,broadcast,multiply}"
    )
    assert hlo.described("MatMul_7.2", "jit_matmul", "MatMul_7.2", modules) == "jit_matmul/MatMul"
    assert hlo.described("nvjet_tst_64x8_TNN", "", "", modules) == "nvjet_tst_64x8_TNN"


HOST = "/host:CPU"


def test_kernels_of_a_gpu_are_taken_from_its_streams_alone():
    rows = [
        Row(HOST, "python", "calls", 0, 100),
        Row(
            "/device:GPU:0",
            "Stream #13(Compute)",
            "ynn_fusion.3",
            10,
            20,
            {"hlo_op": "ynn_fusion.3", "hlo_module": "m"},
        ),
        Row("/device:GPU:0", "Stream #13(Compute)", "MemcpyD2D", 40, 5),
        Row("/device:GPU:0", "XLA Ops", "ynn_fusion.3", 10, 20),  # the same again, derived
        Row(HOST, "python", "hlo on the host", 0, 50, {"hlo_op": "call"}),
    ]
    events = xplane.events(rows, {"m": {"ynn_fusion.3": "dot"}})
    assert [event.name for event in events] == ["ynn_fusion{dot}", "MemcpyD2D"]
    assert xplane.wall_s(rows) == pytest.approx(100e-9)


def test_operators_of_tensorflow_on_the_host():
    rows = [
        Row(HOST, "python", "EagerLocalExecute: MatMul", 0, 100),
        Row(HOST, "python", "EagerKernelExecute", 20, 70),
        Row(HOST, "python", "EagerLocalExecute: __inference_f_238", 200, 100),
        Row(HOST, "python", "EagerKernelExecute", 210, 80),  # a whole graph, whose operators follow
        Row(HOST, "tf_Compute", "layer/moments/mean:Mean", 220, 30),
        Row(HOST, "tf_Compute", "ThreadpoolListener::Record", 221, 0),
        Row(HOST, "tf_Compute", "__inference_f_276:__inference_f_276", 300, 50),
        Row(HOST, "tf_Compute", "MatMul.2", 310, 40, {"hlo_op": "MatMul.2", "hlo_module": "a_inference_f_276"}),
        Row(HOST, "tf_Compute", "end: MatMul.2", 350, 1),
    ]
    events = xplane.events(rows, {"a_inference_f_276": {"MatMul.2": "dot"}})
    assert sorted((event.name, round(event.duration_s * 1e9)) for event in events) == [
        ("MatMul", 70), ("MatMul{dot}", 40), ("Mean", 30),
    ]  # fmt: skip


def test_a_profile_without_the_annotated_calls_is_an_error():
    with pytest.raises(ValueError, match="not enough values"):
        xplane.wall_s([Row(HOST, "python", "other", 0, 100)])
