"""Description of PaddlePaddle for command line, planner and reports, without importing it."""

from __future__ import annotations

from frameworks.description import Framework, Mode, Rung, openmp_environment
from workloads.passes import WITH_CACHE


def _environment(threads: int, device_kind: str) -> dict[str, str]:
    """Return variables that Paddle and PaddleNLP read when they are imported, or that their libraries read at start."""
    environment = openmp_environment(threads) | {
        "GLOG_minloglevel": "2",
        "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
    }
    if device_kind == "gpu":
        return environment | {"FLAGS_allocator_strategy": "auto_growth"}
    return environment


TO_PREDICTOR = (
    Rung("eager", "operator by operator"),
    Rung("to_static", "a captured program instead of Python, run by Paddle's executor"),
    Rung("to_static-cinn", "kernels compiled by CINN, operators fused", kept=False),
    Rung("inference-no-passes", "the exported program with frozen weights, run by the predictor"),
)
PASSES = "IR passes: operators fused, constants folded"

FRAMEWORK = Framework(
    name="paddle",
    title="PaddlePaddle",
    colour="#9352d6",
    distributions=("paddlepaddle", "paddlepaddle-gpu", "paddlenlp"),
    aliases=("paddlepaddle",),
    switches=("FLAGS_",),
    modes=(
        Mode("eager", graph=False, summary="dynamic graph, operator by operator"),
        Mode(
            "to_static",
            graph=True,
            summary="paddle.jit.to_static(full_graph=True, backend=None) on Paddle's own executor",
            call="paddle.jit.to_static(model, full_graph=True, backend=None)",
        ),
        Mode(
            "to_static-cinn",
            graph=True,
            summary="to_static compiled by CINN, on a GPU with a build that includes it",
            fuses=True,
            call='paddle.jit.to_static(model, full_graph=True, backend="CINN")',
        ),
        Mode(
            "inference",
            graph=True,
            summary="paddle.inference of the exported program with frozen weights and IR passes (on a CPU with "
            "oneDNN, except with a cache)",
            passes=("inference", *WITH_CACHE),
            fuses=True,
            call="paddle.inference.create_predictor(config)",
        ),
        Mode(
            "inference-no-passes",
            graph=True,
            summary="paddle.inference of the exported program, without IR passes and oneDNN",
            passes=("inference", *WITH_CACHE),
            call="config.switch_ir_optim(False); config.disable_mkldnn(); paddle.inference.create_predictor(config)",
            deployed=False,
        ),
        Mode(
            "inference-no-onednn",
            graph=True,
            summary="paddle.inference with IR passes, without oneDNN",
            devices=("cpu",),
            passes=("inference",),
            fuses=True,
            call="config.disable_mkldnn(); paddle.inference.create_predictor(config)",
            deployed=False,
        ),
    ),
    ladders={
        "cpu": (
            *TO_PREDICTOR,
            Rung("inference-no-onednn", PASSES),
            Rung("inference", "oneDNN's kernels", passes=("inference",)),
            Rung("inference", PASSES, passes=WITH_CACHE),
        ),
        "gpu": (*TO_PREDICTOR, Rung("inference", PASSES)),
    },
    default_graph=("to_static",),
    graph_on_gpu=("to_static-cinn",),  # Paddle's own default on a GPU where the build has CINN
    models={
        "library": ("bert", "llama", "resnet"),
        "plain": (
            *("bert", "gpt", "llama", "resnet", "vit", "lstm", "mlp"),
            *("matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead"),
        ),
    },
    trained=("bert", "gpt", "resnet", "vit", "lstm", "mlp"),
    user_model_passes=("inference", "training"),
    environment=_environment,
    # Flash attention; elsewhere, and in the library's model, attention consists of products and a softmax.
    attention_kernel=lambda implementation, device_kind, dtype: (
        implementation == "plain" and device_kind == "gpu" and dtype in ("bf16", "fp16")
    ),
    # Which variance its batch norm accumulates, seen only in Paddle 3.3, eager and to_static.
    conventions=lambda device_kind: (
        {"batch_statistics": "rank"} | ({"running_variance": "biased"} if device_kind == "cpu" else {})
    ),
    strategies={"ddp": ("eager", "to_static")},
    # Elsewhere Paddle 3's operator is the explicit one in Python, and Paddle 2's fails.
    fused_attention=lambda device_kind, dtype: device_kind == "gpu" and dtype in ("bf16", "fp16"),
    starts=("capture", "compile", "warm-cache", "exported", "ahead-of-time"),
    streams=("static", "dynamic", "powers-of-two", "multiples-of-64", "quantiles", "longest"),
    cache_variables=("FLAGS_cinn_kernel_cache_save_path",),
)
