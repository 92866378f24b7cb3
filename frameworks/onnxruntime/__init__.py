"""Description of ONNX Runtime, a deployment runtime, without importing it."""

from __future__ import annotations

from frameworks.description import Framework, Mode, openmp_environment

INFERENCE = ("inference",)

FRAMEWORK = Framework(
    name="onnxruntime",
    title="ONNX Runtime",
    colour="#0f8f83",
    distributions=("onnxruntime", "onnx"),
    modes=(
        Mode(
            "eager",
            graph=False,
            summary="ORT_DISABLE_ALL: node by node as the model is written, with dynamic batch and sequence axes",
            devices=("cpu",),
            passes=INFERENCE,
        ),
        Mode(
            "optimized",
            graph=True,
            call="onnxruntime.InferenceSession(path)",
            summary="ORT_ENABLE_ALL (the default): folded constants and fused nodes, for the call's shape",
            devices=("cpu",),
            passes=INFERENCE,
            # It fuses pairs (a sum into a norm, a bias into a GELU): most pointwise results still reach memory.
            fuses=False,
        ),
    ),
    default_graph=("optimized",),
    models={"plain": ("bert", "gpt", "mlp", "matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead")},
    starts=("compile", "exported", "ahead-of-time", "ahead-of-time-no-compiler"),
    environment=lambda threads, device_kind: openmp_environment(threads),
    swept=False,  # unlike the four, it only runs finished models
)
