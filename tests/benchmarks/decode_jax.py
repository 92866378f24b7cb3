"""What a decoded token takes under jax.jit on a GPU, and what changes it: XLA's options, and how products are written.

Random weights made on the GPU; fewer layers than the model's keep it short. For each variant a line of JSON:
milliseconds a call (50 calls a sample), and how many library calls and fusions of each kind the compiled step has.

python3 tests/benchmarks/decode_jax.py --workload llama-7b --layers 8
"""

import collections
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from decode_options import options

import workloads
from frameworks.jax import causal, llama
from workloads.decode import PAST

CALLS, SAMPLES, PLACES = 50, 7, 1024
usual = causal.product


class Drawn(dict):
    """Random weights by name, made when they are asked for."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]):
        super().__init__()
        self._shapes, self._number = shapes, 0

    def __getitem__(self, name: str) -> jax.Array:
        self._number += 1
        drawn = jax.random.normal(jax.random.key(self._number), self._shapes[name], jnp.bfloat16)
        drawn = drawn * jnp.bfloat16(1.28 if name in PAST else 0.02)
        return drawn + 1 if drawn.ndim == 1 else drawn  # norms around 1


def in_out(x: jax.Array, weight: jax.Array) -> jax.Array:
    """The product with a matrix that lies as (in, out), as Flax has it; embeddings stay (out, in)."""
    return x @ weight if weight.shape[0] == x.shape[-1] else usual(x, weight)


def summed(x: jax.Array, weight: jax.Array) -> jax.Array:
    """The product as a multiplication and a sum."""
    return (x[..., None, :].astype(jnp.float32) * weight.astype(jnp.float32)).sum(-1).astype(x.dtype)


# XLA's options, the product, and whether matrices are turned to (in, out).
VARIANTS: dict[str, tuple[dict, Callable, bool]] = {
    "jit": ({}, usual, False),
    "no triton gemm": ({"xla_gpu_enable_triton_gemm": False}, usual, False),
    "no cublas fallback": ({"xla_gpu_cublas_fallback": False}, usual, False),
    "weights (in, out)": ({}, in_out, True),
    "products summed": ({}, summed, False),
    "exhaustive tiling": ({"xla_gpu_exhaustive_tiling_search": True}, usual, False),
}


def turned(params: dict) -> dict:
    blocks = [{name: p.T.copy() if p.ndim == 2 else p for name, p in block.items()} for block in params["blocks"]]
    return params | {"blocks": blocks}


def measured(name: str, model, params: dict, weights: Drawn) -> dict:
    options, product, turns = VARIANTS[name]
    causal.product = llama.product = product
    params = turned(params) if turns else params
    cache = causal.past(model, 1, weights, jnp.asarray)
    step = jax.jit(partial(causal.decode, llama, model), donate_argnums=1, compiler_options=options or None)
    inputs = jnp.zeros(1, jnp.int32), jnp.array([PLACES - 1], jnp.int32)
    text, samples = step.lower(params, cache, *inputs).compile().as_text(), []
    for _ in range(SAMPLES + 1):
        start = time.perf_counter()
        for _ in range(CALLS):
            cache, output = step(params, cache, *inputs)
        jax.block_until_ready((cache, output))
        samples.append(1e3 * (time.perf_counter() - start) / CALLS)
    calls = collections.Counter(re.findall(r'custom_call_target="([^"]+)"', text))
    fusions = collections.Counter(re.findall(r"kind=(k\w+)", text))
    return {"variant": name, "ms": sorted(samples[1:]), "calls": dict(calls), "fusions": dict(fusions)}


def main() -> None:
    chosen = options(VARIANTS)
    decode = workloads.get(chosen.workload, "decode")
    model = replace(decode.model, layers=chosen.layers or decode.model.layers)
    weights = Drawn(replace(decode, model=model).weight_shapes({"batch_size": 1, "context": PLACES}))
    params = llama.parameters(model, weights, partial(jnp.asarray, dtype=jnp.bfloat16), PLACES)
    for name in chosen.variants:
        line = measured(name, model, params, weights)
        print(json.dumps({"workload": chosen.workload, "layers": model.layers, **line}), flush=True)


if __name__ == "__main__":
    main()
