"""A small network in JAX: `eager-vs-graph examples/jax_mlp.py --batch 1,64`."""

import jax
import jax.numpy as jnp

WIDTHS = (256, 1024, 1024, 10)


def network(parameters, x):
    """Return the network's outputs (batch, 10)."""
    for weights in parameters[:-1]:
        x = jax.nn.gelu(x @ weights)
    return x @ parameters[-1]


def model():
    """Return the function and its parameters."""
    keys = jax.random.split(jax.random.key(0), len(WIDTHS) - 1)
    shapes = zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=True)
    return network, [jax.random.normal(key, (rows, columns)) / jnp.sqrt(rows) for key, rows, columns in shapes]


def inputs(batch_size):
    """Return the network's input."""
    return jax.random.normal(jax.random.key(1), (batch_size, WIDTHS[0]))
