"""Operators that eager mode dispatches, from Paddle's own log of a call.

At level 3 Paddle logs each operator with its operands, from any caller: Python, a tensor's `+`, automatic mixed
precision. The log omits attributes, so the functions of those operators whose attributes matter write theirs between.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import paddle

from measurement.cells import Cell

# Attributes that choose a kernel: their names in a captured program, their places among the arguments of the eager
# function (Paddle's ops.yaml), and their defaults.
ATTRIBUTES: dict[str, dict[str, tuple[int, Any]]] = {
    "matmul": {"transpose_x": (2, False), "transpose_y": (3, False)},
    "softmax": {"axis": (1, -1)},
    "layer_norm": {"epsilon": (3, 1e-5), "begin_norm_axis": (4, 1)},
    "gelu": {"approximate": (1, False)},
    "dropout": {"is_test": (3, False)},
    "flash_attn": {"dropout": (5, 0.0), "causal": (6, False)},
    "flash_attn_unpadded": {"scale": (9, None), "dropout": (10, 0.0), "causal": (11, False)},
    "flash_attn_v3": {"softmax_scale": (7, None), "causal": (8, False)},
    "flashmask_attention": {"dropout": (5, 0.0), "causal": (6, False)},
    "flashmask_attention_v2": {"softmax_scale": (5, None), "causal": (6, False)},
    "memory_efficient_attention": {"causal": (10, False), "dropout_p": (11, 0.0), "scale": (12, None)},
}
LEVEL = 3  # at 4 and above operands are printed by their address
GRADIENT = "Running_AD_API_GRAD: "
BEGIN, END = "arguments of a call: ", "end of a call"
_EVENT = re.compile(
    rf"^{BEGIN}(?P<begin>[^\n]*)$|^(?P<end>{END})$|^=+Running_AD_API: (?P<running>\w+)=+$"
    r"|^Forward Debug Info \{\s*API_Name: (?P<api>\w+)[ :]*\n\s*Input: \[(?P<operands>.*?)\]\s*\n"
    r"\s*Output: \[(?P<results>.*?)\] \} *$",
    re.MULTILINE | re.DOTALL,
)
# A `PyLayer` of the user's, whose operators are indented, and which is then logged like one of them.
_LAYER = re.compile(r"(\w+):Running PyLayer Apply")
_OPERAND = re.compile(r"^\( (\w+) , ", re.MULTILINE)
_TENSOR = re.compile(r"Dtype: (\w+),.*?Shape: ([\d, ]*)$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Dispatch:
    """One operator as Paddle logs it.

    `operands`, under the operator's own names for them, and `results` are texts such as `float32 (1,32,768)`.
    `constant`: in a program, all operands are constants.
    """

    name: str
    operands: Mapping[str, list[str]]
    results: list[str]
    attributes: Mapping[str, Any]
    constant: bool = False


def logged(call: Callable[..., Any], inputs: tuple, despite_numpy: bool = False) -> str | None:
    """Return Paddle's log of `call(*inputs)`; None where it cannot be switched on for one call, as in 2.6.

    Raises ValueError where the call differentiates, or takes a tensor to NumPy, which logs nothing; the latter
    not with `despite_numpy`.
    """
    if not hasattr(paddle.base.core, "set_vlog_level"):
        return None
    with _arguments_written(), _taken_to_numpy() as taken, _logged() as log:
        call(*inputs)
    if taken and not despite_numpy:
        raise ValueError(
            "eager mode converts a tensor to NumPy during the call, and Paddle does not log NumPy's operators."
        )
    if GRADIENT in log():
        raise ValueError("eager mode computes gradients during the call, and Paddle does not log their operators.")
    return log()


def dispatches(log: str, cell: Cell | None) -> list[Dispatch]:
    """Return the operators in a log of eager calls. Raises ValueError where it lacks operands or attributes."""
    operators, running, calls = [], [], []
    layers = "|".join({"", *_LAYER.findall(log)})
    for event in _EVENT.finditer(re.sub(r"^\t+", "", log, flags=re.MULTILINE)):
        if event["begin"]:
            calls.append(json.loads(event["begin"]))
        elif event["end"]:
            calls.pop()
        elif event["running"]:
            running.append(event["running"])
        elif not re.fullmatch(rf"({layers})\d+", event["api"]):
            name = running.pop() if running else ""
            if not re.fullmatch(rf"{name}\d*", event["api"]):  # calls of one operator are numbered
                raise ValueError(
                    f"Paddle's log lists the operands of {event['api']} after the operator {name or 'none'}."
                )
            while running and running[-1] == name:  # called again after casting its operands
                running.pop()
            parts = _OPERAND.split(event["operands"])
            operands = {key: _tensors(text, cell) for key, text in zip(parts[1::2], parts[2::2], strict=True)}
            attributes = _attributes(name.removesuffix("_"), calls)
            operators.append(Dispatch(name, operands, _tensors(event["results"], cell), attributes))
    if running:
        raise ValueError(f"Paddle's log has no operands of {running[0]}.")
    return operators


def tensor(dtype: str, shape: list[int], cell: Cell | None) -> str:
    """Return `float32 (1,32,768)`, with None for a length that a program leaves open.

    For a program that serves every shape, only the rank.
    """
    if cell and cell.shapes == "dynamic":
        return f"{dtype} rank {len(shape)}"
    return f"{dtype} ({','.join('None' if length < 0 else str(length) for length in shape)})"


def _tensors(text: str, cell: Cell) -> list[str]:
    return [
        tensor(dtype, [int(size) for size in re.findall(r"\d+", shape)], cell) for dtype, shape in _TENSOR.findall(text)
    ]


def _attributes(name: str, calls: list[tuple[str, dict]]) -> dict[str, Any]:
    """Return the arguments of the innermost running call, where the operator has attributes that matter."""
    if name not in ATTRIBUTES:
        return {}
    if not calls or calls[-1][0] != name:
        raise ValueError(f"Paddle does not log the attributes of {name}.")
    return calls[-1][1]


@contextlib.contextmanager
def _logged() -> Iterator[Callable[[], str]]:
    """Collect Paddle's log during the block, which goes to this process's stderr otherwise."""
    severity = ctypes.c_int.in_dll(ctypes.CDLL(paddle.base.libpaddle.__file__), "_ZN3fLI17FLAGS_minloglevelE")
    sys.stderr.flush()
    text, least, stderr = "", severity.value, os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            severity.value = 0
            paddle.base.core.set_vlog_level(LEVEL)
            yield lambda: text
        finally:
            paddle.base.core.set_vlog_level(int(os.environ.get("GLOG_v", 0)))  # noqa: SIM112 - so spelt
            severity.value = least
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            text = file.read().decode(errors="replace")


@contextlib.contextmanager
def _taken_to_numpy() -> Iterator[list[str]]:
    """Collect the files whose code turns tensors into arrays in the block, except Paddle's (`float(tensor)`)."""
    taken: list[str] = []
    names = ("numpy", "__array__")
    functions = {name: getattr(paddle.Tensor, name) for name in names}
    package = os.path.dirname(paddle.__file__) + "/"

    def noting(function: Callable) -> Callable:
        def noted(*arguments, **named):
            file = sys._getframe(1).f_code.co_filename
            if not file.startswith(package):
                taken.append(file)
            return function(*arguments, **named)

        return noted

    try:
        for name, function in functions.items():
            setattr(paddle.Tensor, name, noting(function))
        yield taken
    finally:
        for name, function in functions.items():
            setattr(paddle.Tensor, name, function)


