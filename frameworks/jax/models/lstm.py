"""LSTMs as pure functions over a tree of parameters: cuDNN's operator, `lax.scan` over positions, and written out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn

from frameworks.adapter import Unsupported
from frameworks.jax.models.layers import embedding, linear, tree
from measurement.cells import Cell
from workloads.lstm import LAYERS, Lstm
from workloads.spec import Arrays


def step(carried: tuple, given: jax.Array) -> tuple:
    """Map kernel, bias, state and memory (B, H), and the product of a position's input (B, 4H) -> these, and the state.

    Constants are part of the carry: op by op, JAX compiles a scan again for every new function.
    """
    kernel, bias, state, memory = carried
    taken, kept, new, shown = jnp.split(given + (state @ kernel + bias), 4, axis=1)
    memory = jax.nn.sigmoid(kept) * memory + jax.nn.sigmoid(taken) * jnp.tanh(new)
    state = jax.nn.sigmoid(shown) * jnp.tanh(memory)
    return (kernel, bias, state, memory), state


def forward(scans: bool, params: dict, input_ids: jax.Array) -> dict:
    """Map `input_ids` (B, S), int32 -> the last state (B, H) and logits (B, classes)."""
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


def fused(params: dict, input_ids: jax.Array) -> dict:
    """Return the same by cuDNN's operator for whole sequences, which heeds the default precision of matrix products."""
    x = embedding(params["embedding"], input_ids)  # (B, S, H)
    batch, length, hidden = x.shape
    zeros = jnp.zeros((LAYERS, batch, hidden), x.dtype)
    lengths = jnp.full(batch, length, jnp.int32)
    # No dropout, one direction.
    states, _, _ = rnn.lstm(x, zeros, zeros, params["packed"], lengths, hidden, hidden, LAYERS, 0.0, False)
    state = states[:, -1]
    return {"state": state, "logits": linear(params["classifier"], state)}


def packed(weights: Arrays) -> Arrays:
    """Return weights with the LSTM's as one vector, as cuDNN has them: all layers' matrices, then all their biases."""
    names = (f"lstm.{tensor}_{kind}_l{layer}" for tensor in ("weight", "bias") for layer in range(LAYERS)
             for kind in ("ih", "hh"))  # fmt: skip
    others = {name: array for name, array in weights.items() if not name.startswith("lstm.")}
    return others | {"packed": np.concatenate([weights[name].reshape(-1) for name in names])}


def build(workload: Lstm, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    kind = cell.parameter("cell")
    if kind != "fused":
        return tree(weights, load), partial(forward, kind == "scan"), ""
    if cell.device_kind != "gpu" or cell.dtype not in ("fp32", "tf32"):
        raise Unsupported(
            "JAX's LSTM operator for whole sequences is cuDNN's (jax.experimental.rnn), in float32 on a GPU only: "
            "choose CELL=scan or CELL=unrolled, or DEVICE=gpu with DTYPE=fp32 or tf32."
        )
    return tree(packed(weights), load), fused, "jax.experimental.rnn.lstm"
