"""Models of one operator repeated, which probe what fusing and dispatching operators costs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from workloads.spec import Parameters


def cosines(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,) by `repeat` cosines."""
    for _ in range(int(parameters["repeat"])):
        x = jnp.cos(x)  # (N,)
    return {"output": x}


def doubled(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,)."""
    return {"output": x + x}


def additions(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,) by `additions` tiny additions, each on the last one's result."""
    terms = (params["up"], params["down"])
    for index in range(int(parameters["additions"])):
        x = x + terms[index % 2]  # (N,)
    return {"output": x}


FORWARD = {"fused-cos": cosines, "stream": doubled, "op-overhead": additions}
