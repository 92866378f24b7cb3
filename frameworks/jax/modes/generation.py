"""The passes with a cache, which each call passes to the next; jitted calls donate it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import DTYPES, Adapter, Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation
from frameworks.jax.inspect import program
from frameworks.jax.models import attention, cached_gpt, causal, gpt, llama
from frameworks.jax.modes import graphs
from measurement.cells import Cell
from workloads.decode import STEPS
from workloads.spec import Arrays, Workload

KINDS = {"llama": llama, "gpt": cached_gpt}
LOOP = "jit-loop"
SCAN = "jit-scan"
NO_FUSED_CACHE = (
    "the suite's cache has heads before positions, and jax.nn.dot_product_attention needs positions first: measure "
    "ATTENTION=explicit."
)


class Generator:
    """Calling it runs the model on its cache. `advance(params, cache, *inputs)` returns the new cache and outputs."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype):
        kind, model = KINDS[workload.family], workload.model.given(dict(cell.parameters))
        batch, attends = int(cell.parameter("batch_size")), cell.parameter("attention")
        decodes = cell.pass_name == "decode"
        places = workload.places(dict(cell.parameters))
        self.detail = ""
        params = kind.parameters(model, weights, load, places)
        if decodes:
            if attends == "fused":
                raise Unsupported(NO_FUSED_CACHE)
            self.params, self.cache = arranged(cell, params, causal.past(model, batch, weights, load))
            self._decodes, self.forward = True, partial(causal.decode, kind, model)
            # Values that calls overwrite, and `restore` puts back.
            self._first = jax.tree.map(lambda part: part[..., -STEPS:, :], self.cache)
        else:
            attend = causal.explicit_attention
            if attends == "fused":
                attend, self.detail = attention.fused(gpt.fused_attention, model, cell, dtype)
            # Committed, as a jitted function's results are: else the first call would have a separate graph.
            self.params, empty = arranged(cell, params, causal.empty(model, batch, places, dtype))
            self.cache, self._decodes = jax.device_put(empty, params["last_norm"].sharding), False
            self.forward = partial(causal.prefill, kind, model, attend)
            self._places = jnp.asarray(workload.places_compared(dict(cell.parameters)))
        self.advance = self.forward  # until it is jitted

    def __call__(self, *inputs: jax.Array) -> dict[str, Any]:
        self.cache, output = self.advance(self.params, self.cache, *inputs)
        return {**output, "cache": Written(self, inputs[-1])}

    def cached(self, given: jax.Array) -> dict[str, jax.Array]:
        """Return keys and values (layers, B, nkv, n, hs) that are compared after a call with this last input."""
        places = jnp.concatenate([given - 1, given]) if self._decodes else self._places
        parts = jax.tree.map(lambda part: jnp.take(part, places, axis=-2), self.cache)
        keys, values = causal.stacked(parts) if isinstance(parts, list) else parts
        return {"keys": keys, "values": values}

    def restore(self) -> None:
        """Restore the cache's contents from before the first call."""
        if self._decodes:
            self.cache = jax.tree.map(_ending, self.cache, self._first)


class Cached:
    """Parameters and a cache that both parts of a generation write to. Raises Unsupported for fused attention."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype):
        if cell.parameter("attention") == "fused":
            raise Unsupported(NO_FUSED_CACHE)
        kind, model = KINDS[workload.family], workload.model.given(dict(cell.parameters))
        batch, places = int(cell.parameter("batch_size")), workload.places(dict(cell.parameters))
        params = kind.parameters(model, weights, load, places)
        self.params, empty = arranged(cell, params, causal.empty(model, batch, places, dtype))
        self.cache = jax.device_put(empty, params["last_norm"].sharding)
        self.read = _choosing(partial(causal.prefill, kind, model, causal.explicit_attention))
        self.proceed = _choosing(partial(causal.decode, kind, model))

    def part(self, cell: Cell, name: str, forward: Callable, inputs: tuple, compilations: graphs.Compilations) -> Step:
        """Return one of the parts as the cell's mode calls it; `name` separates its compilations from the other's."""
        cell = replace(cell, pass_name=f"{cell.pass_name}-{name}")
        arguments = (self.params, self.cache, *inputs)
        advance, capture = compilations.callable(cell, forward, arguments, "", donated=(1,))

        def call(*inputs: jax.Array) -> dict[str, jax.Array]:
            self.cache, output = advance(self.params, self.cache, *inputs)
            return output

        return Step(call, [inputs], capture, program=program.listing(cell, advance, arguments, call, inputs))


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of the cell's pass: a model with its own cache, which a jitted call takes from the last."""
    if cell.parameter("cache") == "dynamic":
        raise Unsupported(
            "XLA compiles for one shape, and a growing cache has a new shape at each token: choose KV_CACHE=static."
        )
    dtype = DTYPES[cell.dtype]
    load, sets = partial(adapter.tensor, dtype=dtype), [adapter.place(cell, arrays) for arrays in inputs]
    if cell.pass_name == "generate":
        cached = Cached(workload, cell, weights, load, jnp.dtype(dtype))
        places = list(map(load, workload.places_given(dict(cell.parameters))))
        jax.block_until_ready((cached.params, cached.cache, sets, places))
        return generating(cached, cell, sets, places, adapter.compilations)
    made = Generator(workload, cell, weights, load, jnp.dtype(dtype))
    jax.block_until_ready((made.params, made.cache, sets))
    arguments = (made.params, made.cache, *sets[0])
    made.advance, capture = adapter.compilations.callable(cell, made.forward, arguments, made.detail, donated=(1,))
    listed = program.listing(cell, made.advance, arguments, made, sets[0])
    return Step(made, sets, capture, made.restore, listed)


