"""What the plain BERT's own choices cost op by op: each replaced alone, the program otherwise the same.

The trial's name tells how many Python and built-in functions a call of the model runs through with either attention.
"""

import cProfile
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import turns

from frameworks.jax.models import plain
from workloads.bert import LAYER_NORM_EPSILON


def indexed(p, ids):
    return p["weight"][ids]


def clipped(p, ids):
    return jnp.take(p["weight"], ids, axis=0, mode="clip")


def promised(p, ids):
    return p["weight"].at[ids].get(mode="promise_in_bounds")


def mean_once(p, x, epsilon):
    """The variance from the centred values: `var` would take the mean again."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + epsilon) * p["weight"] + p["bias"]


def standardized(p, x, epsilon):
    return jax.nn.standardize(x, epsilon=epsilon) * p["weight"] + p["bias"]


def primitive_linear(p, x):
    """`@` without jax.numpy's wrapper."""
    return jax.lax.dot_general(x, p["weight"], (((x.ndim - 1,), (0,)), ((), ()))) + p["bias"]


JITTED_NORM = jax.jit(plain.layer_norm, static_argnums=2, static_argnames="epsilon")


def jitted_norm(p, x, epsilon=LAYER_NORM_EPSILON):
    return JITTED_NORM(p, x, epsilon=epsilon)


ALTERNATIVES = {
    "table[ids]": {"embedding": indexed},
    "take, clipped": {"embedding": clipped},
    "promised in bounds": {"embedding": promised},
    "the mean taken once": {"layer_norm": mean_once},
    "jax.nn.standardize": {"layer_norm": standardized},
    "layer norm jitted": {"layer_norm": jitted_norm},
    "lax.dot_general": {"linear": primitive_linear},
    "explicit attention": {"attention": "explicit"},
}


def functions_called(call):
    """How many functions Python's profiler sees in one call of a warm model."""
    call()
    with cProfile.Profile() as profile:
        call()
    return sum(entry.callcount for entry in profile.getstats())


def trials(options):
    workload, parameters, weights, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("jax", parameters, options.threads)
    forwards = {}
    for attention in ("fused", "explicit"):
        cell = turns.cell("jax", {**parameters, "attention": attention}, options.threads)
        params, forwards[attention], _ = plain.MODELS["bert"](workload, cell, weights, jnp.asarray, jnp.float32)
    x = adapter.place(cell, inputs)[0]

    def call(attention="fused", **replaced):
        with mock.patch.multiple(plain, **(replaced or {"linear": plain.linear})):
            return jax.block_until_ready(forwards[attention](params, x))

    ways = {name: lambda replaced=replaced: call(**replaced) for name, replaced in ALTERNATIVES.items()}
    for name, way in ways.items():
        np.testing.assert_allclose(way()["pooler_output"], call()["pooler_output"], atol=1e-5, err_msg=name)
    counts = functions_called(call), functions_called(ways["explicit attention"])
    yield f"bert-tiny op by op, {counts[0]} function calls, explicit {counts[1]}", {"as the suite has it": call, **ways}


if __name__ == "__main__":
    turns.main(trials)
