"""Residual networks as pure functions over a tree of parameters, operator for operator as in the other frameworks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from frameworks.jax.models import images
from frameworks.jax.models.layers import STATE, linear
from measurement.cells import Cell
from workloads.images import pixels
from workloads.resnet import BATCH_NORM_EPSILON, MOMENTUM, STATISTICS, Convolution, ResNet
from workloads.spec import Arrays


def forward(workload: ResNet, layout: str, trains: bool, params: dict, x: jax.Array) -> dict:
    """Map `x` (B, 3, I, I), or (B, I, I, 3) where channels are last -> logits (B, classes).

    Under training a batch is normalised by its own statistics, and the running ones are returned.
    """
    state = {}

    def applied(part: Convolution, x: jax.Array) -> jax.Array:
        x = images.convolution(layout, _at(params, part.name)["weight"], x, part.stride, part.padding)
        before = [params[STATE][f"{part.norm}.{name}"] for name in STATISTICS]
        statistics = before
        if trains:
            mean, variance, count = images.batch_statistics(layout, x)
            statistics, batch = (mean, variance), (mean, variance * (count / (count - 1)))
            for name, old, new in zip(STATISTICS, before, batch, strict=True):
                state[f"{part.norm}.{name}"] = jax.lax.stop_gradient((1 - MOMENTUM) * old + MOMENTUM * new)
        return images.batch_norm(layout, _at(params, part.norm), x, *statistics, BATCH_NORM_EPSILON)

    x = jax.nn.relu(applied(workload.stem, x))  # (B, I/2, I/2, W), or in the other order
    x = images.max_pool(layout, x, 3, 2, 1)  # (B, I/4, I/4, W)
    for block in workload.blocks():
        first, second, third = block.convolutions
        y = applied(third, jax.nn.relu(applied(second, jax.nn.relu(applied(first, x)))))
        x = jax.nn.relu(y + (applied(block.shortcut, x) if block.shortcut else x))
    logits = linear(params["fc"], x.mean(pixels(layout)))  # (B, classes)
    return {"logits": logits, STATE: state} if trains else {"logits": logits}


def _at(params: dict, name: str) -> dict:
    for part in name.split("."):
        params = params[part]
    return params


def build(workload: ResNet, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    layout, names = str(cell.parameter("layout")), workload.state(dict(cell.parameters))
    params = images.params_of({name: w for name, w in weights.items() if name not in names}, load, layout)
    params[STATE] = {name: load(weights[name]) for name in names}
    return params, partial(forward, workload, layout, cell.pass_name == "training"), ""
