"""The training pass: loss, gradients and optax's AdamW as one function from state to state, eager or jitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from frameworks.adapter import DTYPES, Adapter, Step
from frameworks.jax.inspect import program
from frameworks.jax.models import build
from frameworks.jax.models.layers import STATE, linear
from frameworks.jax.modes import parallel
from measurement.cells import Cell
from workloads import training
from workloads.spec import Arrays, Workload

SETTINGS = {
    "optimizer": "optax.adamw; jit holds forward, backward and update, and reuses the old state's memory (donation)",
    "parameters_and_inputs": "fp32 (or STATES), moments too, cast to the cell's dtype inside the loss; token ids are "
    "int32",
}


def _mlp(params: dict, outputs: dict, target: jax.Array) -> jax.Array:
    return jnp.mean(jnp.square(outputs["output"].astype(jnp.float32) - target))


def _bert(params: dict, outputs: dict, labels: jax.Array) -> jax.Array:
    return _cross_entropy(linear(params["classifier"], outputs["pooler_output"]), labels)


def _logits(params: dict, outputs: dict, classes: jax.Array) -> jax.Array:
    return _cross_entropy(outputs["logits"], classes)


def _cross_entropy(logits: jax.Array, classes: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), classes).mean()


LOSSES = {"mlp": _mlp, "bert": _bert, **dict.fromkeys(("gpt", "llama", "resnet", "vit", "lstm"), _logits)}


def optimizer() -> optax.GradientTransformation:
    """Return AdamW as every framework runs it here."""
    first, second = training.BETAS
    return optax.adamw(
        training.LEARNING_RATE, b1=first, b2=second, eps=training.EPSILON, weight_decay=training.WEIGHT_DECAY
    )


def objective_of(family: str, forward: Callable, dtype: np.dtype) -> Callable:
    """Return a function from (params, held, *inputs) to (loss, new held values)."""

    def cast(x: jax.Array) -> jax.Array:
        return x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x

    def objective(params: dict, held: dict, *inputs: jax.Array) -> tuple[jax.Array, dict]:
        *given, target = inputs
        params = {**jax.tree.map(cast, params), STATE: held}
        outputs = forward(params, *map(cast, given))
        return LOSSES[family](params, outputs, target), outputs.get(STATE, {})

    return objective


def iteration(objective: Callable, accumulate: int, scanned: bool) -> Callable:
    """Return a function from (state, *inputs) to (new state, loss); `objective` is as `objective_of` makes it.

    Every input stacks micro-batches along its first axis; `scanned` runs them as one XLA loop, otherwise Python's.
    """
    gradients_of = jax.value_and_grad(objective, has_aux=True)
    adamw = optimizer()

    def summed(params: dict, held: dict, inputs: tuple) -> tuple:
        if accumulate == 1:
            (loss, held), gradients = gradients_of(params, held, *inputs)
            return loss, gradients, held

        def add(carried: tuple, batch: tuple) -> tuple:
            *total, held = carried
            (loss, held), gradients = gradients_of(params, held, *batch)
            return (*jax.tree.map(jnp.add, total, [loss, gradients]), held), None

        carried = (*jax.tree.map(jnp.zeros_like, (jnp.float32(0), params)), held)
        if scanned:
            carried, _ = jax.lax.scan(add, carried, inputs)
        else:
            for index in range(accumulate):
                carried, _ = add(carried, tuple(x[index] for x in inputs))
        *total, held = carried
        return (*jax.tree.map(lambda x: x / accumulate, total), held)

    def iterate(state: tuple, *inputs: jax.Array) -> tuple:
        params, held, moments = state
        loss, gradients, held = summed(params, held, inputs)
        updates, moments = adamw.update(gradients, moments, params)
        return (optax.apply_updates(params, updates), held, moments), loss

    return iterate


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return an optimizer iteration in the cell's mode. Modes have separate states, unless sharded."""
    sets = [adapter.place(cell, arrays) for arrays in inputs]
    sharding = parallel.of_state(cell, adapter.device) if cell.ranks > 1 else None
    dtype = jnp.dtype(DTYPES[cell.dtype])
    if (made := adapter.sharded.get(cell.group_id)) is None:
        made = built(workload, cell, weights, sharding or (lambda _: adapter.device), dtype)
        if cell.parameter("strategy") == "fsdp":
            adapter.sharded[cell.group_id] = made
    held, forward, detail = made
    jax.block_until_ready((held.state, sets))
    accumulate = int(cell.parameter("accumulate") or 1)
    objective = objective_of(workload.family, forward, dtype)
    iterate = iteration(objective, accumulate, scanned=cell.mode != "eager")
    if sharding:
        iterate = parallel.kept_where_it_is(iterate, sharding)
    trainer = Trainer(held, workload.model.state(dict(cell.parameters)))
    arguments = (held.state, *sets[0])
    trainer.iterate, capture = adapter.compilations.callable(cell, iterate, arguments, detail, donated=(0,))
    listed = program.listing(cell, trainer.iterate, arguments, trainer, sets[0])
    return Step(trainer, sets, capture, held.restore, listed)


def built(workload: Workload, cell: Cell, weights: Arrays, sharding: Callable[[Any], Any], dtype: np.dtype) -> tuple:
    """Return the first state, the function of the model, and its detail; `sharding` places the weights."""
    stored = DTYPES[str(cell.parameter("states", "fp32"))]

    def put(array: Any) -> jax.Array:
        return jax.device_put(array, sharding(array))  # committed, as a jitted function's results are

    def load(array: np.ndarray) -> jax.Array:
        return put(np.array(array, order="C")).astype(stored)

    params, forward, detail = build.build(workload.model, cell, weights, load, dtype)
    return Held(params, put), forward, detail


class Held:
    """Values that iterations change: parameters, values without a gradient, and moments."""

    def __init__(self, params: dict, put: Callable[[Any], jax.Array]):
        self._put = put
        self._first = jax.device_get(params)
        self._rest = self._first.pop(STATE, {})
        self.state: Any = None
        del params
        self.restore()

    def restore(self) -> None:
        """Begin again with the first weights."""
        self.state = None  # free it before making another
        params, rest = jax.tree.map(self._put, (self._first, self._rest))
        self.state = jax.tree.map(self._put, (params, rest, optimizer().init(params)))
        jax.block_until_ready(self.state)

    def bytes_of(self, device: jax.Device) -> int:
        """Return the bytes that it occupies on a device."""
        shards = (shard for array in jax.tree.leaves(self.state) for shard in array.addressable_shards)
        return sum(shard.data.nbytes for shard in shards if shard.device == device)


class Trainer:
    """Calling it runs one optimizer iteration on `held`; `state` names the values that join the outputs."""

    def __init__(self, held: Held, state: Sequence[str]):
        self.trained, self._state = held, state
        self.iterate: Callable | None = None  # set once it is built, for which the state's shapes must be known

    def __call__(self, *inputs: jax.Array) -> dict[str, Any]:
        self.trained.state, loss = self.iterate(self.trained.state, *inputs)
        return {"loss": loss, "state": self}  # itself, so that outputs kept for long do not keep every state

    @property
    def held(self) -> dict[str, jax.Array]:
        """The newest of the workload's state, by name."""
        return {name: self.trained.state[1][name] for name in self._state}

    def block_until_ready(self) -> Trainer:
        """Return itself once the newest state is there; `jax.block_until_ready` calls it."""
        jax.block_until_ready(self.trained.state)
        return self
