"""Ways of Paddle from a fresh process to the first answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import paddle

from frameworks.adapter import DTYPES, Step, Unsupported
from frameworks.paddle import FRAMEWORK
from frameworks.paddle.models import calls
from frameworks.paddle.modes import graphs, inference
from frameworks.paddle.user_model import model as user_model
from frameworks.paddle.user_model import trees
from frameworks.start import FORM_OF_OUTPUTS, Compiled, Place, Strategy, pickled, unpickled

LACKING = {
    "regional": "to_static captures the whole model, and its programs are not shared between layers",
    "shipped-cache": "Paddle documents no way to move CINN's cache to another machine",
    "ahead-of-time-no-compiler": "paddle.inference starts no compiler: measure STRATEGY=ahead-of-time",
}
FORM = "form.pickle"
CACHE = "FLAGS_enable_cinn_kernel_cache"


class InputsOnly(user_model.Model):
    """A user model's inputs alone, where another process built the program."""

    alone = True

    def made(self) -> Any:
        return None

    def built(self, made: Any) -> Any:
        return None

    def settle(self) -> None:
        return None

    def restore(self) -> None:
        return None


class Captured(Compiled):
    """to_static, whose program Paddle's executor runs; the first call captures it."""


class Compile(Compiled):
    """to_static with CINN, which compiles in the first call."""

    def step(self, place: Place) -> Step:
        try:
            return super().step(replace(place, graph="to_static-cinn"))
        except Unsupported as reason:  # which names the mode to choose
            reason.args = (str(reason).replace("MODE=to_static", "STRATEGY=capture"),)
            raise


class Warm(Compile):
    """The same with CINN's cache of kernels, which Paddle does not use by default."""

    def step(self, place: Place) -> Step:
        try:
            paddle.set_flags({CACHE: True})
        except ValueError as error:
            raise Unsupported(f"Paddle {paddle.__version__} has no {CACHE}: choose STRATEGY=compile.") from error
        return super().step(place)

    def fill(self, place: Place) -> None:
        super().fill(place)
        (variable,) = FRAMEWORK.cache_variables
        if not any(path.is_file() for path in Path(os.environ[variable]).rglob("*")):
            raise Unsupported(f"CINN wrote no kernel of this model to its cache, {variable}: choose STRATEGY=compile.")


class Exported(Strategy):
    """The program that paddle.jit.save wrote, weights included, loaded by paddle.jit.load."""

    mode = "to_static"

    def step(self, place: Place) -> Step:
        adapter, cell = place.adapter, place.cell
        adapter.refuse(replace(cell, mode=self.mode))
        own = None
        with place.phase("build"), adapter.on_device():
            if cell.implementation == "own":
                own = InputsOnly(adapter, place.workload, place.weights, place.inputs, DTYPES[cell.dtype])
                own.writes = ("input",) if place.settings.get("fresh") else ()
            sets = own.sets if own else [adapter.place(cell, arrays) for arrays in place.inputs]
        with place.phase("load"):
            called = self.load(place)
            if own is None:
                return Step(calls.named(called, inference.names_of(place.workload)), sets)
            form = unpickled((place.artefact / FORM).read_bytes())
        return Step(_own(called, form), sets, user_model=own)

    def load(self, place: Place) -> Callable:
        """Return a function from tensors to a program's outputs in their order."""
        return calls.without_gradients(paddle.jit.load(str(place.artefact / "model")))

    def fill(self, place: Place) -> None:
        adapter, cell = place.adapter, replace(place.cell, mode=self.mode)
        adapter.refuse(cell)
        if cell.implementation == "own":
            adapter.prepare(place.workload, place.cell, place.weights, place.inputs)
            exported = user_model.Predicted(adapter.user_models[cell.group_id], cell)
            exported.save(place.artefact)
            (place.artefact / FORM).write_bytes(pickled(FORM_OF_OUTPUTS, exported.form))
            return
        model = inference.model_of(place.workload, cell, place.weights)
        signature = graphs.specification(place.workload, cell, adapter.place(cell, place.inputs[0]))
        graphs.Exported(model, cell, signature).save(place.artefact)


class AheadOfTime(Exported):
    """The same program under paddle.inference, whose IR passes run as it is loaded."""

    mode = "inference"

    def load(self, place: Place) -> Callable:
        predictor = graphs.Predictor(replace(place.cell, mode=self.mode))
        predictor.open(predictor.configured(place.artefact))
        return predictor


def _own(called: Callable, form: Any) -> Callable:
    """Return a call on an input set of a user model whose outputs have the model's own form."""
    fixed = called.structured(form) if isinstance(called, graphs.Predictor) else None

    def call(args: tuple, kwargs: dict[str, Any]) -> Any:
        outputs = called(*trees.tensors((args, kwargs)))
        return fixed or graphs.filled(form, outputs if isinstance(outputs, list | tuple) else (outputs,))

    return call


STRATEGIES: dict[str, type[Strategy]] = {
    "eager": Strategy,
    "capture": Captured,
    "compile": Compile,
    "warm-cache": Warm,
    "exported": Exported,
    "ahead-of-time": AheadOfTime,
}
