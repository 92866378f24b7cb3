"""The table of kernel names, on names that profilers have recorded."""

from __future__ import annotations

import pytest

from measurement.kernels import CLASSES, by_class, classify

# From this suite's own profiles, on CPUs and an H200.
RECORDED = {
    "matmul": """
        aten::addmm | aten::bmm | aten::mm | aten::linear | mkldnn::_linear_pointwise | mkl::_mkl_linear
        MatMul | BatchMatMulV2 | _MklNativeFusedMatMul | _MklBatchMatMulV2 | _FusedMatMul | MatMul{dot} | Einsum
        matmul | onednn_op.fc | onednn_op.fused_matmul | jit_matmul/ynn_fusion | ynn_fusion{dot}
        ynn_fusion{dot,multiply,reduce,maximum,broadcast,subtract,exponential} | jit_dot_general/dot_general
        jit__einsum/ynn_fusion | nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT
        sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel
        aten::lstm | aten::mkldnn_rnn_layer | aten::_cudnn_rnn | BlockLSTM | rnn
    """,
    "attention": """
        aten::_scaled_dot_product_flash_attention_for_cpu | aten::scaled_dot_product_attention
        cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0
    """,
    "normalisation": """
        aten::native_layer_norm | aten::layer_norm | aten::_softmax | aten::mean | aten::sum | aten::max
        cpp_fused_add_native_layer_norm_view_3 | cpp_fused__softmax_2
        SquaredDifference | Mean | Softmax | _MklSoftmax | wrapped_reduce-window{reduce-window,add}
        layer_norm | softmax | onednn_op.layer_norm | jit__mean/ynn_fusion | jit__var/broadcast_multiply_fusion
        ynn_fusion{reduce,add} | jit_reduce_max/reduce | triton_per_fused_add_native_layer_norm_view_6
        at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float, float const*)
    """,
    "pointwise": """
        aten::gelu | aten::add | aten::mul | aten::tanh | aten::cos | aten::relu | cpp_fused_gelu_view_4
        cpp_fused__scaled_dot_product_flash_attention_for_cpu_clone_transpose_view_1 | cpp_fused_addmm_relu_0
        at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>>
        at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, std::array)
        BiasAdd | Mul | AddV2 | Erfc | Rsqrt | Neg | Sub | _MklAddV2 | AddN | Tanh | Relu
        add | gelu | scale | onednn_op.add | onednn_op.gelu | tanh | relu
        jit_multiply/broadcast_multiply_fusion | jit_erfc/select_select_fusion | jit_add/broadcast_add_fusion
        jit_true_divide/broadcast_multiply_fusion | jit_negative/wrapped_negate | jit_rsqrt/wrapped_rsqrt
        jit_erfc/loop_convert_fusion | jit_tanh/loop_convert_fusion
        transpose_copy_fusion{broadcast,add,transpose,copy} | add_add_fusion{broadcast,multiply,subtract,add}
        void elemWiseRNNcell<__nv_bfloat16, __nv_bfloat16, float, (cudnnRNNMode_t)2, (cudnnRNNBiasMode_t)2>(int, int)
    """,
    "copy": """
        aten::copy_ | aten::t | aten::transpose | aten::as_strided | aten::expand | aten::view | aten::empty
        aten::index_select | aten::embedding | aten::resolve_conj | aten::clone | aten::_to_copy
        Transpose | _MklTranspose | ReadVariableOp | GatherV2 | ResourceGather | Reshape | Cast | StridedSlice
        _EagerConst | reshape | transpose | embedding | onednn_to_paddle_layout | onednn_op.slice
        jit_copy/copy | jit_transpose/transpose_copy_fusion | copy_gather_fusion{copy,gather}
        jit_convert_element_type/wrapped_convert | jit_matmul/Memset 3 | jit_reshape/MemcpyD2D
        wrapped_broadcast{broadcast} | copy_bitcast_fusion{transpose,copy} | jit__take/gather
    """,
}
# On NVIDIA's GPUs, as CUDA's libraries, torch, Inductor, Triton and XLA call them.
CUDA = {
    "matmul": """
        ampere_sgemm_128x64_tn | ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn
        sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas
        nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN | nvjet_sm90_hsh_128x256_64x4_1x2_h_bz_coopA_TNT
        void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4>(Params)
        void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>(cublasLt::cublasSplitKParams)
        void gemv2T_kernel_val<int, int, float, float> | gemm_fusion_dot_3 | triton_tem_fused_mm_4 | __cublas$gemm
        sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4
    """,
    "attention": """
        void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t>>(Params)
        fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>)
        cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_64x64x64_4x1x1_kernel0_0
        __cudnn$fmhaSoftmax | triton_tem_fused_flex_attention_1
    """,
    "normalisation": """
        void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)
        void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*)
        void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>
        triton_per_fused_add_native_layer_norm_2 | triton_red_fused__softmax_3 | input_reduce_fusion | triton_softmax_7
        void cudnn::bn_fw_inf_1C11_kernel_NCHW_batchnorm | void LayerNormForward<float, float, 1024>
    """,
    "pointwise": """
        void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>
        void at::native::elementwise_kernel<128, 2, at::native::CUDAFunctor_add<float>> | triton_poi_fused_addmm_gelu_1
        triton_poi_fused_clone_2 | loop_add_fusion | loop_multiply_fusion_3 | input_fusion
        void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>
        aten::_thnn_fused_lstm_cell | LSTM_elementWise_fp
    """,
    "copy": """
        Memcpy HtoD (Pageable -> Device) | Memcpy DtoD (Device -> Device) | Memset (Device) | MemcpyD2D
        void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>
        void at::native::(anonymous namespace)::CatArrayBatchedCopy<float> | void indexSelectLargeIndex<float>
        void at::native::vectorized_gather_kernel<16, long> | transpose_kernel | loop_transpose_copy
    """,
}


def names(text: str) -> list[str]:
    return [name.strip() for line in text.strip().splitlines() for name in line.split(" | ")]


PAIRS = [(name, kind) for table in (RECORDED, CUDA) for kind, text in table.items() for name in names(text)]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_a_recorded_name_is_in_its_class(name, kind):
    assert classify(name) == kind


@pytest.mark.parametrize("name", ["", "spectre_7", "void my::unheard_of<float>", "Jupiter", "jit_lstm/while.7"])
def test_an_unknown_name_is_other(name):
    assert classify(name) == "other"


@pytest.mark.parametrize("name", ["BlockLSTMGrad", "aten::mkldnn_rnn_layer_backward", "mkldnn::rnn", "rnn_grad"])
def test_a_recurrent_layer_s_other_operators_are_of_its_class(name):
    assert classify(name) == "matmul"


def test_classes_share_all_the_time():
    kernels = [("aten::addmm", 3.0, 2), ("aten::bmm", 1.0, 1), ("aten::gelu", 0.5, 1), ("spectre_7", 0.25, 1)]
    seconds = by_class(kernels, idle_s=0.125)
    assert tuple(seconds) == CLASSES
    assert seconds == dict.fromkeys(CLASSES, 0.0) | {"matmul": 4.0, "pointwise": 0.5, "other": 0.25, "idle": 0.125}
