"""PyTorch, as the suite knows it without importing it."""

from __future__ import annotations

from frameworks.description import Framework, Mode, openmp_environment


def environment(threads: int, device_kind: str) -> dict[str, str]:
    """Variables a worker needs before it starts: thread counts, no network, and Inductor without constant weights."""
    return {
        **openmp_environment(threads),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
        # transformers 4 imports whatever else is installed unless told not to.
        "USE_TORCH": "1",
        "USE_TF": "0",
        "USE_FLAX": "0",
        # Freezing would make the weights constants of the graph, and a constant may be folded away.
        "TORCHINDUCTOR_FREEZING": "0",
        "TORCHINDUCTOR_AUTOTUNE_NUM_CHOICES_DISPLAYED": "0",  # no tables on stderr
    }


FRAMEWORK = Framework(
    name="torch",
    title="PyTorch",
    distributions=("torch", "transformers", "numpy", "triton", "safetensors"),
    modes=(
        Mode("eager", graph=False, summary="operator by operator"),
        Mode("inductor", graph=True, summary='torch.compile(mode="default")', fuses=True),
        Mode(
            "inductor-reduce-overhead",
            graph=True,
            summary='torch.compile(mode="reduce-overhead"): Inductor\'s kernels inside CUDA graphs',
            devices=("gpu",),
            fuses=True,
        ),
        Mode(
            "inductor-max-autotune",
            graph=True,
            fuses=True,
            summary='torch.compile(mode="max-autotune"): tuned kernels, on a GPU inside CUDA graphs',
        ),
        Mode(
            "cudagraphs",
            graph=True,
            summary='torch.compile(backend="cudagraphs"): the eager kernels inside a CUDA graph',
            devices=("gpu",),
        ),
    ),
    default_graph="inductor",
    models={
        "library": ("bert",),
        "plain": ("bert", "gpt", "mlp", "matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead"),
    },
    environment=environment,
    attention_kernel=lambda implementation, device_kind, dtype: True,  # scaled_dot_product_attention, the library too
    cache_variables=("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"),
)
