"""A model and its inputs on their way to a worker: a pickle, and the file of a user model that loads it."""

from __future__ import annotations

import importlib.util
import pickle
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eager_vs_graph import changes
from eager_vs_graph.changes import HOME

PICKLE = "carried.pickle"
# Modules of classes, the first part of their names, by framework.
OWNERS = {"torch": ("torch",), "paddle": ("paddle",), "tensorflow": ("tensorflow", "keras", "tf_keras")}
OWNERS |= {"jax": ("jax", "jaxlib", "flax", "equinox", "haiku")}
FILE = '''"""Loads what a Python process handed to `eager_vs_graph.compare`."""

import gc
import importlib
import pickle
import sys
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

import carried_changes
import {module}

settings = {{"framework": {framework!r}}}
CALLER = sys.modules["carried_caller"] = ModuleType("carried_caller")
sys.path += [folder for folder in {path!r} if folder not in sys.path]


@cache
def carried():
    with open(Path(__file__).with_name({name!r}), "rb") as file:
        try:
            for keras, custom in pickle.load(file):
                importlib.import_module(keras).saving.get_custom_objects().update(custom)
            content = pickle.load(file)
        except Exception as error:
            words = " ".join(f"{{type(error).__name__}}: {{error}}".split())[:200]
            raise RuntimeError(
                f"another process cannot load the model ({{words}}): write a file with model() and inputs(), and run "
                "eager-vs-graph on it."
            ) from error
    for found in gc.get_objects():  # functions of the caller's __main__: compilers look their globals up by module
        if type(found) is FunctionType and found.__globals__.get("__name__") == "__main__":
            if found.__globals__ is not vars(sys.modules["__main__"]):
                found.__globals__["__name__"] = CALLER.__name__
                vars(CALLER).update(found.__globals__)
    carried_changes.refuse(content["state"])
    return content


def model():
    return {model}


def inputs():
    return carried()["inputs"]
'''
# A function of torch's users becomes a module, as a file for torch requires.
FUNCTION = """

class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs, **named):
        return self.function(*inputs, **named)
"""
LOSS = """

def loss(output):
    return carried()["loss"](output)
"""


class Unfit(ValueError):
    """Why a model cannot be handed to another process, in one sentence with the way out."""


def write(folder: Path, model: Any, inputs: Any, loss: Any = None, framework: str | None = None) -> Path:
    """Write the pickle and the file into a folder; return the file's path. Raises Unfit."""
    framework = framework_of(model, inputs) if framework is None else _installed(framework)
    if why := problem(model, inputs):
        raise Unfit(why)
    model = _uncompiled(model)
    wrapped = framework == "torch" and not hasattr(model, "forward")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        given = {"model": model, "inputs": inputs, "loss": loss, "state": changes.state(model)}
        content = _pickled(_keras_classes(model)) + _pickled(given)
        free = shutil.disk_usage(folder).free
        if len(content) > free:
            raise Unfit(f"The model needs {len(content) / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            f"choose another folder with out=.")  # fmt: skip
        (folder / PICKLE).write_bytes(content)
        shutil.copyfile(changes.__file__, folder / "carried_changes.py")  # a user model's file has no suite to import
        path = [entry for entry in (str(Path(entry).resolve()) for entry in sys.path) if Path(entry) != HOME]
        made = 'Function(carried()["model"])' if wrapped else 'carried()["model"]'
        text = FILE.format(module=OWNERS[framework][0], framework=framework, path=path, name=PICKLE, model=made)
        text += (FUNCTION if wrapped else "") + (LOSS if loss is not None else "")
        file = folder / "model.py"
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unfit(f"{folder} cannot be written ({error.strerror}): choose another folder with out=.") from None
    return file


def framework_of(model: Any, inputs: Any) -> str:
    """Return the framework that the model, or else its inputs, belong to. Raises Unfit."""
    for value in (model, *_leaves(model), *_leaves(inputs)):
        for kind in type(value).__mro__:
            owner = kind.__module__.partition(".")[0]
            for framework, owners in OWNERS.items():
                if owner in owners:
                    return framework
    raise Unfit(f"The model's framework is unknown: name it with framework=, one of {', '.join(OWNERS)}.")


def _installed(framework: str) -> str:
    """Return the framework that a caller names. Raises Unfit if it is unknown or not installed."""
    if framework not in OWNERS:
        raise Unfit(f"There is no framework {framework!r}; choose from {', '.join(OWNERS)}.")
    module = OWNERS[framework][0]
    if module not in sys.modules and importlib.util.find_spec(module) is None:
        raise Unfit(f"{sys.executable} has no {module}: install it there, or call compare from a Python that has it.")
    return framework


def problem(model: Any, inputs: Any) -> str | None:
    """Return why a model and its inputs cannot be measured, in one sentence with the way out; None where they may."""
    function = model[0] if isinstance(model, tuple) and model else model
    if isinstance(function, type):
        return f"The model is the class {function.__name__}: give an instance, such as {function.__name__}(…)."
    if not callable(function):
        kind = type(function).__name__
        return f"The model is a {kind}, which cannot be called: give a module, a layer or a function."
    if isinstance(inputs, list):
        return "The inputs are a list: give a tuple of the call's arguments, or ([a, b],) if the model takes one list."
    if any(isinstance(value, Iterator) for value in (inputs, *_leaves(inputs))):
        return "The inputs hold an iterator, which gives its values once: give tensors, such as next(iterator)."
    if any(str(getattr(value, "device", "")) == "meta" for value in (*_parameters(model), *_leaves(inputs))):
        return 'The device "meta" holds no values: load weights and make inputs on another device before compare.'
    return None


def _parameters(model: Any) -> list[Any]:
    """Return the parameters of a torch module; none of anything else."""
    return list(model.parameters()) if hasattr(model, "forward") and hasattr(model, "buffers") else []


def _leaves(value: Any) -> list[Any]:
    """Return the values within tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _uncompiled(model: Any) -> Any:
    """Return the module or function inside a result of torch.compile: the suite compiles it itself."""
    return getattr(model, "_orig_mod", None) or getattr(model, "_torchdynamo_orig_callable", model)


def _keras_classes(model: Any) -> list[tuple[str, dict[str, type]]]:
    """Return the package of a Keras model with the classes of its own layers, which Keras's pickles hold by name."""
    package = next((kind.__module__.partition(".")[0] for kind in type(model).__mro__ if kind.__name__ == "Model"), "")
    if package not in ("keras", "tf_keras"):
        return []
    kinds = map(type, model._flatten_layers())
    return [(package, {kind.__name__: kind for kind in kinds if kind.__module__.partition(".")[0] != package})]


def _pickled(content: Any) -> bytes:
    """Return the pickle, which contains classes and functions of notebooks by value. Raises Unfit."""
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        raise Unfit(
            "The model and its pickle do not fit into memory together: write a file with model() and inputs(), and "
            "run eager-vs-graph on it."
        ) from None
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise Unfit(
            f"The model cannot be pickled ({words}): write a file with model() and inputs(), and run eager-vs-graph "
            f"on it."
        ) from None
