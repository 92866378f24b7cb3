"""The passes prefill and decode: a cache that goes from call to call, in a jitted one donated to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation
from frameworks.jax import attention, gpt, graphs, llama, program
from measurement.cells import Cell
from workloads.decode import STEPS
from workloads.spec import Arrays, Workload

PASSES = ("prefill", "decode", "generate")


class Generator:
    """Calling it runs the model on its cache. `advance(params, cache, *inputs)` gives the new cache and outputs."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype):
        model, batch, attends = workload.model, int(cell.parameter("batch_size")), cell.parameter("attention")
        decodes = cell.pass_name == "decode"
        places = workload.places(dict(cell.parameters))
        self.detail = ""
        self.params = llama.parameters(model, weights, load, places)
        if decodes:
            if attends == "fused":
                raise Unsupported("jax.nn.dot_product_attention takes no cache of (batch, heads, places, head size).")
            self.cache, self._decodes = llama.past(model, batch, weights, load), True
            self.forward = partial(llama.decode, model)
            # What calls write over, which `restore` puts back.
            self._first = [tuple(part[:, :, -STEPS:] for part in layer) for layer in self.cache]
        else:
            attend = llama.explicit_attention
            if attends == "fused":
                attend, self.detail = attention.fused(gpt.fused_attention, model, cell, dtype)
            # Put there, as a jitted function's results are: else the first call would have a graph of its own.
            empty = llama.empty(model, batch, places, dtype)
            self.cache, self._decodes = jax.device_put(empty, self.params["embedding"].sharding), False
            self.forward = partial(llama.prefill, model, attend)
            self._places = jnp.asarray(workload.places_compared(dict(cell.parameters)))
        self.advance = self.forward  # until it is jitted

    def __call__(self, *inputs: jax.Array) -> dict[str, Any]:
        self.cache, output = self.advance(self.params, self.cache, *inputs)
        return {**output, "cache": Written(self, inputs[-1])}

    def cached(self, given: jax.Array) -> dict[str, jax.Array]:
        """Keys and values (layers, B, nkv, n, hs) where the cache is compared after a call whose last input this is."""
        places = jnp.concatenate([given - 1, given]) if self._decodes else self._places
        parts = [[jnp.take(part, places, axis=2) for part in layer] for layer in self.cache]
        keys, values = (jnp.stack(part) for part in zip(*parts, strict=True))
        return {"keys": keys, "values": values}

    def restore(self) -> None:
        """Put back what the cache held before the first call."""
        if self._decodes:
            pairs = zip(self.cache, self._first, strict=True)
            self.cache = [
                tuple(_ending(part, first) for part, first in zip(layer, firsts, strict=True))
                for layer, firsts in pairs
            ]


class Cached:
    """Parameters and a cache that both parts of a generation write to. Without `attention` but that written out."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype):
        if cell.parameter("attention") == "fused":
            raise Unsupported("jax.nn.dot_product_attention takes no cache of (batch, heads, places, head size).")
        model, batch, places = workload.model, int(cell.parameter("batch_size")), workload.places(dict(cell.parameters))
        self.params = llama.parameters(model, weights, load, places)
        self.cache = jax.device_put(llama.empty(model, batch, places, dtype), self.params["embedding"].sharding)
        self.read = _choosing(partial(llama.prefill, model, llama.explicit_attention))
        self.proceed = _choosing(partial(llama.decode, model))

    def part(self, cell: Cell, name: str, forward: Callable, inputs: tuple, compilations: graphs.Compilations) -> Step:
        """One of the parts as the cell's mode calls it; `name` tells its compilations from the other's."""
        cell = replace(cell, pass_name=f"{cell.pass_name}-{name}")
        arguments = (self.params, self.cache, *inputs)
        advance, capture = compilations.callable(cell, forward, arguments, "", donated=(1,))

        def call(*inputs: jax.Array) -> dict[str, jax.Array]:
            self.cache, output = advance(self.params, self.cache, *inputs)
            return output

        return Step(call, [inputs], capture, program=program.listing(cell, advance, arguments, call, inputs))


def generating(
    cached: Cached, cell: Cell, prompts: Sequence[tuple], places: Sequence[jax.Array], compilations: graphs.Compilations
) -> Step:
    """Generations in the cell's mode."""
    tokens = jnp.zeros_like(prompts[0][0][:, 0])
    read = cached.part(cell, "prompt", cached.read, prompts[0], compilations)
    proceed = cached.part(cell, "token", cached.proceed, (tokens, places[0]), compilations)
    return Generation(read, proceed, places, partial(jnp.stack, axis=1)).step(prompts)


def _choosing(forward: Callable) -> Callable:
    """`forward`, whose output is the likeliest next token of each sequence and its logit, (B,)."""

    def chosen(params: dict, cache: llama.Cache, *inputs: jax.Array) -> tuple[llama.Cache, dict]:
        cache, output = forward(params, cache, *inputs)
        logits = output["logits"]
        tokens = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return cache, {NEXT: tokens, LARGEST: jnp.max(logits, axis=-1)}

    return chosen


class Written:
    """A call's part of the cache, told once it is asked for, which must be before the next call."""

    def __init__(self, generator: Generator, given: jax.Array):
        self._generator, self._given = generator, given

    def __call__(self) -> dict[str, jax.Array]:
        return self._generator.cached(self._given)

    def block_until_ready(self) -> Written:
        """What `jax.block_until_ready` calls: return when the newest cache is there."""
        jax.block_until_ready(self._generator.cache)
        return self


@partial(jax.jit, donate_argnums=0)
def _ending(part: jax.Array, last: jax.Array) -> jax.Array:
    return part.at[:, :, -STEPS:].set(last)
