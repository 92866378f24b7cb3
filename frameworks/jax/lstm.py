"""LSTMs as pure functions over a tree of parameters: `lax.scan` over positions, and written out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import Unsupported
from frameworks.jax.layers import embedding, linear, tree
from measurement.cells import Cell
from workloads.lstm import LAYERS, Lstm
from workloads.spec import Arrays


def step(carried: tuple, given: jax.Array) -> tuple:
    """Kernel and bias, state and memory (B, H), and the product of a position's input (B, 4H) -> these, and the state.

    What does not change is carried along, for op by op JAX compiles a scan anew for every function that it meets.
    """
    kernel, bias, state, memory = carried
    taken, kept, new, shown = jnp.split(given + (state @ kernel + bias), 4, axis=1)
    memory = jax.nn.sigmoid(kept) * memory + jax.nn.sigmoid(taken) * jnp.tanh(new)
    state = jax.nn.sigmoid(shown) * jnp.tanh(memory)
    return (kernel, bias, state, memory), state


def forward(scans: bool, params: dict, input_ids: jax.Array) -> dict:
    """`input_ids` (B, S), int32 -> the last state (B, H) and logits (B, classes)."""
    x = embedding(params["embedding"], input_ids.T)  # (S, B, H)
    for layer in range(LAYERS):
        p = {name: params["lstm"][f"{name}_l{layer}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        inputs = x @ p["weight_ih"] + p["bias_ih"]  # (S, B, 4H)
        zeros = jnp.zeros(x.shape[1:], x.dtype)
        carried = p["weight_hh"], p["bias_hh"], zeros, zeros
        if scans:
            (*_, state, _), x = jax.lax.scan(step, carried, inputs)
        else:
            states = []
            for place in range(len(inputs)):
                carried, state = step(carried, inputs[place])
                states.append(state)
            x = jnp.stack(states)  # (S, B, H)
    return {"state": state, "logits": linear(params["classifier"], state)}


def build(workload: Lstm, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    kind = cell.parameter("cell")
    if kind == "fused":
        raise Unsupported(
            "JAX's LSTM operator for whole sequences (jax.experimental.rnn, cuDNN's, float32 on a GPU alone) is not "
            "measured here: take CELL=scan or CELL=unrolled."
        )
    return tree(weights, load), partial(forward, kind == "scan"), ""
