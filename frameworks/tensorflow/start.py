"""Ways of TensorFlow from a fresh process to the first answer."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from frameworks.adapter import DTYPES, Capture, Step, Unsupported
from frameworks.start import Place, Strategy
from frameworks.tensorflow.models import build
from frameworks.tensorflow.modes import graphs
from frameworks.tensorflow.user_model import model as user_model

LACKING = {
    "regional": "XLA compiles a repeated block once only where the model's own code is a tf.while_loop",
    "ahead-of-time": "saved_model_cli aot_compile_cpu makes objects for C++ programs, and XLA finds stored code of a "
    "SavedModel only in a process that has executed the same operators before",
}
FUNCTION, XLA = "function", "function-xla"
CACHE, EXPORT, FLAGS = "cache", "exported", "TF_XLA_FLAGS"


class InputsOnly(user_model.Model):
    """A user model's inputs alone, where another process built the program."""

    alone = True

    def built(self, made: None) -> Any:
        self._state = []
        return None

    def settle(self) -> None:
        return None


@dataclass
class Built:
    """A callable with its input sets on the device; `held` has its variables, which a function does not."""

    called: Callable
    sets: Sequence[tuple]
    own: user_model.Model | None = None
    held: Any = None

    def step(self) -> Step:
        """Return the step; nothing is traced yet."""
        if self.own is None:
            return Step(self.called, self.sets, self.captured)
        call = partial(user_model.refusing, self.called)
        return Step(call, self.sets, self.captured, self.own.restore, user_model=self.own)

    def captured(self) -> Capture:
        """Return the traces so far, each of which is compiled once. Raises Unsupported where `refuse` does."""
        self.refuse()
        return Capture(whole=False, compilations=self.called.experimental_get_tracing_count())

    def refuse(self) -> None:
        """Raise Unsupported for a graph that calls Python, and where eager mode runs in its place."""
        if tf.config.functions_run_eagerly():
            raise Unsupported(f"{graphs.RUN_EAGERLY}.")
        if self.calls_python:
            raise Unsupported(graphs.CALLS_PYTHON)

    @cached_property
    def calls_python(self) -> bool:
        """Whether nodes of the graph call Python."""
        return graphs.python_nodes(self.traced()) > 0

    def traced(self) -> Any:
        """Return the graph of the first input set."""
        trace = self.called.get_concrete_function
        return trace(*self.sets[0]) if self.own is None else user_model.refusing(trace, *self.sets[0])


def built(place: Place, mode: str) -> Built:
    """Return the place's model, built, as a tf.function. A user model is called while it is built."""
    cell = replace(place.cell, mode=mode)
    place.adapter.refuse(cell)
    with place.phase("build"), place.adapter.on_device():
        if cell.implementation == "own":
            place.adapter.prepare(place.workload, place.cell, place.weights, place.inputs)
            model = place.adapter.user_models[cell.group_id]
            return Built(user_model.graph_of(model.call, mode == XLA), model.sets, model)
        model = build.build(place.workload, cell, place.weights)
        sets = [place.adapter.place(cell, arrays) for arrays in place.inputs]
        return Built(graphs.function_of(model, place.workload, cell, sets[0]), sets)


class Captured(Strategy):
    """tf.function, whose graph TensorFlow's executor runs."""

    mode = FUNCTION

    def step(self, place: Place) -> Step:
        model = built(place, self.mode)
        with place.phase("trace"):
            model.traced()
        return model.step()


class Compile(Captured):
    """tf.function(jit_compile=True). XLA compiles in the first call, which TensorFlow does not time separately."""

    mode = XLA


class Cached(Compile):
    """The same with XLA's persistent cache, which has the compiled code but no trace.

    Its folder is in the process's own temporary one; TensorFlow reads the flags once, before the first operator.
    """

    def __init__(self) -> None:
        self.cache = Path(tempfile.gettempdir()) / CACHE
        self.cache.mkdir(exist_ok=True)
        flags = f"--tf_xla_persistent_cache_directory={self.cache} --tf_xla_persistent_cache_prefix=xla"
        os.environ[FLAGS] = f"{os.environ.get(FLAGS, '')} {flags}".strip()

    def step(self, place: Place) -> Step:
        held, step = set(self.cache.iterdir()), super().step(place)
        captured = step.capture

        @cache
        def check() -> None:  # once, after the first answer: other calls may have other shapes
            if not held or set(self.cache.iterdir()) != held:  # XLA writes what it compiles
                raise Unsupported("the persistent cache has no code of the model, so XLA compiled it.")

        def capture() -> Capture:
            found = captured()
            check()
            return found

        step.capture = capture
        return step


class Shipped(Cached):
    """The same from another process's cache, copied to the empty one."""

    def step(self, place: Place) -> Step:
        with place.phase("load"):
            shutil.copytree(place.artefact / CACHE, self.cache, dirs_exist_ok=True)
        return super().step(place)

    def fill(self, place: Place) -> None:
        place.adapter.synchronize(super().step(place)())
        shutil.copytree(self.cache, place.artefact / CACHE)


class Exported(Strategy):
    """A SavedModel of tf.function(jit_compile=True), weights included; XLA compiles it in the first call."""

    def step(self, place: Place) -> Step:
        own = None
        with place.phase("build"), place.adapter.on_device():
            if place.cell.implementation == "own":
                dtype = DTYPES[place.cell.dtype]
                own = InputsOnly(place.adapter, place.workload, place.weights, place.inputs, dtype)
                own.writes = ("input",) if place.settings.get("fresh") else ()
            sets = own.sets if own else [place.adapter.place(place.cell, arrays) for arrays in place.inputs]
        with place.phase("load"), place.adapter.on_device():
            loaded = tf.saved_model.load(str(place.artefact / EXPORT))
        return Built(loaded.called, sets, own, loaded).step()

    def fill(self, place: Place) -> None:
        model = built(place, XLA)
        model.refuse()
        module = tf.Module()
        module.called, module.variables_of_graph = model.called, list(model.traced().variables)
        try:
            tf.saved_model.save(module, str(place.artefact / EXPORT))
        except (AssertionError, TypeError, ValueError) as error:
            words = " ".join(str(error).split())[:300]
            raise Unsupported(f"TensorFlow cannot save the model ({type(error).__name__}: {words}).") from error


STRATEGIES: dict[str, type[Strategy]] = {
    "eager": Strategy,
    "capture": Captured,
    "compile": Compile,
    "warm-cache": Cached,
    "shipped-cache": Shipped,
    "exported": Exported,
}
