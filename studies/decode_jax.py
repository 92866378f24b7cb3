"""What a decoded token takes under jax.jit on a GPU, and what changes it: XLA's options, and how products are written.

Random weights made on the GPU; fewer layers than the model's keep it short. For each variant a line of JSON:
milliseconds a call (50 calls a sample), and of 50 tokens generated in one call, which keeps Python out; the largest
difference of its logits from the first variant's, relative to the largest of these; and how many library calls and
fusions of each kind the compiled step has.

python3 studies/decode_jax.py --workload llama-7b --layers 8
"""

import collections
import json
import re
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from decode_options import options

import workloads
from frameworks.jax.models import causal, llama, matrices
from workloads.decode import PAST
from workloads.products import MATMUL, SUM

CALLS, SAMPLES = 50, 7
usual = matrices.product


class Drawn(dict):
    """Random weights by name, made when they are asked for, the same each time."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]):
        super().__init__()
        self._shapes = shapes

    def __getitem__(self, name: str) -> jax.Array:
        key = jax.random.key(zlib.crc32(name.encode()))
        drawn = jax.random.normal(key, self._shapes[name], jnp.bfloat16)
        drawn = drawn * jnp.bfloat16(1.28 if name in PAST else 0.02)
        return drawn + 1 if drawn.ndim == 1 else drawn  # norms around 1


def in_out(x: jax.Array, weight: jax.Array, form: str) -> jax.Array:
    """The product with a matrix that lies as (in, out), as Flax has it; embeddings stay (out, in)."""
    return x @ weight if weight.shape[0] == x.shape[-1] else usual(x, weight, form)


def of_kept(x: jax.Array, weight: jax.Array, form: str) -> jax.Array:
    """The product, where the input is made before and, of a sum, not again for every row."""
    return usual(jax.lax.optimization_barrier(x), weight, form)


# Programmatic dependent launch: a kernel is set up while the one before it still runs, and waits inside for its end.
EARLY, NOT_EARLY = {"xla_gpu_enable_pdl": True}, {"xla_gpu_enable_pdl": False}
# XLA's options, the product and how it is written (`PRODUCT`).
VARIANTS: dict[str, tuple[dict, Callable, str]] = {
    "jit": ({}, usual, MATMUL),
    "no triton gemm": ({"xla_gpu_enable_triton_gemm": False}, usual, MATMUL),
    "no cublas fallback": ({"xla_gpu_cublas_fallback": False}, usual, MATMUL),
    "weights (in, out)": ({}, in_out, MATMUL),
    "products summed": ({}, usual, SUM),
    "exhaustive tiling": ({"xla_gpu_exhaustive_tiling_search": True}, usual, MATMUL),
    "products summed, inputs kept": ({}, of_kept, SUM),
    "early launch": (EARLY, usual, MATMUL),
    "no early launch": (NOT_EARLY, usual, MATMUL),
    "no early launch, products summed": (NOT_EARLY, usual, SUM),
}


def turned(params: dict) -> dict:
    blocks = [{name: p.T.copy() if p.ndim == 2 else p for name, p in block.items()} for block in params["blocks"]]
    return params | {"blocks": blocks}


def milliseconds(calls: int, take: Callable[[], object]) -> list[float]:
    """Of a call, sorted; `take` makes so many, and a first sample is left out."""
    samples = []
    for _ in range(SAMPLES + 1):
        start = time.perf_counter()
        jax.block_until_ready(take())
        samples.append(1e3 * (time.perf_counter() - start) / calls)
    return sorted(samples[1:])


def measured(name: str, model, params: dict, weights: Drawn, place: int) -> tuple[dict, jax.Array]:
    """The variant's line, and its logits in float32."""
    options, product, form = VARIANTS[name]
    llama.product = product
    params = turned(params) if product is in_out else params
    proceed = partial(causal.decode, llama, replace(model, product=form))
    step = jax.jit(proceed, donate_argnums=1, compiler_options=options or None)
    inputs = jnp.zeros(1, jnp.int32), jnp.array([place], jnp.int32)
    held = {"cache": causal.past(model, 1, weights, jnp.asarray)}
    text = step.lower(params, held["cache"], *inputs).compile().as_text()

    def called() -> jax.Array:
        for _ in range(CALLS):
            held["cache"], output = step(params, held["cache"], *inputs)
        return output["logits"]

    @partial(jax.jit, donate_argnums=1, compiler_options=options or None)
    def loop(params, cache, token, place):
        def body(_, state):
            cache, output = proceed(params, state[0], state[1], place)
            return cache, output["logits"].argmax(-1).astype(jnp.int32)

        return jax.lax.fori_loop(0, CALLS, body, (cache, token))

    def looped() -> jax.Array:
        held["cache"], token = loop(params, held["cache"], *inputs)
        return token

    calls = collections.Counter(re.findall(r'custom_call_target="([^"]+)"', text))
    fusions = collections.Counter(re.findall(r"kind=(k\w+)", text))
    logits = called().astype(jnp.float32)
    times = {"ms": milliseconds(CALLS, called), "loop_ms": milliseconds(CALLS, looped)}
    return {"variant": name, **times, "calls": dict(calls), "fusions": dict(fusions)}, logits


def main() -> None:
    chosen = options(VARIANTS)
    decode = workloads.get(chosen.workload, "decode")
    model = replace(decode.model, layers=chosen.layers or decode.model.layers)
    weights = Drawn(replace(decode, model=model).weight_shapes({"batch_size": 1, "context": chosen.places}))
    params = llama.parameters(model, weights, partial(jnp.asarray, dtype=jnp.bfloat16), chosen.places)
    expected = None
    for name in chosen.variants:
        line, logits = measured(name, model, params, weights, chosen.places - 1)
        expected = logits if expected is None else expected
        line["difference"] = float(abs(logits - expected).max() / abs(expected).max())
        print(
            json.dumps({"workload": chosen.workload, "layers": model.layers, "places": chosen.places, **line}),
            flush=True,
        )


if __name__ == "__main__":
    main()
