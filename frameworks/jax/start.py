"""Ways of JAX from a fresh process to the first answer."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from frameworks.adapter import DTYPES, Capture, Step, Unsupported
from frameworks.jax import runtime
from frameworks.jax.models import build
from frameworks.jax.user_model import model as user_model
from frameworks.start import FORM_OF_OUTPUTS, Place, Strategy, pickled, unpickled

EXECUTABLE, EXPORT, FORM, CACHE = "executable.pickle", "exported.bin", "form.pickle", "cache"
LACKING = {
    "capture": "jax.jit compiles what it traces",
    "regional": "jax.jit compiles a repeated block once only where the model's own code is a jax.lax.scan",
}


@dataclass
class Built:
    """A model on its device: the function that is compiled, its first arguments, and how a step is made.

    `step` takes the compiled function and the report of its capture.
    """

    function: Callable
    arguments: tuple
    step: Callable[[Callable, Callable[[], Capture]], Step]


def built(place: Place) -> Built:
    """Return the place's model, built. A user model is called once, which finds the values that it reads and writes."""
    adapter, cell = place.adapter, place.cell
    with place.phase("build"), adapter.on_device(), runtime.keeping_cache():
        if cell.implementation == "own":
            step = adapter.prepare(place.workload, replace(cell, mode=place.graph), place.weights, place.inputs)
            model = adapter.user_models[cell.group_id]

            def own(called: Callable, capture: Callable[[], Capture]) -> Step:
                jitted = user_model.Jitted(model, called)
                return Step(jitted, model.sets, capture, jitted.restore, user_model=step.user_model)

            return Built(model.forward, model.arguments(), own)
        dtype = DTYPES[cell.dtype]
        load = partial(adapter.tensor, dtype=dtype)
        params, forward, _ = build.build(place.workload, cell, place.weights, load, jnp.dtype(dtype))
        sets = [adapter.place(cell, arrays) for arrays in place.inputs]
        jax.block_until_ready((params, sets))
        return Built(forward, (params, *sets[0]), lambda called, capture: Step(partial(called, params), sets, capture))


def capture_of(place: Place, refuse: Callable[[], None] = lambda: None) -> Callable[[], Capture]:
    """Return a report of the compilations so far. The first report, after the first answer, calls `refuse`."""
    checked = functools.cache(refuse)

    def capture() -> Capture:
        checked()
        return Capture(whole=False, compilations=place.adapter.compilations.total)

    return capture


class Compile(Strategy):
    """jax.jit of the whole model, stage by stage, with the process's persistent cache."""

    compiling = "kernels"  # the phase of the last stage

    def compiled(self, place: Place, model: Built) -> Any:
        """Return the executable of the model's function."""
        with place.phase("trace"):
            traced = jax.jit(model.function).trace(*model.arguments)
        with place.phase("lowering"):
            self.lowered = traced.lower()
        loaded = place.adapter.compilations.loaded
        with place.phase(self.compiling):
            executable = self.lowered.compile()
        self.hit = place.adapter.compilations.loaded > loaded
        return executable

    def step(self, place: Place) -> Step:
        model = built(place)
        return model.step(self.compiled(place, model), capture_of(place, self.refuse))

    def refuse(self) -> None:
        """Raise Unsupported where the executable does not hold the whole model."""
        if not runtime.is_whole(self.lowered.as_text()):
            raise Unsupported(runtime.CALLS_PYTHON)


class Cached(Compile):
    """The same with a persistent compilation cache, which has the executable but no trace."""

    compiling = "load"

    def refuse(self) -> None:
        super().refuse()
        if not self.hit:
            raise Unsupported("the compilation cache has no executable of the model, so XLA compiled it.")


class Shipped(Cached):
    """The same from another process's cache, copied to the empty one."""

    def step(self, place: Place) -> Step:
        with place.phase("load"):
            shutil.copytree(place.artefact / CACHE, jax.config.jax_compilation_cache_dir, dirs_exist_ok=True)
        return super().step(place)

    def fill(self, place: Place) -> None:
        place.adapter.synchronize(super().step(place)())
        shutil.copytree(jax.config.jax_compilation_cache_dir, place.artefact / CACHE)


class Exported(Compile):
    """The function that jax.export wrote, without weights; nothing is traced, and XLA compiles it in the process."""

    def imports(self) -> None:
        if importlib.util.find_spec("flatbuffers") is None:
            raise Unsupported("jax.export writes files with flatbuffers, which is missing: install it.")
        import jax.export  # noqa: F401

    def step(self, place: Place) -> Step:
        model = built(place)
        with place.phase("load"):
            loaded = jax.export.deserialize(bytearray((place.artefact / EXPORT).read_bytes()))
            form = unpickled((place.artefact / FORM).read_bytes())

        def function(*arguments: Any) -> Any:
            return jax.tree.unflatten(form, loaded.call(*jax.tree.leaves(arguments)))

        return model.step(self.compiled(place, replace(model, function=function)), capture_of(place, self.refuse))

    def fill(self, place: Place) -> None:
        model = built(place)
        leaves, given = jax.tree.flatten(model.arguments)
        form: Any = None

        def function(*leaves: Any) -> list[Any]:  # of arrays: files of jax.export hold no classes of trees
            nonlocal form
            outputs, form = jax.tree.flatten(model.function(*jax.tree.unflatten(given, leaves)))
            return outputs

        with runtime.exporting():
            written = jax.export.export(jax.jit(function))(*leaves).serialize()
        (place.artefact / EXPORT).write_bytes(written)
        (place.artefact / FORM).write_bytes(pickled(FORM_OF_OUTPUTS, form))


class AheadOfTime(Compile):
    """The executable that jax.experimental.serialize_executable wrote; nothing is traced."""

    def imports(self) -> None:
        import jax.experimental.serialize_executable  # noqa: F401

    def step(self, place: Place) -> Step:
        from jax.experimental import serialize_executable

        model = built(place)
        with place.phase("load"):
            code, form = unpickled((place.artefact / EXECUTABLE).read_bytes())
            given = jax.tree.structure((model.arguments, {}))  # which may hold functions
            executable = serialize_executable.deserialize_and_load(code, given, form)
        return model.step(executable, capture_of(place))

    def fill(self, place: Place) -> None:
        from jax.experimental import serialize_executable

        executable = self.compiled(place, built(place))
        self.refuse()
        code, _, form = serialize_executable.serialize(executable)
        (place.artefact / EXECUTABLE).write_bytes(pickled("the model's executable", (code, form)))


STRATEGIES: dict[str, type[Strategy]] = {
    "eager": Strategy,
    "compile": Compile,
    "warm-cache": Cached,
    "shipped-cache": Shipped,
    "exported": Exported,
    "ahead-of-time": AheadOfTime,
    "ahead-of-time-no-compiler": AheadOfTime,
}