@contextlib.contextmanager
def _arguments_written() -> Iterator[None]:
    """Make the functions of operators in `ATTRIBUTES` log their arguments, wherever Python holds them."""
    product = paddle.Tensor.__matmul__  # `@`
    functions = {spelling: name for name in ATTRIBUTES for spelling in (name, f"{name}_")}
    functions["linear"] = "matmul"  # a function of eager mode alone, which calls matmul and add
    functions = {getattr(paddle._C_ops, key, None): (key, name) for key, name in functions.items()}
    functions.pop(None, None)
    places = _places(list(functions))  # before the replacements hold them too
    try:
        paddle.Tensor.__matmul__ = _logging("matmul", product)
        for function, (spelling, name) in functions.items():
            stand_in = _logging(name, function, plain=spelling == "linear")
            _put([place for place in places if place[2] is function], stand_in)
        yield
    finally:
        paddle.Tensor.__matmul__ = product
        for place in places:
            _put([place], place[2])


def _places(functions: list[Callable]) -> list[tuple[Any, str, Callable]]:
    """Return where functions are held: modules' and objects' names, and closures; many keep their own."""
    places, ids = [], {id(function) for function in functions}
    for holder in gc.get_referrers(*functions):
        if isinstance(holder, types.CellType):
            places.append((holder, "", holder.cell_contents))
            continue
        names = holder if isinstance(holder, dict) else getattr(holder, "__dict__", None)
        if isinstance(names, dict) and "__module__" not in names:  # a class's, which may not be written to
            places += [(names, name, value) for name, value in list(names.items()) if id(value) in ids]
    return places


def _put(places: list[tuple[Any, str, Callable]], function: Callable) -> None:
    for holder, name, _ in places:
        if isinstance(holder, types.CellType):
            holder.cell_contents = function
        else:
            holder[name] = function


def _logging(name: str, function: Callable, plain: bool = False) -> Callable:
    """Return `function`, which logs the attributes that `name` is given; where `plain`, their defaults."""

    def stand_in(*arguments, **named):
        attributes = {
            key: default if plain else named.get(key, arguments[place] if place < len(arguments) else default)
            for key, (place, default) in ATTRIBUTES[name].items()
        }
        os.write(2, f"{BEGIN}{json.dumps([name, attributes], default=str)}\n".encode())
        try:
            return function(*arguments, **named)
        finally:
            os.write(2, f"{END}\n".encode())

    return stand_in
