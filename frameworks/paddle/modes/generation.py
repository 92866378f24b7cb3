"""The passes with a cache: a cell's model, and generations of its two parts in the cell's mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import paddle
from paddle import nn

from frameworks.adapter import Adapter, Step
from frameworks.generating import LARGEST, NEXT, Generation, with_cache
from frameworks.paddle.models.causal import Cache, CausalModel
from frameworks.paddle.modes import graphs, inference
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


class Choosing(nn.Layer):
    """A call of the model -> the likeliest next token of each sequence and its logit, (B,)."""

    def __init__(self, model: CausalModel):
        super().__init__()
        self.model = model

    def forward(self, ids, place=None, cache=None):
        logits = self.model(ids, place, cache)
        return paddle.argmax(logits, axis=-1), paddle.max(logits, axis=-1)


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of the cell's pass in its mode; calls with logits also return the cache's content."""
    model, sets = inference.model_of(workload, cell, weights), [adapter.place(cell, arrays) for arrays in inputs]
    if cell.implementation == "library":
        from frameworks.paddle.models import library_llama  # as in `models`

        return library_llama.prepared(workload, cell, model, weights, sets)
    cache = Cache(model, workload, cell, weights)
    in_mode = partial(graphs.in_mode, workload, cell, cache=cache.layers)
    if cell.pass_name == "generate":
        places = [paddle.to_tensor(place) for place in workload.places_given(dict(cell.parameters))]
        return _generating(model, in_mode, sets, places)
    names = inference.OUTPUTS[workload.family]
    return in_mode(model, sets, names, partial(with_cache, cached=cache.compared), cache.restore)


def _generating(
    model: CausalModel, in_mode: Callable, prompts: Sequence[tuple], places: Sequence[paddle.Tensor]
) -> Step:
    """Return generations of two graphs, prompt and token, each `in_mode(layer, input sets, names of results)`."""
    token = (paddle.zeros([len(prompts[0][0])], "int64"), places[0])
    read, proceed = (in_mode(Choosing(model).eval(), sets, (NEXT, LARGEST)) for sets in (prompts, [token]))
    stacked = partial(paddle.stack, axis=1)
    if read.load:  # a predictor's results are its own memory
        return Generation(read, proceed, places, stacked, paddle.clone).step(prompts)
    return Generation(read, proceed, places, stacked).step(prompts)
