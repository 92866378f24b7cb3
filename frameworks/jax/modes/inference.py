"""A model as a mode calls it in inference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp

from frameworks.adapter import DTYPES, Adapter, Step
from frameworks.jax.inspect import program
from frameworks.jax.models import build
from frameworks.jax.modes import compiling
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of a model in the cell's mode."""
    dtype = DTYPES[cell.dtype]
    load = partial(adapter.tensor, dtype=dtype)
    make = partial(build.build, workload, cell, weights, load, jnp.dtype(dtype))
    params, forward, detail = make() if cell.mode == compiling.BLOCKS else adapter.shared(cell, make)
    sets = [adapter.place(cell, arrays) for arrays in inputs]
    jax.block_until_ready((params, sets))
    call, capture = adapter.compilations.callable(cell, forward, (params, *sets[0]), detail)
    step = partial(call, params)
    return Step(step, sets, capture, program=program.listing(cell, call, (params, *sets[0]), step, sets[0]))
