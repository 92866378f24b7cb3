"""Jit of each block, op by op in between, beside op by op and jit of the whole."""

from unittest import mock

import jax
import jax.numpy as jnp
import turns

from frameworks.jax.models import gpt, plain

BLOCKS = {"bert-tiny": (plain, "encoder_layer"), "gpt-tiny": (gpt, "block")}


def trials(options):
    for name, (module, block) in BLOCKS.items():
        workload, parameters, weights, inputs = turns.model(name)
        adapter = turns.adapter("jax", parameters, options.threads)
        cell = turns.cell("jax", parameters, options.threads)
        x = adapter.place(cell, inputs)[0]
        build = plain.MODELS[workload.family]
        params, forward, _ = build(workload, cell, weights, jnp.asarray, jnp.float32)
        whole, jitted = jax.jit(forward), jax.jit(getattr(module, block), static_argnums=(0, 1))
        with mock.patch.object(module, block, jitted):
            _, by_block, _ = build(workload, cell, weights, jnp.asarray, jnp.float32)
        yield (
            f"{name}, {workload.layers} layers",
            {
                "op by op": lambda forward=forward, params=params, x=x: jax.block_until_ready(forward(params, x)),
                "each block jitted": lambda by_block=by_block, params=params, x=x: jax.block_until_ready(
                    by_block(params, x)
                ),
                "jit": lambda whole=whole, params=params, x=x: jax.block_until_ready(whole(params, x)),
            },
        )
        assert jitted._cache_size() == 1, "one executable serves all blocks"


if __name__ == "__main__":
    turns.main(trials)
