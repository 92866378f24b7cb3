"""A model and its inputs on their way to a worker: a pickle, and the file of a user model that loads it."""

from __future__ import annotations

import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent  # where `eager_vs_graph` is imported from
PICKLE = "carried.pickle"
# Modules of classes, the first part of their names, by framework.
OWNERS = {"torch": ("torch",), "paddle": ("paddle",), "tensorflow": ("tensorflow", "keras", "tf_keras")}
OWNERS |= {"jax": ("jax", "jaxlib", "flax", "equinox", "haiku")}
FILE = '''"""Loads what a Python process handed to `eager_vs_graph.compare`."""

import pickle
import sys
from functools import cache
from pathlib import Path

import {module}

settings = {{"framework": {framework!r}}}
sys.path += [folder for folder in {path!r} if folder not in sys.path]


@cache
def carried():
    with open(Path(__file__).with_name({name!r}), "rb") as file:
        return pickle.load(file)


def model():
    return carried()["model"]


def inputs():
    return carried()["inputs"]
'''
LOSS = """

def loss(output):
    return carried()["loss"](output)
"""


class Unfit(ValueError):
    """Why a model cannot be handed to another process, in one sentence with the way out."""


def write(folder: Path, model: Any, inputs: Any, loss: Any = None, framework: str | None = None) -> Path:
    """Write the pickle and the file into a folder; return the file's path. Raises Unfit."""
    framework = framework or framework_of(model, inputs)
    model = _uncompiled(model)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = _pickled({"model": model, "inputs": inputs, "loss": loss}, framework)
        free = shutil.disk_usage(folder).free
        if len(content) > free:
            raise Unfit(f"The model needs {len(content) / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            f"choose another folder with out=.")  # fmt: skip
        (folder / PICKLE).write_bytes(content)
        path = [entry for entry in (str(Path(entry).resolve()) for entry in sys.path) if Path(entry) != HOME]
        text = FILE.format(module=OWNERS[framework][0], framework=framework, path=path, name=PICKLE)
        file = folder / "model.py"
        file.write_text(text + (LOSS if loss is not None else ""), encoding="utf-8")
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


def _leaves(value: Any) -> list[Any]:
    """Return the values within tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _uncompiled(model: Any) -> Any:
    """Return the module inside what torch.compile returned: the suite compiles it itself."""
    return getattr(model, "_orig_mod", model)


def _pickled(content: dict[str, Any], framework: str) -> bytes:
    """Return the pickle, in which classes and functions of notebooks stand by value. Raises Unfit."""
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
