"""Description of TensorFlow, without importing it."""

from __future__ import annotations

from frameworks.description import Framework, Mode, Rung, openmp_environment
from frameworks.traces import hlo

# Terraform's (developer.hashicorp.com/terraform/cli/config/environment-variables); some of them hold secrets.
TERRAFORM = (
    *("TF_CLI_", "TF_CLOUD_", "TF_DATA_DIR", "TF_IGNORE", "TF_IN_AUTOMATION", "TF_INPUT", "TF_LOG", "TF_PLUGIN_CACHE_"),
    *("TF_REATTACH_PROVIDERS", "TF_REGISTRY_", "TF_STATE_PERSIST_INTERVAL", "TF_TOKEN_", "TF_VAR_", "TF_WORKSPACE"),
)

DEVICES = "EAGER_VS_GRAPH_DEVICES"  # the variable with the number of devices that a process trains on


def environment(threads: int, device_kind: str) -> dict[str, str]:
    """Return variables for a worker with `threads` intra-op threads on `cpu` or `gpu`."""
    variables = openmp_environment(threads) | {
        # TensorFlow's own pools; OMP_NUM_THREADS reaches none of them in a stock build.
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_USE_LEGACY_KERAS": "1",  # transformers' TFBertModel is written for Keras 2
        "KERAS_BACKEND": "tensorflow",  # of Keras 3, before a shell's own and ~/.keras/keras.json
        "TF_FUNCTION_JIT_COMPILE_DEFAULT": "0",  # else `function` could be XLA by default
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    }
    if device_kind == "cpu":
        # Level 3: a GPU build on a CPU logs a missing driver as an error.
        return variables | {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return variables | {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}


FRAMEWORK = Framework(
    name="tensorflow",
    title="TensorFlow",
    colour="#a97b0a",
    distributions=("tensorflow", "tf-keras", "keras", "transformers", "numpy"),
    aliases=("tf",),
    switches=("TF_", "XLA_", "KERAS_"),
    no_switches=TERRAFORM,
    modes=(
        # Exported models, and Keras' predict, run a tf.function.
        Mode("eager", graph=False, summary="one kernel per operator", deployed=False),
        Mode(
            "function", graph=True, summary="tf.function: one graph, optimized by Grappler", call="tf.function(model)"
        ),
        Mode(
            "function-xla",
            graph=True,
            summary="tf.function(jit_compile=True): one graph compiled by XLA",
            fuses=True,
            call="tf.function(model, jit_compile=True)",
            one_shape="XLA compiles for each shape",
        ),
        Mode(
            "function-unoptimized",
            graph=True,
            summary="tf.function as traced, without Grappler",
            call='tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True}); tf.function(model)',
            deployed=False,
        ),
    ),
    ladders=dict.fromkeys(
        ("cpu", "gpu"),
        (
            Rung("eager", "one kernel per operator"),
            Rung("function-unoptimized", "a traced graph instead of Python, run by TensorFlow's executor"),
            Rung("function", "Grappler: the graph rewritten, some operators fused"),
            Rung("function-xla", "kernels compiled by XLA, operators fused"),
        ),
    ),
    default_graph=("function", "function-xla"),
    models={
        "library": ("bert",),
        "plain": (
            *("bert", "gpt", "llama", "resnet", "vit", "lstm", "mlp"),
            *("matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead"),
        ),
    },
    trained=("bert", "gpt", "resnet", "vit", "lstm", "mlp"),
    other_architectures={
        "llama": "transformers has none for TensorFlow",
        "resnet": "keras.applications' ResNet differs in strides and biases; measure it with WORKLOAD=keras:ResNet50",
    },
    # XLA compiles for one device, and so refuses the variables of the other replicas.
    strategies={"ddp": ("eager", "function", "function-unoptimized")},
    devices=lambda ranks, threads, device_kind: {"TF_NUM_INTRAOP_THREADS": str(ranks * threads), DEVICES: str(ranks)},
    user_model_passes=("inference", "training"),
    environment=environment,
    defaults={"layout": "nhwc", "cell": "scan"},  # as Keras has them; its LSTM is cuDNN's where there is a GPU
    # Keras' AdamW, and each replica's own batch norm.
    conventions=lambda device_kind: {"adamw_epsilon": "uncorrected", "batch_statistics": "rank"},
    starts=("capture", "compile", "warm-cache", "shipped-cache", "exported"),
    streams=("static", "automatic", "dynamic", "powers-of-two", "multiples-of-64", "quantiles", "longest"),
    dumps=hlo.DUMPS,
    # XLA's compiled code stays in the process: users who name no directory in TF_XLA_FLAGS have it so.
    cache_variables=(),
)
