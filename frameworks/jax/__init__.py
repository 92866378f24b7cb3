"""JAX: eager is op by op dispatch to XLA, never `disable_jit`; the graph mode is one `jax.jit` of the whole model."""

from __future__ import annotations

from frameworks.description import Crossing, Framework, Mode, Rung, openmp_environment
from frameworks.traces import hlo

# For each of several devices. With a pool of 2 threads for 2 devices, training in eager mode waited forever in 3 of 3
# runs of up to 600 steps; with 3 or 4 threads in none of 5.
POOL_THREADS_MORE = 1


def _environment(threads: int, device_kind: str) -> dict[str, str]:
    variables = {
        **openmp_environment(threads),
        # XLA's thread pools read these two when the backend starts; the often-quoted XLA_FLAGS for Eigen do nothing.
        "PJRT_NPROC": str(threads),
        "NPROC": str(threads),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        # transformers would import other frameworks that are installed with JAX.
        "USE_FLAX": "1",
        "USE_TORCH": "0",
        "USE_TF": "0",
        # By default a compilation under 1 s is not stored, so a warm cache would hold some of the models only.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    if device_kind == "cpu":
        return {**variables, "JAX_PLATFORMS": "cpu"}  # a CUDA build would take the GPU, and memory on it
    return {**variables, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def _devices(ranks: int, threads: int, device_kind: str) -> dict[str, str]:
    """Return variables that make several devices of a CPU, whose one pool has the threads of all.

    XLA's collectives block one of its threads for each device that waits for others.
    """
    if device_kind != "cpu":
        return {}
    pool = ranks * (threads + POOL_THREADS_MORE)
    return {"JAX_NUM_CPU_DEVICES": str(ranks)} | dict.fromkeys(("PJRT_NPROC", "NPROC"), str(pool))


TO_BLOCKS = (
    Rung("eager", "op by op"),
    Rung("jit-blocks", "one dispatch per block instead of per operator; nothing fused"),
)
ONE_SHAPE = "XLA compiles for one shape"
ONE_DISPATCH, FUSION = "one dispatch for the whole model", "operators fused"

FRAMEWORK = Framework(
    name="jax",
    title="JAX",
    colour="#2f74e0",
    distributions=("jax", "jaxlib", "flax", "optax", "transformers", "numpy"),
    switches=("JAX_", "XLA_"),
    modes=(
        Mode("eager", graph=False, summary="op by op: each operator is a separate XLA executable", deployed=False),
        Mode(
            "jit",
            graph=True,
            summary="jax.jit of the whole model, compiled by XLA",
            fuses=True,
            call="jax.jit(function)",
            one_shape=ONE_SHAPE,
        ),
        Mode(
            "jit-blocks",
            graph=True,
            summary="a separate jax.jit of each block (layers, embeddings, head), without fusion and command buffers",
            passes=("inference",),
            call='jax.jit(block, compiler_options={"xla_disable_hlo_passes": …})',
            deployed=False,
            one_shape=ONE_SHAPE,
        ),
        Mode(
            "jit-unfused",
            graph=True,
            summary="jax.jit of the whole model, without XLA's fusion passes",
            call='jax.jit(function, compiler_options={"xla_disable_hlo_passes": …})',
            deployed=False,
            one_shape=ONE_SHAPE,
        ),
        Mode(
            "jit-unfused-uncaptured",
            graph=True,
            summary="jax.jit of the whole model, without XLA's fusion passes and command buffers",
            devices=("gpu",),
            call='jax.jit(function, compiler_options={"xla_disable_hlo_passes": …})',
            deployed=False,
            one_shape=ONE_SHAPE,
        ),
        Mode(
            "jit-uncaptured",
            graph=True,
            summary="jax.jit of the whole model, without XLA's command buffers: each kernel is launched separately",
            devices=("gpu",),
            fuses=True,
            call='jax.jit(function, compiler_options={"xla_gpu_enable_command_buffer": ""})',
            deployed=False,
            one_shape=ONE_SHAPE,
        ),
        Mode(
            "jit-loop",
            graph=True,
            summary="jax.jit of a whole generation: the prompt, and a scan over the tokens",
            passes=("generate",),
            fuses=True,
            call="jax.jit(generate), with jax.lax.scan over tokens",
            one_shape=ONE_SHAPE,
        ),
        Mode(
            "jit-scan",
            graph=True,
            summary="jax.jit with a scan over the layers and stacked weights and cache",
            passes=("prefill", "decode", "generate"),
            fuses=True,
            call="jax.jit(function), with jax.lax.scan over layers",
        ),
    ),
    default_graph=("jit",),
    ladders={
        "cpu": (*TO_BLOCKS, Rung("jit-unfused", ONE_DISPATCH), Rung("jit", FUSION)),
        "gpu": (
            *TO_BLOCKS,
            Rung("jit-unfused-uncaptured", ONE_DISPATCH),
            Rung("jit-uncaptured", FUSION),
            Rung("jit", "command buffers (CUDA graphs)"),
        ),
    },
    crossings={
        "gpu": Crossing(("launching", "kernels"), "jit-unfused-uncaptured", "jit-unfused", "jit-uncaptured", "jit"),
    },
    models={
        "library": ("bert",),
        "plain": (
            *("bert", "gpt", "llama", "resnet", "vit", "lstm", "mlp"),
            *("matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead"),
        ),
    },
    trained=("bert", "gpt", "llama", "resnet", "vit", "lstm", "mlp"),
    checkpointed=("bert", "gpt", "llama"),
    other_architectures={"llama": "transformers 4 has only Llama 2's rotary frequencies"},
    strategies=dict.fromkeys(("ddp", "fsdp"), ("eager", "jit")),
    devices=_devices,
    user_model_passes=("inference", "training"),
    environment=_environment,
    # cuDNN's kernel; elsewhere XLA composes the operator, and writes the scores.
    attention_kernel=lambda implementation, device_kind, dtype: (
        implementation == "plain" and device_kind == "gpu" and dtype in ("bf16", "fp16")
    ),
    # On a GPU cuDNN's kernel for 16-bit types; elsewhere the same operator composed by XLA, which fp16 on a CPU lacks.
    fused_attention=lambda device_kind, dtype: (device_kind, dtype) != ("cpu", "fp16"),
    defaults={"layout": "nhwc", "cell": "scan"},  # as Flax has them
    dumps=hlo.DUMPS,
    cache_variables=("JAX_COMPILATION_CACHE_DIR",),
    starts=("compile", "warm-cache", "shipped-cache", "exported", "ahead-of-time", "ahead-of-time-no-compiler"),
    streams=("static", "powers-of-two", "multiples-of-64", "quantiles", "longest", "polymorphic"),
    stores_streams=True,
)