def arranged(cell: Cell, params: dict, cache: list[causal.Pair]) -> tuple[dict, causal.Cache]:
    """Return parameters and cache as the mode has them: layer by layer, or stacked for a scan."""
    if cell.mode != SCAN:
        return params, cache
    return params | {"blocks": causal.stacked(params["blocks"])}, causal.stacked(cache)


def in_one(cached: Cached, cell: Cell, prompts: Sequence[tuple], places: jax.Array, compilations: Any) -> Step:
    """Return generations that are one call of a jitted function each, with the loop over `places` (N - 1,) inside."""

    def generate(params: dict, cache: causal.Cache, prompt: jax.Array, places: jax.Array) -> tuple[causal.Cache, tuple]:
        cache, first = cached.read(params, cache, prompt)

        def token(carry: tuple, place: jax.Array) -> tuple:
            cache, output = cached.proceed(params, *carry, place[None])
            return (cache, output[NEXT]), output

        (cache, _), others = jax.lax.scan(token, (cache, first[NEXT]), places)
        return cache, (first, others)

    arguments = (cached.params, cached.cache, *prompts[0], places)
    advance, capture = compilations.callable(cell, generate, arguments, "", donated=(1,))

    def call(prompt: jax.Array) -> dict[str, Any]:
        cached.cache, (first, others) = advance(cached.params, cached.cache, prompt, places)

        def every_token() -> dict[str, jax.Array]:
            return {name: jnp.concatenate([first[name][None], others[name]]).T for name in (NEXT, LARGEST)}

        return {**others, "cache": every_token}

    # Eager mode lists its two parts once each, so here is a loop of one token.
    once = (*arguments[:-1], places[:1])
    return Step(call, prompts, capture, program=program.listing(cell, advance, once, call, prompts[0]))


def generating(
    cached: Cached, cell: Cell, prompts: Sequence[tuple], places: Sequence[jax.Array], compilations: graphs.Compilations
) -> Step:
    """Return generations in the cell's mode."""
    if cell.mode == LOOP:
        return in_one(cached, cell, prompts, jnp.concatenate(places), compilations)
    tokens = jnp.zeros_like(prompts[0][0][:, 0])
    read = cached.part(cell, "prompt", cached.read, prompts[0], compilations)
    proceed = cached.part(cell, "token", cached.proceed, (tokens, places[0]), compilations)
    return Generation(read, proceed, places, partial(jnp.stack, axis=1)).step(prompts)


def _choosing(forward: Callable) -> Callable:
    """Return `forward` with the likeliest next token of each sequence and its logit, (B,), as its output."""

    def chosen(params: dict, cache: causal.Cache, *inputs: jax.Array) -> tuple[causal.Cache, dict]:
        cache, output = forward(params, cache, *inputs)
        logits = output["logits"]
        tokens = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return cache, {NEXT: tokens, LARGEST: jnp.max(logits, axis=-1)}

    return chosen


class Written:
    """A call's part of the cache, read on demand, which must be before the next call."""

    def __init__(self, generator: Generator, given: jax.Array):
        self._generator, self._given = generator, given

    def __call__(self) -> dict[str, jax.Array]:
        return self._generator.cached(self._given)

    def block_until_ready(self) -> Written:
        """Return itself once the newest cache is there; `jax.block_until_ready` calls it."""
        jax.block_until_ready(self._generator.cache)
        return self


@partial(jax.jit, donate_argnums=0)
def _ending(part: jax.Array, last: jax.Array) -> jax.Array:
    return part.at[..., -STEPS:, :].set(last)
