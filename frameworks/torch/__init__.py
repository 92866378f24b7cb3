"""Description of PyTorch, without importing it."""

from __future__ import annotations

from frameworks.description import Crossing, Framework, Mode, Rung, openmp_environment

STREAMS = (
    *("static", "automatic", "dynamic", "marked"),
    *("powers-of-two", "multiples-of-64", "quantiles", "longest"),
)


def environment(threads: int, device_kind: str) -> dict[str, str]:
    """Return variables a worker needs before it starts: thread counts, no network, weights that are no constants."""
    return {
        **openmp_environment(threads),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
        # transformers 4 imports whatever else is installed unless forbidden.
        "USE_TORCH": "1",
        "USE_TF": "0",
        "USE_FLAX": "0",
        # It would make the weights constants of every mode's graph; the mode inductor-freezing sets it itself.
        "TORCHINDUCTOR_FREEZING": "0",
        "TORCHINDUCTOR_AUTOTUNE_NUM_CHOICES_DISPLAYED": "0",  # no tables on stderr
        "AOTI_RUNTIME_CHECK_INPUTS": "1",  # otherwise packages accept shapes that are not theirs
    }


def _form(name: str, call: str, packages: tuple[str, ...] = (), devices: tuple[str, ...] = ("cpu", "gpu")) -> Mode:
    """Return a deployed form of models; its code is the module of the same name in `forms/`."""
    return Mode(
        name,
        graph=True,
        call=call,
        summary=f"{call}, built into a file and loaded",
        devices=devices,
        passes=("inference",),
        fuses=True,
        one_shape="it is exported for one shape",
        artefact=True,
        packages=packages,
    )


# The rungs of every device; in training the optimizer stays outside the graph until the last one.
TO_INDUCTOR = (
    Rung("eager-dynamic-cache", "operator by operator, on a cache that grows by concatenation"),
    Rung("eager", "operator by operator; a key-value cache, if any, is static"),
    Rung("dynamo", "a captured graph with guards instead of the model's Python"),
    Rung("aot-eager", "functional form, operators decomposed as for Inductor"),
    Rung("inductor", "generated kernels, operators fused"),
)
WHOLE = Rung("inductor-whole-iteration", "forward, backward and update in one graph")

RANKED = ("eager", "inductor", "inductor-max-autotune-no-cudagraphs", "dynamo", "aot-eager")

