"""NumPy as a framework: the reference's own code behind the boundary, op by op on the CPU."""

from frameworks.description import Framework, Mode, openmp_environment

FRAMEWORK = Framework(
    name="numpy",
    title="NumPy",
    distributions=("numpy",),
    modes=(Mode("eager", graph=False, summary="operator by operator", devices=("cpu",), passes=("inference",)),),
    default_graph=(),
    models={
        "plain": (
            *("bert", "gpt", "resnet", "vit", "lstm", "mlp"),
            *("matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead"),
        ),
    },
    environment=lambda threads, device_kind: openmp_environment(threads),
    is_reference=True,
)
