"""Why does XLA's CPU compiler copy a donated cache at batch 1?

A decode step of two layers: how many updates of the cache and how many copies of a tensor of its shape the compiled
module has, at batch 1 and 2, and at batch 1 without XLA's `fusion` pass, which takes each update into two fusions:
the one that gives it back, and the one that feeds attention. Both then claim the donated memory.

Then, at batch 2, what a scan over stacked layers (mode `jit-scan`) needs beside its arguments and results, how many of
a layer's four matrices the loop takes out of the stack as tensors of their own, and how often the module copies one of
the two stacks that are the cache.

.venvs/jax-cpu/bin/python studies/jax_cache_copies.py
"""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import workloads
from frameworks.jax.models import causal, llama

PLACES = 128


def compiled(batch: int, options: dict[str, str], stacks: bool = False) -> Compiled:
    """llama-tiny's decode step."""
    decode = workloads.get("llama-tiny", "decode")
    shapes = decode.weight_shapes({"batch_size": batch, "context": PLACES})
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    params = llama.parameters(decode.model, weights, jnp.asarray, PLACES)
    cache = causal.past(decode.model, batch, weights, jnp.asarray)
    if stacks:
        params, cache = params | {"blocks": causal.stacked(params["blocks"])}, causal.stacked(cache)
    step = jax.jit(partial(causal.decode, llama, decode.model), donate_argnums=1, compiler_options=options or None)
    inputs = jnp.zeros(batch, jnp.int32), jnp.array([PLACES - 1], jnp.int32)
    return step.lower(params, cache, *inputs).compile()


def main() -> None:
    model = workloads.get("llama-tiny", "decode").model
    print(f"{2 * model.layers} tensors in the cache; updates, copies of a tensor of its shape")
    for name, batch, options in (
        ("batch 1", 1, {}),
        ("batch 1, no fusion", 1, {"xla_disable_hlo_passes": "fusion"}),
        ("batch 2", 2, {}),
    ):
        text = compiled(batch, options).as_text()
        tensor = rf"f32\[(?:{batch},)?{model.kv_heads},{PLACES},{model.head_size}\]"
        copies = len(re.findall(rf"= {tensor}\S* copy\(", text))
        print(f"{name}: {len(re.findall(r' dynamic-update-slice[(]', text))}, {copies}")
    matrices = "|".join(f"{columns},{rows}" for rows, columns in model.products)
    stack = rf"f32\[{model.layers},2,{model.kv_heads},{PLACES},{model.head_size}\]"
    print("beside arguments and results, bytes; matrices sliced out of a stack; copies of a stack of the cache")
    for name, stacks in (("layer after layer", False), ("scan over layers", True)):
        step = compiled(2, {}, stacks)
        text, needed = step.as_text(), step.memory_analysis().temp_size_in_bytes
        sliced = re.findall(rf"%dynamic-slice\S* = f32\[(?:{matrices})\]", text)
        copied = re.findall(rf"= {stack}\S* copy\(", text)
        print(f"{name}: {needed}, {len(sliced)}, {len(copied)}")


if __name__ == "__main__":
    main()
