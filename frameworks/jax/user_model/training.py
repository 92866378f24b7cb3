"""Training of user models in JAX: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks import user_model
from frameworks.adapter import DTYPES, Step, Unsupported
from frameworks.jax import runtime
from frameworks.jax.inspect import program
from frameworks.jax.modes import training
from frameworks.jax.user_model.captured import Reached
from frameworks.jax.user_model.model import (
    Model,
    Partitioned,
    cast,
    counted,
    identity,
    refuse_what_is_held,
    with_recompilations,
)
from frameworks.user_file import Fault
from frameworks.user_model import Counted
from frameworks.values import Values
from measurement.cells import Cell

COMPLEX = "complex parameters are not trained here: return their real and imaginary parts as parameters from model()."


class Training(user_model.Training):
    """A user model under training: floating-point parameters are trained in float32, and `dtype` is computed in."""

    model: Model

    def __init__(self, model: Model, dtype: np.dtype):
        super().__init__(model)
        self._dtype = dtype
        self.objective = partial(self._objective, dtype)
        is_scalar = lambda loss: jnp.size(loss) == 1  # noqa: E731
        self._loss = user_model.scalar_loss(model.file, is_scalar, "(output**2).mean()", self._without_jit)
        self._form, self._are_trained = jax.tree.structure(model.module), _are_trained(model.module)
        self.params, self.frozen = self._divided(model.module)
        if any(map(jnp.iscomplexobj, self.params["trained"])):
            raise Unsupported(COMPLEX)
        if not self.params["trained"]:
            raise Fault("model() has no floating-point parameters that could be trained.")

    def successive(self) -> list[Values]:
        model = self.model
        model.restore()
        try:
            found = []
            for _ in range(2):
                model.seed(0)
                found.append(model.compared(model.call(*model.fresh(model.sets[0]))))
            return found
        finally:
            model.restore()

    def values(self, output: dict[str, Any]) -> Values:
        """Return the loss; the training state that a call also returns is no output."""
        return super().values({"loss": output["loss"]})

    def trainer(self, model: Any, dtype: str) -> Callable[..., Any]:
        computed = self._dtype if dtype == "float32" else jnp.dtype(dtype)
        iterate = training.iteration(partial(self._objective, computed), 1, scanned=False)
        params, frozen = self._divided(model)
        state = (params, {}, training.optimizer().init(params))

        def one(*inputs: Any) -> dict[str, Any]:
            nonlocal state
            state, loss = iterate(state, frozen, inputs)
            return {"loss": loss}

        return one

    def cost(self) -> Counted | None:
        iterate = training.iteration(self.objective, 1, scanned=False)
        state = (self.params, {}, training.optimizer().init(self.params))
        return counted(iterate, state, self.frozen, Partitioned.from_tree(self.model.sets[0]))

    def _without_jit(self, loss: Callable) -> Callable:
        """Return the file's loss with nothing compiled; the settings name the functions."""
        reached = Reached()
        loss = reached.plain(loss, "loss")
        if not reached.removed:
            return loss
        reached.only(lambda _: False)  # its arrays stay where they are
        self.model.settings["jit removed from"] = ", ".join(dict.fromkeys([*self.model.removed, *reached.removed]))

        def called(output: Any) -> Any:
            with reached.holding([]):
                value = loss(output)
                reached.omit_unchanged()
                return value

        return called

    def _divided(self, params: Any) -> tuple[dict[str, list], Any]:
        """Return the leaves of parameters that are trained, and the others as jit takes them."""
        parts: dict[bool, list] = {True: [], False: []}
        for leaf, is_trained in zip(jax.tree.leaves(params), self._are_trained, strict=True):
            parts[is_trained].append(leaf)
        return {"trained": parts[True]}, Partitioned.from_parameters(parts[False])

    def _objective(self, dtype: np.dtype, params: dict, held: dict, frozen: Any, inputs: Any) -> tuple[jax.Array, dict]:
        trained, others = iter(params["trained"]), iter(Partitioned.joined(frozen))
        whole = jax.tree.unflatten(self._form, [next(trained if one else others) for one in self._are_trained])
        loss = jnp.asarray(self._loss(self.model.forward(cast(whole, dtype), cast(inputs, dtype))))
        return jnp.reshape(loss, ()).astype(jnp.promote_types(loss.dtype, jnp.float32)), held


def prepare(model: Model, cell: Cell) -> Step:
    """Return an optimizer iteration in the cell's mode, on its own parameters."""
    subject = Training(model, jnp.dtype(DTYPES[cell.dtype]))
    iterate = training.iteration(subject.objective, 1, scanned=cell.mode != "eager")
    held = training.Held(subject.params, partial(jax.device_put, device=model.adapter.device))
    trainer = training.Trainer(held, ())
    inputs = Partitioned.from_tree(model.sets[0])
    arguments = (held.state, subject.frozen, inputs)
    trainer.iterate, capture = model.adapter.compilations.callable(cell, iterate, arguments, model.detail, donated=(0,))
    captured: Callable = capture
    if cell.mode == "eager":
        listed: Callable = lambda: program.executed(iterate, (held.state, subject.frozen, inputs))  # noqa: E731
    else:
        refuse_what_is_held(model)
        shapes = runtime.shapes(arguments)
        listed = partial(program.captured, trainer.iterate, shapes, pruned=model.applied.drops)
        captured = lambda: with_recompilations(capture(), model)  # noqa: E731
    known = {identity(args, kwargs): Partitioned.from_tree((args, kwargs)) for args, kwargs in model.sets}

    def call(args: tuple, kwargs: dict[str, Any]) -> Any:
        return trainer(subject.frozen, known.get(identity(args, kwargs)) or Partitioned.from_tree((args, kwargs)))

    return Step(call, model.sets, captured, held.restore, listed, user_model=subject)


def _are_trained(params: tuple[Any, list[Any]]) -> list[bool]:
    """Return for each leaf of `Applied.params` whether it is trained: floating-point arrays that `model()` returned.

    Arrays that its code reaches otherwise are frozen, unless it returned none.
    """
    given, reached = ([_is_inexact(leaf) for leaf in jax.tree.leaves(part)] for part in params)
    return [*given, *([False] * len(reached) if any(given) else reached)]


def _is_inexact(leaf: Any) -> bool:
    """Return whether a leaf would be trained; values of one byte are quantized."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact) and leaf.dtype.itemsize > 1
