"""Users' own models at the boundary: their file, run in the worker alone, and the additional reports of their steps.

The suite's workloads declare correct outputs, FLOPs and bytes; a step of a user's model determines them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import random
import re
import sys
import traceback
import weakref
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from frameworks.user_imports import put_first

PACKAGES = "/site-packages/"
INSTALLING = "set PYTHON to an interpreter that has it, or list it in a file and set REQUIREMENTS=file."
# How a model refuses inputs; frameworks add their own.
DISAGREEING = (AttributeError, IndexError, RuntimeError, TypeError, ValueError)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# Modules that parse a command line.
_PARSERS = ("argparse", "optparse", "click")
# Floating dtypes in errors, by frameworks' other names for them.
_FLOATING = re.compile(r"\b(double|half|bfloat16|float(?:16|32|64)?)(?:tensor)?\b", re.IGNORECASE)
_SHORT = {"double": "float64", "float": "float32", "half": "float16"}
_DTYPE = re.compile(r"b?float(?:16|32|64)\b")
# How Python and Keras say that arguments do not fit a signature.
_UNBOUND = re.compile(r"(missing|unexpected|multiple values|takes) .*argument|must always be passed")
# How Python and torch say that a tensor is no array of NumPy.
_TENSOR = re.compile(r"Tensor' object has no attribute|expected np\.ndarray")
# How torch says that an operator has no kernel for a dtype of 16 bits.
_LACKING = re.compile(
    r"(?is).*(?:not implemented for '|unsupported (?:dtype|scalar ?type):? |not support (?:dtype )?)(?:torch\.)?"
    r"(?:b?float16|half)\b"
)
# What JAX's errors say of the function that the suite traces, and where they refer to.
_AT_SUITE = re.escape(f"{Path(__file__).parent / 'jax'}/")
_TRACED = re.compile(
    rf"\s*The error occurred while tracing the function \S+ at {_AT_SUITE}[^\n]*|\s*See https://docs\.jax\.dev/\S*"
    rf"|(?P<model>function \S+ at {_AT_SUITE}\S+ traced for jit)"
)
_SUITE = tuple(f"{Path(__file__).parents[1] / part}/" for part in ("frameworks", "worker", "measurement"))


class Fault(Exception):
    """A user's file cannot be measured; the message is one sentence with the way out."""


class UserFile:
    """A user's file, run once per process. Its folder comes first on the path, as when it runs as a script."""

    at_work = False  # of the process: one of `call`'s functions runs, which may start processes, as the model may not
    _loaded: dict[str, ModuleType] = {}  # noqa: RUF012 - of the process, as `sys.modules`

    def __init__(self, path: str):
        self.path, self.name = path, Path(path).name
        if path not in self._loaded:
            self._loaded[path] = self._run()
        self.module = self._loaded[path]

    def function(self, name: str) -> Callable[..., Any]:
        """Return the file's function of that name. Raises Fault where there is none."""
        value = getattr(self.module, name, None)
        if not callable(value):
            raise Fault(f"{self.name} has no {name}(): `make new NAME=my_model` writes one.")
        return value

    def call(self, function: str, **arguments: Any) -> Any:
        """Return the result of the file's function. Raises Fault where there is none, or where it ends the process."""
        callee = self.function(function)
        UserFile.at_work = True
        try:
            with _alive(f"{function}() of {self.name}"), _as_script(self.path), np.errstate():
                value = callee(**arguments)
        finally:
            UserFile.at_work = False
        if function == "model":
            _Made.latest = _Made(value)
        return value

    def _run(self) -> ModuleType:
        name = f"user_file_{Path(self.path).stem}_{len(self._loaded)}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        if spec is None or spec.loader is None:
            raise Fault(f"{self.path} cannot be loaded.")
        module = importlib.util.module_from_spec(spec)
        put_first(str(Path(self.path).parent))
        sys.modules[name] = module
        try:
            with _alive(self.name), _as_script(self.path), np.errstate():  # or NumPy would raise in the suite
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


@contextlib.contextmanager
def _alive(what: str) -> Iterator[None]:
    """Turn an exit within into Fault, and end forked children here."""
    process = os.getpid()
    try:
        yield
    except SystemExit as error:
        end = f"{what} called exit({'' if error.code is None else error.code})"
        if any(_module_of(frame) in _PARSERS for frame, _ in traceback.walk_tb(error.__traceback__)):
            end += (
                ': files run without command-line arguments: parse them in `if __name__ == "__main__":`, or give each '
                "a default"
            )
        raise Fault(f"{end}.") from error
    finally:
        if os.getpid() != process:  # a child of a fork: the rest is its parent's to do
            os._exit(0)


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


