"""Jit of each block, op by op in between, beside op by op and jit of the whole."""

from unittest import mock

import jax
import jax.numpy as jnp
import turns

from frameworks.jax import gpt, plain

BLOCKS = {"bert-tiny": (plain, "encoder_layer", (3, 4)), "gpt-tiny": (gpt, "block", (2, 3))}


def trials(asked):
    for name, (module, block, static) in BLOCKS.items():
        workload, parameters, weights, inputs = turns.model(name)
        adapter = turns.adapter("jax", parameters, asked.threads)
        cell = turns.cell("jax", parameters, asked.threads)
        x = adapter.place(cell, inputs)[0]
        params, forward, _ = plain.MODELS[workload.family](workload, cell, weights, jnp.asarray, jnp.float32)
        whole, jitted = jax.jit(forward), jax.jit(getattr(module, block), static_argnums=static)

        def by_block(module=module, block=block, jitted=jitted, forward=forward, params=params, x=x):
            with mock.patch.object(module, block, lambda *arguments, **_: jitted(*arguments)):
                return jax.block_until_ready(forward(params, x))

        yield (
            f"{name}, {workload.layers} layers",
            {
                "op by op": lambda forward=forward, params=params, x=x: jax.block_until_ready(forward(params, x)),
                "each block jitted": by_block,
                "jit": lambda whole=whole, params=params, x=x: jax.block_until_ready(whole(params, x)),
            },
        )
        assert jitted._cache_size() == 1, "one executable serves all blocks"


if __name__ == "__main__":
    turns.main(trials)