FRAMEWORK = Framework(
    name="torch",
    title="PyTorch",
    colour="#d9541e",
    distributions=("torch", "transformers", "numpy", "triton", "safetensors"),
    aliases=("pytorch",),
    switches=("TORCH", "PYTORCH_"),
    modes=(
        Mode("eager", graph=False, summary="operator by operator"),
        Mode("inductor", graph=True, summary='torch.compile(mode="default")', fuses=True, call="torch.compile(model)"),
        Mode(
            "inductor-reduce-overhead",
            graph=True,
            cuda_graphs=True,
            call='torch.compile(model, mode="reduce-overhead")',
            summary='torch.compile(mode="reduce-overhead"): Inductor\'s kernels inside CUDA graphs',
            devices=("gpu",),
            fuses=True,
        ),
        Mode(
            "inductor-max-autotune",
            graph=True,
            tunes=True,
            cuda_graphs=True,
            call='torch.compile(model, mode="max-autotune")',
            fuses=True,
            summary='torch.compile(mode="max-autotune"): tuned kernels, on a GPU inside CUDA graphs',
        ),
        Mode(
            "inductor-max-autotune-no-cudagraphs",
            graph=True,
            tunes=True,
            call='torch.compile(model, mode="max-autotune-no-cudagraphs")',
            fuses=True,
            summary='torch.compile(mode="max-autotune-no-cudagraphs"): tuned kernels',
        ),
        Mode(
            "inductor-freezing",
            graph=True,
            call="torch.compile(model) with TORCHINDUCTOR_FREEZING=1",
            fuses=True,
            summary="torch.compile with Inductor's freezing: weights are constants, folded and packed ahead",
            passes=("inference",),
        ),
        Mode(
            "inductor-max-autotune-freezing",
            graph=True,
            tunes=True,
            cuda_graphs=True,
            call='torch.compile(model, mode="max-autotune") with TORCHINDUCTOR_FREEZING=1',
            fuses=True,
            summary="max-autotune with freezing: kernels tuned for constant weights, on a GPU inside CUDA graphs",
            passes=("inference",),
        ),
        Mode(
            "inductor-whole-iteration",
            graph=True,
            call="torch.compile(iteration)",
            fuses=True,
            summary="torch.compile over forward, loss, backward and AdamW together, as one graph",
            passes=("training",),
        ),
        Mode(
            "cuda-graph",
            graph=True,
            cuda_graphs=True,
            call="torch.cuda.CUDAGraph (torch.cuda.make_graphed_callables)",
            summary="torch.cuda.CUDAGraph: eager's kernels captured once and replayed, in training the whole iteration",
            devices=("gpu",),
            one_shape="a CUDA graph fixes addresses and sizes",
        ),
        Mode(
            "cudagraphs",
            graph=True,
            cuda_graphs=True,
            call='torch.compile(model, backend="cudagraphs")',
            summary='torch.compile(backend="cudagraphs"), for debugging and not the mode cuda-graph: functional '
            "operators, weights copied at each call",
            devices=("gpu",),
            deployed=False,
        ),
        Mode(
            "dynamo",
            graph=True,
            call='torch.compile(model, backend="eager")',
            summary="Dynamo only: the captured graph with its guards, run by eager mode's kernels",
            deployed=False,
        ),
        Mode(
            "aot-eager",
            graph=True,
            call='torch.compile(model, backend="aot_eager_decomp_partition")',
            summary="Dynamo and AOTAutograd: Inductor's functional, decomposed input graph, run operator by operator",
            deployed=False,
        ),
        Mode(
            "eager-dynamic-cache",
            graph=False,
            summary="eager mode with a cache that grows by concatenation, also with KV_CACHE=static",
            passes=("decode", "generate"),
            cache="dynamic",
            deployed=False,
        ),
        _form("aot-inductor", "torch._inductor.aoti_compile_and_package(torch.export.export(model, inputs))"),
        _form("onnx-runtime", "torch.onnx.export(model, dynamo=True)", ("onnx", "onnxscript", "onnxruntime")),
        _form("openvino", "openvino.convert_model(torch.export.export(model, inputs))", ("openvino",), ("cpu",)),
    ),
    default_graph=("inductor",),
    graph_on_gpu=("inductor-reduce-overhead",),
    ladders={
        "cpu": (*TO_INDUCTOR, Rung("inductor-freezing", "weights as constants, folded and packed ahead"), WHOLE),
        "gpu": (
            *TO_INDUCTOR,
            Rung("inductor-reduce-overhead", "one launch: the kernels in a CUDA graph"),
            Rung("inductor-max-autotune", "kernels chosen by trial"),
        ),
    },
    crossings={
        "gpu": Crossing(("launching", "kernels"), "eager", "cuda-graph", "inductor", "inductor-reduce-overhead"),
    },
    models={
        "library": ("bert", "llama", "qwen3", "resnet", "vit"),
        "plain": (
            *("bert", "gpt", "llama", "qwen3", "resnet", "vit", "lstm", "mlp"),
            *("matmul", "pointwise-chain", "fused-cos", "stream", "op-overhead"),
        ),
    },
    trained=("bert", "gpt", "llama", "resnet", "vit", "lstm", "mlp"),
    strategies=dict.fromkeys(("ddp", "fsdp"), RANKED),
    checkpointed=("bert", "gpt", "llama", "vit", "mlp"),
    unrolled=("lstm",),
    across_nodes=True,
    user_model_passes=("inference", "training"),
    user_model_dynamic=True,
    environment=environment,
    attention_kernel=lambda implementation, device_kind, dtype: True,  # scaled_dot_product_attention, the library too
    fused_attention=lambda device_kind, dtype: True,
    conventions=lambda device_kind: {"batch_statistics": "rank"},  # BatchNorm of DDP and FSDP
    cache_variables=("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "EAGER_VS_GRAPH_ARTEFACTS"),
    starts=("compile", "regional", "warm-cache", "shipped-cache", "ahead-of-time", "ahead-of-time-no-compiler"),
    streams=(*STREAMS, *(f"{name}-cuda-graphs" for name in STREAMS)),
    stores_streams=True,
)
