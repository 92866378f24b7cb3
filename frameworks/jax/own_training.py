"""Training of users' own JAX models: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks import own
from frameworks.jax import training
from frameworks.jax.own import Model, counted, named
from frameworks.user_file import Counted, Fault


class Owned(own.OwnedTraining):
    """What a step tells of the user's model under training: `params` stay in float32, and `dtype` is computed in."""

    def __init__(self, model: Model, dtype: np.dtype):
        super().__init__(model)
        self.objective = partial(self._objective, dtype)
        self.params = {"own": model.params}
        self._loss = model.file.function("loss")

    def cost(self) -> Counted | None:
        iterate = training.iteration(self.objective, 1, scanned=False)
        state = (self.params, {}, training.optimizer().init(self.params))
        return counted(iterate, state, self._model.sets[0])

    def _losses(self, params: Any, sets: list, dtype: np.dtype) -> list[dict[str, np.ndarray]]:
        iterate, params = training.iteration(partial(self._objective, dtype), 1, scanned=False), {"own": params}
        state, losses = (params, {}, training.optimizer().init(params)), []
        for arrays in sets:
            state, loss = iterate(state, *arrays)
            losses.append(named({"loss": loss}))
        return losses

    def _objective(self, dtype: np.dtype, params: dict, held: dict, *arrays: jax.Array) -> tuple[jax.Array, dict]:
        cast = partial(self._model.cast, dtype=dtype)
        loss = self._loss(self._model.forward(cast(params["own"]), *cast(arrays)))
        if jnp.size(loss) != 1:
            raise Fault("loss(output) is to return a scalar, such as (output**2).mean().")
        return jnp.reshape(loss, ()).astype(jnp.promote_types(loss.dtype, jnp.float32)), held
