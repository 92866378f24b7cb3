"""Users' own Paddle layers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.jit.dy2static.program_translator import StaticFunction

from frameworks import own
from frameworks.adapter import Capture, Step, Unsupported
from frameworks.paddle import calls, eager_log, graphs
from frameworks.user_file import Fault
from measurement.cells import Cell
from workloads.own import Own
from workloads.spec import Arrays

MOST_TENSORS = 8


class Called(nn.Layer):
    """A user's layer as what takes tensors alone, by position.

    Paddle captures functions whose parameters have names, so there are `MOST_TENSORS` of them.
    """

    def __init__(
        self,
        layer: nn.Layer,
        together: Callable[[Sequence[Any]], tuple[tuple, dict]],
        loss: Callable[[Any], paddle.Tensor] | None = None,
    ):
        super().__init__()
        self.layer, self._together, self._loss = layer, paddle.jit.not_to_static(together), loss

    def forward(self, a, b=None, c=None, d=None, e=None, f=None, g=None, h=None):
        args, kwargs = self._together([tensor for tensor in (a, b, c, d, e, f, g, h) if tensor is not None])
        if self._loss is None:
            return self.layer(*args, **kwargs)
        return self._loss(self.layer(*args, **kwargs))


class Model:
    """A user's layer in the cell's dtype on the current device."""

    def __init__(self, workload: Own, weights: Arrays, inputs: Sequence[Arrays], dtype: str, trains: bool = False):
        if not workload.is_file:
            raise Unsupported(f"{workload.name} is no model of Paddle: write a file, as docs/own-models.md shows.")
        self.file, self.dtype = own.UserFile(workload.source), dtype
        self._tolerance = max(workload.tolerance.values())
        self._form: tuple[tuple, dict] = ((), {})
        self.sets = [self.place(arrays) for arrays in inputs]
        _seed(int(weights["seed"]))
        layer = self.file.call("model")
        if not isinstance(layer, nn.Layer):
            raise Fault(f"model() of {workload.name} returned {type(layer).__name__}: return a paddle.nn.Layer.")
        _refuse_captured(layer)
        (layer.train if trains else layer.eval)()
        if any(dtype not in str(parameter.dtype) for parameter in layer.parameters()):
            layer.to(dtype=dtype)
        self.layer = Called(layer, self.together)
        (self.layer.train if trains else self.layer.eval)()
        # Running statistics are parameters without a gradient.
        held = [*layer.buffers(), *(parameter for parameter in layer.parameters() if parameter.stop_gradient)]
        self._buffers = [(tensor, tensor.clone()) for tensor in held]

    def place(self, arrays: Arrays) -> tuple[paddle.Tensor, ...]:
        """The tensors of one input set, floating point in the cell's dtype."""
        _seed(int(arrays["seed"]))
        args, kwargs = own.as_call(self.file.call("inputs", **own.arguments_of(arrays)))
        self._form = args, kwargs
        array_leaves = [leaf for leaf in (*args, *kwargs.values()) if _is_array(leaf)]
        if not array_leaves:
            raise Fault("inputs() returned no tensor and no array: return one, a tuple, or a dict of keywords.")
        if len(array_leaves) > MOST_TENSORS:
            raise Unsupported(
                f"inputs() returned {len(array_leaves)} tensors, and Paddle's models may take {MOST_TENSORS} here: "
                "stack some, or make constants in model()."
            )
        return tuple(_cast(_tensor(leaf), self.dtype) for leaf in array_leaves)

    def restore(self) -> None:
        """Put the layer's buffers back."""
        for buffer, first in self._buffers:
            paddle.assign(first, buffer)

    def reference(self, count: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """Outputs of the first calls in eager mode, in float64 where the layer runs in it."""
        self.refuse_what_changes()

        def run(layer: nn.Layer, sets: Sequence) -> list[dict[str, np.ndarray]]:
            call = calls.without_gradients(Called(layer, self.together))
            return [named(call(*tensors)) for tensors in sets]

        return self.in_more_precision(run, count)

    def refuse_what_changes(self) -> None:
        """Raise `Unsupported` for a layer whose output two calls on one input do not have in common."""
        call = calls.without_gradients(self.layer)
        if reason := own.problem(lambda: named(call(*self.sets[0])), _seed, self._tolerance, self.restore):
            raise Unsupported(reason)

    def in_more_precision(self, run: Callable[..., list[dict]], count: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """What `run(a copy of the layer, input sets)` gives of the first calls, in the first dtype that it runs in."""
        before, last = paddle.get_default_dtype(), ""
        for dtype in dict.fromkeys(("float64", "float32", self.dtype)):
            try:
                paddle.set_default_dtype(dtype)
                layer = self.copied()
                layer.to(dtype=dtype)
                sets = [[_cast(tensor, dtype) for tensor in tensors] for tensors in self.sets[:count]]
                return f"its own eager mode in {dtype}", run(layer, sets)
            except Exception as error:  # its own code may insist on a dtype
                last = type(error).__name__
            finally:
                paddle.set_default_dtype(before)
        raise Unsupported(
            f"the layer runs in no dtype on a copy of its weights ({last}), so nothing can be compared with it: have "
            "copy.deepcopy(model()) take inputs()."
        )

    def fresh(self) -> Called:
        """What one graph mode captures: copies of the layers, on the parameters and buffers of the user's own.

        `to_static` replaces the forward of what it is given, and Paddle 2 that of every layer within, which are eager
        mode's and the other graphs' as well.
        """
        layer = self.layer.layer
        called = Called(self.copied(*layer.parameters(), *layer.buffers()), self.together)
        called.eval()
        return called

    def copied(self, *shared: paddle.Tensor) -> nn.Layer:
        """A copy of the user's layer that has the tensors `shared` in common with it."""
        try:
            return copy.deepcopy(self.layer.layer, {id(tensor): tensor for tensor in shared})
        except Exception as error:  # of the user's own attributes
            raise Unsupported(
                f"the layer cannot be copied ({type(error).__name__}), and Paddle writes to what it captures: keep "
                "results of calls, locks and open files out of its attributes."
            ) from error

    def names(self) -> tuple[str, ...]:
        """What the output's tensors are called, in the order in which Paddle flattens them."""
        output = calls.without_gradients(self.layer)(*self.sets[0])
        self.restore()
        known = {id(tensor): name for name, tensor in own.named(output, _is_tensor).items()}
        return tuple(known[id(leaf)] for leaf in paddle.utils.flatten(output) if id(leaf) in known)

    def together(self, tensors: Sequence[Any]) -> tuple[tuple, dict]:
        left, (args, kwargs) = iter(tensors), self._form
        filled = tuple(next(left) if _is_array(leaf) else leaf for leaf in args)
        return filled, {name: next(left) if _is_array(leaf) else leaf for name, leaf in kwargs.items()}


def prepare(model: Model, cell: Cell, workload: Own) -> Step:
    """The layer in the cell's mode; a predictor's outputs, which have no names, get those of eager mode's."""
    told = {"restore": model.restore, "own": own.Owned(model)}  # without a cost: Paddle counts known layers alone
    eager = calls.without_gradients(model.layer)
    if cell.mode == "eager":
        return Step(eager, model.sets, program=partial(eager_log.listed, eager, model.sets[0], cell), **told)
    if cell.mode in graphs.PREDICTORS:
        exported = graphs.Exported(model.fresh(), cell, graphs.specification(workload, cell, model.sets[0]))
        captured = lambda: whole(exported.captured)  # noqa: E731
        call = calls.named(exported, model.names())
        return Step(call, model.sets, captured, program=exported.operators, load=exported.load, **told)
    static, capture, operators = graphs.to_static(model.fresh(), workload, cell, model.sets[0])
    call = calls.without_gradients(static)
    return Step(call, model.sets, lambda: whole(capture()), program=operators, **told)


def whole(capture: Capture) -> Capture:
    """With `full_graph` a program holds the whole layer or there is none, however many linear layers it has."""
    return replace(capture, whole=bool(capture.graphs))


def named(output: Any) -> dict[str, np.ndarray]:
    """An output's tensors by name, on the host: a predictor's are handles."""
    tensors = own.named(output, lambda value: _is_tensor(value) or hasattr(value, "copy_to_cpu"))
    return {name: _on_host(tensor) for name, tensor in tensors.items()}


def _refuse_captured(layer: nn.Layer) -> None:
    """Raise `Unsupported` for a layer that is a graph already: eager mode would run that."""
    for name, part in layer.named_sublayers(include_self=True):
        if isinstance(part.forward, StaticFunction):
            raise Unsupported(
                f"the forward of {name or 'the layer'} is captured by to_static already, which eager mode would run: "
                "leave to_static out of the file."
            )


def _on_host(tensor: Any) -> np.ndarray:
    double = isinstance(tensor, paddle.Tensor) and tensor.dtype == paddle.float64
    return tensor.numpy() if double else calls.array(tensor)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, paddle.Tensor)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (paddle.Tensor, np.ndarray))


def _tensor(leaf: Any) -> paddle.Tensor:
    return leaf if isinstance(leaf, paddle.Tensor) else paddle.to_tensor(leaf)


def _cast(tensor: paddle.Tensor, dtype: str) -> paddle.Tensor:
    return tensor.astype(dtype) if tensor.is_floating_point() else tensor


def _seed(seed: int) -> None:
    own.seed_python(seed)
    paddle.seed(seed)
