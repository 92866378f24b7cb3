"""What it costs to pass about 200 weights to a jitted function in every call, beside the ways round it."""

import jax
import jax.numpy as jnp
import turns
from jax.flatten_util import ravel_pytree

from frameworks.jax.models import plain

LEAVES = 200


def nothing(leaves, x):
    return x


def ways(forward, weights, x):
    graph, (flat, unravel) = jax.jit(forward, keep_unused=True), ravel_pytree(weights)
    one_leaf = jax.jit(lambda vector, x: forward(unravel(vector), x))
    ahead = graph.lower(weights, x).compile()
    closed = jax.jit(lambda x: forward(weights, x))
    wait = jax.block_until_ready
    return {
        "jit": lambda: wait(graph(weights, x)),
        "compiled ahead of time": lambda: wait(ahead(weights, x)),
        "weights closed over": lambda: wait(closed(x)),
        "one flat leaf": lambda: wait(one_leaf(flat, x)),
    }


def trials(options):
    _, parameters, _, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("jax", parameters, options.threads)
    cell = turns.cell("jax", parameters, options.threads)
    yield f"nothing, {LEAVES} leaves", ways(nothing, [jnp.ones(1) for _ in range(LEAVES)], jnp.ones(1))
    x = adapter.place(cell, inputs)[0]
    for layers in (2, 12):
        workload, _, weights, _ = turns.model("bert-tiny", layers=layers)
        params, forward, _ = plain.MODELS["bert"](workload, cell, weights, jnp.asarray, jnp.float32)
        name = f"bert-tiny of {layers} layers, {len(jax.tree.leaves(params))} leaves"
        yield name, ways(forward, params, x)


if __name__ == "__main__":
    turns.main(trials)