@contextlib.contextmanager
def _as_script(path: str) -> Iterator[None]:
    """Run a file's code with the command line of `python path`; turn an error of its relative imports into Fault.

    Open stdout and stderr again where it closed them: a warning of a framework would raise ValueError.
    """
    sys.argv = [path]  # from now on: calls of the model may read it
    try:
        yield
    except ImportError as error:
        frames = [entry.filename for entry in traceback.extract_tb(error.__traceback__)]
        importing = [file for file in frames if not file.startswith(("<frozen", *_SUITE))][-1:]
        if "relative import" not in str(error) or not any(_is_users(file, path) for file in importing):
            raise
        raise Fault(
            f"{error} ({place_of(error, path)}): import by absolute name; the file's folder is on sys.path."
        ) from error
    finally:
        for name, number in (("stdout", 1), ("stderr", 2)):
            stream = getattr(sys, name)
            with contextlib.suppress(OSError):  # of a descriptor that was closed
                if stream is None or getattr(stream, "closed", False):
                    setattr(sys, name, open(number, "w", closefd=False, errors="replace"))  # noqa: SIM115 - kept open


class _Made:
    """A result of the user's `model`, and the dtype of its weights then; what it holds is read after an error."""

    latest: _Made | None = None  # of the process

    def __init__(self, model: Any):
        self._model: Callable[[], Any] = lambda: None
        self._own = ""
        with contextlib.suppress(Exception):  # a tuple has no weak references, and a user's class may raise
            self._own = _dtype_of_weights(model)
            self._model = weakref.ref(model)

    def left_behind(self) -> str | None:
        """Return the way out where the suite's cast separated the weights from other tensors; None elsewhere."""
        model = self._model()
        cast = _dtype_of_weights(model)
        others = [f"{name} ({dtype})" for name, dtype in _tensors(model, "", set()) if dtype != cast]
        if not cast or (not others and cast == self._own):
            return None
        rest = "no tensor that forward makes: make it in the dtype of the inputs."
        if others:
            rest = f"no tensors held as plain attributes, such as {others[0]}: register them as buffers."
        return f"; the suite casts weights, buffers and inputs to DTYPE, here {cast}, but {rest}"


def _dtype_of_weights(model: Any) -> str:
    """Return the name of the dtype of a module's first floating-point parameter; empty where there is none."""
    parameters = getattr(model, "parameters", None)
    return next(filter(None, map(_floating, parameters())), "") if callable(parameters) else ""


def _floating(value: Any) -> str:
    """Return the name of a tensor's floating dtype; empty for any other value."""
    kind = getattr(value, "dtype", None) if hasattr(value, "shape") and not isinstance(value, np.generic) else None
    found = _DTYPE.search(str(kind))
    return found[0] if found else ""


def _tensors(value: Any, name: str, seen: set[int]) -> Iterator[tuple[str, str]]:
    """Yield name and dtype of the floating-point tensors in a module, its parts and its containers."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if dtype := _floating(value):
        yield name, dtype
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part, name, seen)
    elif isinstance(value, Mapping) or callable(getattr(value, "parameters", None)):
        for key, part in (value if isinstance(value, Mapping) else vars(value)).items():
            yield from _tensors(part, str(key), seen)


def can_be_called(value: Any) -> bool:
    """Return whether a value gives outputs at every call: no class, whose calls make objects, and no generator."""
    return callable(value) and not isinstance(value, type) and not inspect.isgeneratorfunction(value)


def kind(value: Any) -> str:
    """Return a value's kind in words, for a sentence."""
    if isinstance(value, tuple):
        return f"a tuple of {' and '.join(map(kind, value))}"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    if inspect.isgeneratorfunction(value):
        return f"the generator function {value.__name__}"
    if inspect.isfunction(value):
        return "a lambda" if value.__name__ == "<lambda>" else f"the function {value.__name__}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


