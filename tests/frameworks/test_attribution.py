"""Which operator a kernel is a part of: launches, nesting, and attention that a model spells out."""

from __future__ import annotations

import subprocess

import pytest
from conftest import ROOT

from environments import environments
from frameworks.traces.attribution import operators
from frameworks.traces.events import Event
from frameworks.traces.profile import reduce
from measurement.kernels import UNFUSED_ATTENTION, by_class, is_fused_attention

SDPA = "aten::scaled_dot_product_attention"


def in_turn(*names: str, launched: dict[str, tuple[str, ...]] | None = None) -> list[Event]:
    """Kernels of one second, one after the other."""
    return [Event(name, float(i), 1.0, operators=(launched or {}).get(name, ())) for i, name in enumerate(names)]


def unfused(events: list[Event]) -> list[str]:
    """The kernels that are parts of attention that is spelled out, in order."""
    parts = zip(sorted(events, key=lambda event: event.start_s), operators(events), strict=True)
    return [event.name for event, operator in parts if operator == UNFUSED_ATTENTION]


# A layer of BERT as each framework's profiler has recorded it, the parts of attention between bars.
LAYERS = {
    "tensorflow function": """
        _MklNativeFusedMatMul _MklNativeFusedMatMul _MklTranspose
        | _MklBatchMatMulV2 Mul _MklSoftmax _MklBatchMatMulV2
        | _MklTranspose _MklNativeFusedMatMul AddV2 Mean _MklNativeFusedMatMul
    """,
    "tensorflow eager": """
        MatMul MatMul MatMul Transpose | BatchMatMulV2 RealDiv Softmax BatchMatMulV2 | Transpose MatMul
    """,
    "jax eager": """
        jit_matmul/ynn_fusion jit_add/broadcast_add_fusion jit_swapaxes/transpose_copy_fusion
        | jit_matmul/ynn_fusion jit_true_divide/wrapped_divide jit__reduce_max/reduce jit_exp/wrapped_exponential
          jit__reduce_sum/reduce jit_matmul/ynn_fusion
        | jit_transpose/copy jit_matmul/ynn_fusion
    """,
    "jax jit": """
        ynn_fusion{dot} ynn_fusion{dot}
        | ynn_fusion{batched-dot} multiply_reduce_fusion{broadcast,multiply,reduce,maximum}
          subtract_exponential_fusion{subtract,exponential} ynn_fusion{batched-dot}
        | copy{copy} ynn_fusion{dot}
    """,
    "jax jit, softmax inside the product": """
        ynn_fusion{dot}
        | ynn_fusion{batched-dot,multiply,reduce,maximum,exponential} ynn_fusion{batched-dot}
        | ynn_fusion{dot}
    """,
    "xla on a gpu": """
        __cublas$gemm{__cublas$gemm} gemm_fusion_dot{dot}
        | batched_gemm{batched-__cublas$gemm} triton_softmax{reduce,maximum} gemm_fusion_dot{batched-dot}
        | loop_transpose_copy gemm_fusion_dot{dot}
    """,
    "paddle": """
        matmul add matmul add matmul add reshape transpose | matmul scale softmax matmul | transpose reshape matmul add
    """,
    "paddle.inference": """
        onednn_op.fc onednn_op.fc | onednn_op.fused_matmul onednn_op.softmax onednn_op.fused_matmul | onednn_op.fc
    """,
    "inductor in a cuda graph": """
        nvjet_a nvjet_b triton_poi_fused_clone_2
        | gemm_f32 triton_per_fused__safe_softmax_add_arange_5 gemm_f32
        | triton_poi_fused_clone_3 nvjet_c triton_per_fused_add_native_layer_norm_6 nvjet_d triton_poi_fused_gelu_7
    """,
    "training, forward and backward": """
        aten::mm
        | aten::bmm cpp_fused__softmax_2 aten::bmm
        | aten::mm aten::mm
        | aten::bmm aten::bmm cpp_fused__softmax_backward_data_5 aten::bmm aten::bmm
        | aten::mm
    """,
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_s_attention_is_found_and_nothing_else(name):
    parts = LAYERS[name].split("| ")
    expected = [kernel for part in parts[1::2] for kernel in part.split()]
    assert unfused(in_turn(*LAYERS[name].replace("| ", "").split())) == expected


def test_the_projection_of_the_values_between_the_scores_and_the_softmax_is_not_attention():
    events = in_turn("aten::mm", "aten::bmm", "aten::addmm", "aten::_softmax", "aten::bmm", "aten::addmm")
    assert unfused(events) == ["aten::bmm", "aten::_softmax", "aten::bmm"]


@pytest.mark.parametrize(
    "names",
    [
        # A classifier's, between the attention of one call and of the next.
        ("aten::bmm", *["aten::addmm"] * 3, "aten::_softmax", *["aten::addmm"] * 3, "aten::bmm"),
        ("aten::bmm", "aten::_log_softmax", "aten::bmm"),  # a loss's
        ("aten::bmm", "aten::gelu", "aten::bmm"),  # batched products without a softmax
        ("aten::_softmax", "aten::bmm"),
        ("jit_matmul/fusion", "jit_maximum/wrapped_maximum", "jit_matmul/fusion"),  # a relu
    ],
)
def test_what_is_no_attention(names):
    assert unfused(in_turn(*names)) == []


def test_wrappers_go_with_the_product_inside_them():
    events = [
        Event("aten::linear", 0.0, 3.0), Event("aten::addmm", 1.0, 1.0),
        Event("aten::matmul", 4.0, 4.0), Event("aten::expand", 4.5, 0.5), Event("aten::bmm", 6.0, 1.0),
        Event("aten::softmax", 9.0, 2.0), Event("aten::_softmax", 9.5, 1.0),
        Event("aten::matmul", 12.0, 4.0), Event("aten::bmm", 13.0, 1.0), Event("aten::view", 14.5, 0.5),
        Event("aten::linear", 17.0, 3.0), Event("aten::addmm", 18.0, 1.0),
    ]  # fmt: skip
    profile = reduce(events, wall_s=20.0, calls=1)
    assert by_class(profile.kernels, 0.0)["attention"] == 10.0
    assert by_class(profile.kernels, 0.0)["matmul"] == 6.0


def test_all_inside_an_attention_operator_is_attention():
    events = [
        Event(SDPA, 0.0, 10.0), Event("aten::_scaled_dot_product_attention_math", 0.5, 9.0),
        Event("aten::bmm", 1.0, 2.0), Event("aten::_softmax", 4.0, 1.0), Event("aten::bmm", 6.0, 2.0),
        Event("aten::addmm", 11.0, 4.0),
    ]  # fmt: skip
    assert operators(events) == ["", *[SDPA] * 4, ""]
    classes = by_class(reduce(events, 15.0, 1).kernels, 0.0)
    assert (classes["attention"], classes["matmul"], classes["normalisation"]) == (10.0, 4.0, 0.0)


def test_a_gpu_s_kernel_belongs_to_what_launched_it():
    launched = {
        "gemm_f32": (SDPA, "aten::_scaled_dot_product_attention_math", "aten::matmul", "aten::bmm"),
        "softmax_warp_forward": (SDPA, "aten::_safe_softmax", "aten::_softmax"),
        "nvjet": ("aten::linear", "aten::addmm"),
        "spectre_7": ("aten::gelu",),
    }
    events = in_turn("nvjet", "gemm_f32", "softmax_warp_forward", "spectre_7", launched=launched)
    assert operators(events) == ["aten::addmm", SDPA, SDPA, "aten::gelu"]
    classes = by_class(reduce(events, 4.0, 1).kernels, 0.0)
    assert (classes["matmul"], classes["attention"], classes["pointwise"], classes["other"]) == (1.0, 2.0, 1.0, 0.0)


def test_a_gpu_s_gemm_is_a_batched_product_by_what_launched_it():
    launched = {"gemm_f32": ("aten::bmm",), "nvjet": ("aten::addmm",)}
    events = in_turn(
        "nvjet", "gemm_f32", "nvjet", "triton_per_fused__softmax_1", "gemm_f32", "nvjet", launched=launched
    )
    assert unfused(events) == ["gemm_f32", "triton_per_fused__softmax_1", "gemm_f32"]


def test_events_that_a_rounded_clock_lets_overlap_are_not_nested():
    profile = reduce([Event("a", 0.0, 1.9), Event("b", 1.0, 5.0)], wall_s=6.0, calls=1)
    assert {name: took for name, took, *_ in profile.kernels} == {"a": 1.9, "b": 5.0}


@pytest.mark.parametrize(
    ("name", "fused"),
    [
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_kernel0_0", True),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Params)", True),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", True),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", True),
        ("aten::_scaled_dot_product_attention_math", False),
        ("cpp_fused__scaled_dot_product_flash_attention_for_cpu_clone_transpose_view_1", False),  # copies around it
        ("aten::bmm", False),
    ],
)
def test_a_fused_kernel_is_the_whole_of_attention(name, fused):
    assert is_fused_attention(name) is fused


