"""Choice of a cell's model."""

from __future__ import annotations

from paddle import nn

from frameworks.adapter import DTYPES, Unsupported
from frameworks.paddle.models import cached_gpt, library_images, llama, plain
from frameworks.paddle.models.causal import CausalModel
from measurement.cells import Cell
from workloads.passes import WITH_CACHE
from workloads.spec import Arrays, Workload

WITH_A_CACHE = {"llama": llama.LlamaModel, "gpt": cached_gpt.GptModel}


def build(workload: Workload, cell: Cell, weights: Arrays) -> nn.Layer:
    """Return the cell's model with these weights. Raises `Unsupported` where there is none."""
    if cell.implementation == "library" and workload.family == "resnet":
        return library_images.resnet(workload, dict(cell.parameters), weights)
    if cell.implementation == "library":
        try:
            from frameworks.paddle.models import library, library_llama  # PaddleNLP takes seconds to import
        except ImportError as error:
            reason = f"the library implementation needs the package paddlenlp ({error})"
            raise Unsupported(f"{reason}: install it, or choose IMPL=plain.") from error
        if workload.family == "llama":
            return library_llama.build(workload, cell, weights)
        return library.bert(workload, weights)
    if cell.pass_name in WITH_CACHE:
        return _with_cache(workload, cell, weights)
    if cell.parameter("attention") == "fused" and (cell.device_kind == "cpu" or DTYPES[cell.dtype] == "float32"):
        # There, Paddle 3's operator is the same matmul, softmax and matmul in Python, and Paddle 2's fails.
        raise Unsupported(
            "Paddle has a fused attention kernel for bf16 and fp16 on a GPU only: choose ATTENTION=explicit."
        )
    return plain.MODELS[workload.family](workload, dict(cell.parameters), weights)


def _with_cache(workload: Workload, cell: Cell, weights: Arrays) -> CausalModel:
    """Return the model of the cell's pass. Raises `Unsupported` where it lacks a property of the cell."""
    if cell.parameter("attention") == "fused":
        raise Unsupported("This model has no fused attention in Paddle: choose ATTENTION=explicit.")
    if cell.parameter("cache") == "dynamic":
        raise Unsupported("This model keeps its cache in buffers of fixed shape: choose KV_CACHE=static.")
    batch, places = int(cell.parameter("batch_size")), workload.places(dict(cell.parameters))
    model = workload.model.given(dict(cell.parameters))
    return WITH_A_CACHE[workload.family](model, weights, batch, places)