def arguments_of(arrays: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the arguments of the user's `inputs` among a workload's input arrays."""
    return {name: array.item() for name, array in arrays.items() if name != "seed"}


def as_call(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a model's arguments: a dict by keyword, a tuple by position, any other value alone.

    A `UserDict`, such as a tokenizer's encoding, is a dict. An instance of a subclass of dict or tuple, such as a named
    tuple, is a single argument. Raises Fault for an iterator, and for a list or another sequence, which may be either.
    """
    if isinstance(given, Iterator):
        raise Fault("inputs() returned an iterator, which gives its values once: return a tensor, a tuple or a dict.")
    if isinstance(given, Sequence) and not isinstance(given, tuple | str | bytes):
        one = "([a, b],) if the model takes one list" if type(given) is list else "(it,) if the model takes it whole"
        raise Fault(f"inputs() returned a {type(given).__name__}: return a tuple of the call's arguments, or {one}.")
    if type(given) is dict or isinstance(given, UserDict):
        return (), dict(given)
    return (given, {}) if type(given) is tuple else ((given,), {})


def seed_python(seed: int) -> None:
    """Seed Python's own random numbers, and NumPy's."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


def short_place(file: str, line: int | str, source: str) -> str:
    """Return `net.py:12`: a file relative to the user's folder, or to the packages' folder."""
    return f"{without_folders(file, source)}:{line}"


def without_folders(text: str, source: str) -> str:
    """Return a text whose paths are relative to the user's folder, or to that of packages or Python's library."""
    for folder in (str(Path(source).parent), *sorted(sys.path, key=len, reverse=True)):
        if folder.startswith("/"):
            text = re.sub(rf"(?<![\w./-]){re.escape(folder)}/", "", text)
    return text


@contextlib.contextmanager
def naming_inputs(inputs: Callable[[], str], were_arrays: bool = False) -> Iterator[None]:
    """Add the description of the inputs to an error of the model's first call, since the model may not accept them.

    The error gets the attribute `called_with`, of at most 300 characters, and `were_arrays`, if the suite made tensors
    of NumPy's arrays.
    """
    try:
        yield
    except Fault:
        raise
    except Exception as error:
        if isinstance(error, DISAGREEING) or type(error).__module__ != "builtins":
            with contextlib.suppress(Exception):  # the device that holds the inputs may have failed
                error.called_with = inputs()[:300]  # type: ignore[attr-defined]
                error.were_arrays = were_arrays  # type: ignore[attr-defined]
                if _Made.latest and _names_two_dtypes(str(error)):
                    error.left_behind = _Made.latest.left_behind()  # type: ignore[attr-defined]
        raise


@contextlib.contextmanager
def inputs_alone() -> Iterator[None]:
    """Make a user model's inputs in the block, where another process ran `model()`. Raises Fault if they need that."""
    try:
        yield
    except (Fault, ImportError, MemoryError):
        raise
    except Exception as error:
        if "out of memory" in text_of(error).lower():
            raise
        raise Fault(
            f"inputs() fails where model() has not run ({in_a_line(error)}), as in a process that loads an artefact: "
            "let inputs() use nothing that model() sets."
        ) from error


def disagreement(error: BaseException) -> str:
    """Return the way out of an error of the model's first call; empty for another error."""
    given = getattr(error, "called_with", "")
    if not given or getattr(error, "left_behind", None):
        return given and error.left_behind  # type: ignore[attr-defined]
    several = not given.startswith("argument 1 of ") or ", argument 2 of " in given
    text = text_of(error)
    unbound = _UNBOUND.search(text) is not None
    expects_arrays = isinstance(error, AttributeError | TypeError) and _TENSOR.search(text)
    if expects_arrays and not unbound and getattr(error, "were_arrays", False):
        return f"; the call was model({given}), in which tensors replace NumPy's arrays: let the model take tensors."
    if _LACKING.match(text):
        return "; this operator has no kernel for that dtype: choose another DTYPE, or cast its operands in forward."
    whole = ", or `return (inputs,)` to pass one argument" * (several and unbound)
    return f"; the call was model({given}): change inputs() or model() so that they agree{whole}."


def text_of(error: BaseException) -> str:
    """Return an exception's text, also of a user's class with a `__str__` that raises."""
    try:
        return _TRACED.sub(lambda found: "the model" if found["model"] else "", str(error))
    except Exception as other:
        return f"its text is unknown: __str__ raises {type(other).__name__}"


def in_a_line(error: BaseException, most: int = 200) -> str:
    """Return the class and the text of an exception in one line of at most so many characters."""
    return " ".join(f"{type(error).__name__}: {text_of(error)}".split())[:most]


def _names_two_dtypes(text: str) -> bool:
    """Return whether an error is about operands of two floating dtypes."""
    names = {name.lower() for name in _FLOATING.findall(text)}
    return len({_SHORT.get(name, name) for name in names}) > 1


def place_of(error: BaseException, source: str) -> str:
    """Return the innermost line of an exception in the user's folder, `net.py:12`; empty without one.

    Paddle and TensorFlow replace the traceback and write its frames into the text.
    """
    frames = [(entry.filename, entry.lineno or 0) for entry in traceback.extract_tb(error.__traceback__)]
    frames += [(file, int(line)) for file, line in _FRAME.findall(text_of(error))]
    inside = [place for place in frames if _is_users(place[0], source)]
    return short_place(*inside[-1], source) if inside else ""


def _is_users(file: str, source: str) -> bool:
    """Return whether a file is in the user's folder, and not the suite's or an installed package's."""
    folder = str(Path(source).parent) + "/"
    return file.startswith(folder) and not file.startswith(_SUITE) and PACKAGES not in file
