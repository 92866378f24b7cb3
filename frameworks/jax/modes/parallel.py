"""Training on several devices of one process: placement of arrays, from which XLA derives the communication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from measurement.cells import Cell

AXIS = "ranks"


def mesh(cell: Cell, first: jax.Device) -> Mesh:
    """Return the cell's devices, from `first` on."""
    devices = jax.devices(cell.device_kind)
    place = devices.index(first)
    return Mesh(np.array(devices[place : place + cell.ranks]), (AXIS,))


def of_batch(cell: Cell, first: jax.Device) -> NamedSharding:
    """Return a global batch's sharding: a part per device."""
    return NamedSharding(mesh(cell, first), PartitionSpec(AXIS))


def divided(parameter: jax.Array) -> Callable[[jax.Array], jax.Array]:
    """Return a function that keeps sequences of a batch on their devices: else XLA may move them, not parameters."""
    of_sequences = NamedSharding(parameter.sharding.mesh, PartitionSpec(AXIS))
    return lambda x: jax.lax.with_sharding_constraint(x, of_sequences)


def of_state(cell: Cell, first: jax.Device) -> Callable[[Any], NamedSharding]:
    """Return a function from a parameter or moment to its sharding: whole on each device, or with `fsdp` a part.

    It divides the longest axis that the number of devices divides.
    """
    over = mesh(cell, first)

    def sharding(array: Any) -> NamedSharding:
        axes = [axis for axis, size in enumerate(np.shape(array)) if size % cell.ranks == 0]
        if cell.parameter("strategy") == "ddp" or not axes:
            return NamedSharding(over, PartitionSpec())
        longest = max(axes, key=lambda axis: np.shape(array)[axis])
        return NamedSharding(over, PartitionSpec(*[None] * longest, AXIS))

    return sharding


def kept_where_it_is(iterate: Callable, sharding: Callable[[Any], NamedSharding]) -> Callable:
    """Return an iteration that keeps the placement of the state."""

    def of_ranks(state: tuple, *inputs: jax.Array) -> tuple:
        state, loss = iterate(state, *inputs)
        return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, sharding(x)), state), loss

    return of_ranks