LAUNCHES = """
from types import SimpleNamespace as E
from torch.autograd import DeviceType
from frameworks.torch.inspect.profiler import _kernels
CPU, GPU = DeviceType.CPU, DeviceType.CUDA
times = E(start=1.0, elapsed_us=lambda: 2.0)
def event(id, name, kind, parent=None):
    return E(id=id, name=name, device_type=kind, cpu_parent=parent, time_range=times, device_resource_id=7, thread=1,
             is_user_annotation=False)
calls = event(1, "calls", CPU)
sdpa = event(2, "aten::scaled_dot_product_attention", CPU, calls)
bmm = event(3, "aten::bmm", CPU, sdpa)
launch = event(90, "cudaLaunchKernel", CPU, bmm)
kernels = [event(90, "gemm", GPU), event(91, "replayed", GPU), event(1, "calls", GPU)]
for kernel in _kernels([calls, sdpa, bmm, launch, *kernels], {90: 3, 91: 0}):
    print(kernel.name, *kernel.operators)
"""


@pytest.mark.slow
def test_torch_s_links_lead_from_a_kernel_to_its_operators():
    interpreter = environments.path("torch", "cpu") / "bin" / "python"
    done = subprocess.run([interpreter, "-c", LAUNCHES], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["gemm aten::scaled_dot_product_attention aten::bmm", "replayed"]
