"""User models in Paddle: built from their file, called as their user calls them, compared with their own eager mode."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import paddle
from paddle import nn
from paddle.jit import TranslatedLayer
from paddle.jit.dy2static.program_translator import StaticFunction

from frameworks import user_file, user_model
from frameworks.adapter import Capture, Step, Unsupported
from frameworks.paddle.inspect import program as programs
from frameworks.paddle.modes import graphs
from frameworks.paddle.modes.state import State, copied, has_memory
from frameworks.paddle.user_model import trees
from frameworks.user_model import Inputs
from frameworks.values import Rules, Values
from measurement.cells import Cell
from workloads.user_model import UserModel

# How a model may be called: one that differentiates in forward needs more than the first.
AUTOGRAD: dict[str, Callable[[], contextlib.AbstractContextManager]] = {
    "no_grad": paddle.no_grad,
    "enabled": contextlib.nullcontext,
}
_ADDRESS = re.compile(r" at 0x\w+")
# How Paddle says that a captured program has no such method of tensors.
_LACKING = re.compile(r"pir\.Value' object has no attribute '(\w+)'")
EXACT = ("float32", "float64", "complex64", "complex128")


class PaddleRules(Rules):
    """Arrays of Paddle's tensors and of a predictor's handles, and the parts of sparse tensors."""

    def array(self, value: Any) -> np.ndarray | None:
        if hasattr(value, "copy_to_cpu"):
            return _of_handle(value)
        if not isinstance(value, paddle.Tensor) or not value.is_dense():
            return None
        kind = _name(value.dtype)
        sixteen = "float" in kind and kind not in EXACT
        return (value.detach().astype("float32") if sixteen else value.detach()).numpy()

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        if isinstance(value, paddle.dtype | paddle.base.core.Place):
            return {}
        if not isinstance(value, paddle.Tensor):
            return None
        if value.is_sparse_coo():
            value = value.detach().coalesce()
            return {"indices": value.indices(), "values": value.values(), "shape": tuple(value.shape)}
        if value.is_sparse_csr():
            held = value.detach()
            return {"rows": held.crows(), "columns": held.cols(), "values": held.values(), "shape": tuple(value.shape)}
        return None

    def opaque(self, value: Any) -> bool:
        return isinstance(value, nn.Layer | StaticFunction)


class Called(nn.Layer):
    """A user's layer as `to_static` captures it, which needs named parameters: `args` and `kwargs`."""

    def __init__(self, layer: nn.Layer, loss: Callable[[Any], paddle.Tensor] | None = None):
        super().__init__()
        self.layer, self._loss = layer, loss
        self._unpacked, self._opened = map(paddle.jit.not_to_static, (trees.unpacked, trees.opened))
        self.training = layer.training

    def forward(self, args, kwargs):
        output = self.layer(*self._unpacked(args), **self._unpacked(kwargs))
        return self._opened(output) if self._loss is None else self._loss(output)


class Exportable(nn.Layer):
    """A user's layer as a function of tensors alone, as exported programs are; other inputs stay those of one set."""

    def __init__(self, layer: nn.Layer, inputs: Inputs):
        super().__init__()
        self.called = Called(layer)
        self._filled = paddle.jit.not_to_static(lambda tensors: _filled(inputs, tensors))
        self.training = layer.training

    def forward(self, tensors):
        args, kwargs = self._filled(tensors)
        return {"output": self.called(args, kwargs)}  # which Paddle turns into a list, unlike other containers


class Model(user_model.UserModel):
    """A user's layer in the cell's dtype on the current device."""

    rules, ways, compiler = PaddleRules(), AUTOGRAD, "to_static"
    wanted = "a paddle.nn.Layer"
    cell: Cell | None = None  # one of the group's, whose lengths are open in a listing

    def opened(self, workload: UserModel) -> user_file.UserFile:
        if not workload.is_file:
            raise Unsupported(
                f"{workload.name} is not a Paddle model: `make new FRAMEWORK=paddle NAME=my_model` writes one."
            )
        return user_file.UserFile(workload.source)

    def seed(self, seed: int) -> None:
        user_file.seed_python(seed)
        paddle.seed(seed)

    @staticmethod
    def fits(made: Any) -> bool:
        return isinstance(made, nn.Layer)

    def built(self, made: nn.Layer) -> nn.Layer:
        layer, self.removed = plain(made)
        (layer.train if self.trains else layer.eval)()
        _cast_layer(layer, self.dtype)
        self._state = State(layer)
        paddle.set_default_dtype(self.dtype)  # the file may have set another one
        return layer

    def cast(self, inputs: Inputs, dtype: str) -> Inputs:
        return trees.changed(inputs, partial(_placed, dtype=dtype))

    def fresh(self, inputs: Inputs) -> Inputs:
        return trees.changed(inputs, _copied)

    def copied(self, dtype: str) -> nn.Layer:
        return _cast_layer(self.copy(), dtype)

    def settle(self) -> None:
        super().settle()
        if self.keep_what_is_made_once(self.module.sublayers(include_self=True)):
            self._state = State(self.module)

    def restore(self) -> None:
        self._state.restore()

    @contextlib.contextmanager
    def by_default(self, dtype: str) -> Iterator[None]:
        before = paddle.get_default_dtype()
        paddle.set_default_dtype(dtype)
        try:
            yield
        finally:
            paddle.set_default_dtype(before)

    def refusing(self) -> contextlib.AbstractContextManager:
        return _refusing_graphs(self.source)

    def operators(self, inputs: Inputs) -> Any:
        return programs.executed(self.call, inputs, self.cell)

    def operators_in_turn(self, inputs: Inputs) -> Any:
        return programs.executed(self.call, inputs, self.cell, despite_numpy=True)

    def shared(self) -> nn.Layer:
        """Return the layer that one graph mode captures: copies of the layers, with the user's parameters and buffers.

        Raises Unsupported where a graph would not fill the inputs as a call does.
        """
        if self.keeps:
            raise Unsupported(self.not_written("a graph"))
        self.restore()  # a call of eager mode may have bound other buffers, which nothing restores
        return self.copy(*self.module.parameters(), *self.module.buffers())

    def copy(self, *shared: paddle.Tensor) -> nn.Layer:
        """Return a copy of the user's layer that shares the tensors `shared` with it."""
        try:
            return copied(self.module, *shared)
        except Exception as error:  # of the user's own attributes
            raise Unsupported(
                f"the layer cannot be copied ({type(error).__name__}: {error}), which to_static requires: remove "
                f"call results, locks and open files from its attributes."
            ) from error

    def in_a_copy(self, calls: int) -> list[Values]:
        return self._in_turn(self.calling(self.copy()), calls, self.fresh)

    def specification(self, cell: Cell, exported: bool = False) -> Inputs:
        """Return the first input set with the shape and type of each tensor; lengths that change are left open.

        With dynamic shapes these are the lengths that follow an argument of `inputs`; in an exported program also those
        in which the input sets differ.
        """
        others = self.sets if exported else []
        if cell.shapes == "dynamic":
            parameters = dict(cell.parameters)
            numbers = {name: value for name, value in parameters.items() if isinstance(value, int)}
            changed = [{**parameters, name: value % 7 + 1} for name, value in numbers.items()]
            given = [{name: np.array(value) for name, value in each.items()} for each in changed]
            others = [*others, *(self.place({**arrays, "seed": np.array(0)}) for arrays in given)]
        shapes = [[tensor.shape for tensor in trees.tensors(inputs)] for inputs in others]
        lists = [shape for shape in itertools.zip_longest(*shapes)] or None
        numbered = iter(range(len(trees.tensors(self.sets[0]))))

        def specified(tensor: paddle.Tensor) -> paddle.static.InputSpec:
            index = next(numbered)
            usual, unlike = list(tensor.shape), lists[index] if lists else ()
            alike = [shape for shape in unlike if shape is not None and len(shape) == len(usual)]
            free = {axis for shape in alike for axis, length in enumerate(shape) if length != usual[axis]}
            shape = [None if axis in free else length for axis, length in enumerate(usual)]
            return paddle.static.InputSpec(shape, tensor.dtype, f"input_{index}")

        return trees.changed(self.sets[0], specified)


def prepare(model: Model, cell: Cell) -> Step:
    """Return the step of the layer in the cell's mode."""
    model.cell = cell
    rest: dict[str, Any] = {"restore": model.restore, "user_model": model}  # Paddle has no counter for every operator
    if cell.mode == "eager":
        return Step(model.call, model.sets, program=lambda: model.listed, **rest)
    if cell.mode in graphs.PREDICTORS:
        called = Predicted(model, cell)
        return Step(called, model.sets, called.capture, program=called.operators, load=called.load, **rest)
    return captured(Called(model.shared()), model, cell, model.autograd, rest)


def captured(layer: Called, model: Model, cell: Cell, autograd: Callable, rest: dict[str, Any]) -> Step:
    """Return the step of a layer captured by `to_static`."""
    signature = list(trees.packed(model.specification(cell))) if cell.shapes == "dynamic" else None
    static, capture, _ = graphs.to_static(layer, cell, signature)
    packs = any(trees.packed(inputs) is not inputs and _has_class(trees.packed(inputs)) for inputs in model.sets)

    def call(args: tuple, kwargs: dict[str, Any]) -> Any:
        if packs:
            args, kwargs = trees.packed((args, kwargs))
        try:
            with autograd():
                return static(args, kwargs)
        except Exception as error:
            _raise(error, model.source)

    def operators() -> Any:
        program = graphs.traced(static, first=True)
        return None if program is None else programs.captured(program, cell)

    return Step(
        call, model.sets, lambda: with_recompilations(capture(), static, model.file.name), program=operators, **rest
    )


class Predicted:
    """A call of the exported program on an input set. Its outputs are the predictor's own memory, by eager's names.

    Raises `Unsupported` for an input set with other scalars or another structure than the first.
    """

    def __init__(self, model: Model, cell: Cell):
        if not graphs.traces_pir():
            raise Unsupported(
                f"Paddle {paddle.__version__} captures programs of Paddle 2, from which the suite exports no user "
                "model: choose MODE=to_static, or Paddle 3 without FLAGS_enable_pir_api=0."
            )
        self._model = model
        forms = [trees.form(trees.packed(inputs)) for inputs in model.sets]
        if any(form != forms[0] for form in forms):
            raise Unsupported(
                "inputs() returns other scalars or another structure at each call, and an exported program fixes "
                "both: pass tensors."
            )
        layer = Exportable(model.shared(), model.sets[0])
        signature = [trees.tensors(model.specification(cell, exported=True))]
        self._exported = graphs.Exported(layer, cell, signature)
        self._output: Any = None

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._exported(*trees.tensors((args, kwargs)))
        return self._output

    def load(self) -> None:
        with self._exporting():
            self._exported.load()
        self._output = self._exported.structured(self.form)

    def save(self, folder: Path) -> None:
        """Export the model into a folder."""
        with self._exporting():
            self._exported.save(folder)

    @property
    def form(self) -> Any:
        """The model's output, with a `graphs.Output` for each tensor; once it is exported."""
        (outputs,) = self._exported.form()
        return outputs["output"]

    @contextlib.contextmanager
    def _exporting(self) -> Iterator[None]:
        try:
            with self._model.autograd():
                yield
        except KeyError as error:
            raise Unsupported(
                f"paddle.jit.save needs every tensor to be a parameter or buffer ({error.args[0]}): register it "
                "with register_buffer."
            ) from error
        except Exception as error:
            self._refuse_unneeded(error)
            _raise(error, self._model.source)

    def _refuse_unneeded(self, error: Exception) -> None:
        """Raise Unsupported, naming arguments, where the cause of an error is inputs that no output needs.

        Saving the whole program (`skip_prune_program`) is no way out: calls would change the predictor's buffers.
        """
        if not isinstance(error, ValueError) or not (unneeded := self._exported.unneeded()):
            return
        inputs = self._model.sets[0]
        tensors = trees.tensors(inputs)
        ids = {id(tensors[number]) for number in unneeded}
        named = user_model.named_arguments(inputs).items()
        holders = [name for name, value in named if ids & set(map(id, trees.tensors(value)))]
        raise Unsupported(
            f"paddle.jit.save refuses inputs that no output needs, tensors of {', '.join(holders)}: change inputs() or "
            "forward() so that the model uses them."
        ) from error

    def capture(self) -> Capture:
        return replace(self._exported.captured, whole=bool(self._exported.captured.graphs))

    def operators(self) -> Any:
        return self._exported.operators()


def with_recompilations(capture: Capture, static: nn.Layer, name: str) -> Capture:
    """Return a capture of a user's layer: with `full_graph` a program holds the whole layer or there is none.

    Each program but the first is a recompilation, with the inputs that differ from the first one's as its reason.
    """
    first, *others = [_described(program.inputs) for program in graphs.programs_of(static)] or [[]]
    reasons = [f"another input: {_ADDRESS.sub('', text)}" for texts in others for text in texts if text not in first]
    recompiled = tuple((name, reason) for reason in dict.fromkeys(reasons))
    return replace(capture, whole=bool(capture.graphs), recompilations=len(others), recompiled=recompiled)


def _raise(error: Exception, source: str) -> NoReturn:
    """Raise an error of capture with Paddle's own reason and the user's line, and others unchanged."""
    found = graphs.reason_of(error)
    if found is None:
        raise error
    reason, file, line = found
    place = f" (at {user_file.short_place(file, line, source)})" if file else ""
    if lacking := _LACKING.search(reason):
        way = "paddle.assign(values, tensor)" if lacking[1] == "set_value" else "a function of paddle"
        raise Unsupported(f"to_static has no Tensor.{lacking[1]}{place}: call {way}, which both modes have.") from None
    raise RuntimeError(f"to_static: {reason}{place}") from error


def plain(layer: nn.Layer) -> tuple[nn.Layer, list[str]]:
    """Return the layer without `to_static`, and the places from which that was removed.

    Raises Unsupported for a loaded program, which has no eager mode.
    """
    if isinstance(layer, TranslatedLayer) or type(layer).__name__ == "PirTranslatedLayer":
        raise Unsupported("model() returned a loaded program, which has no eager mode: return the original layer.")
    removed: list[str] = []
    for path, part in layer.named_sublayers(include_self=True):
        if isinstance(part, TranslatedLayer) or type(part).__name__ == "PirTranslatedLayer":
            raise Unsupported(f"{path} is a loaded program, which has no eager mode: use the original layer.")
        for owner in (part, *type(part).__mro__, sys.modules.get(type(part).__module__)):
            for attribute, value in list(getattr(owner, "__dict__", {}).items()):
                if isinstance(value, StaticFunction):
                    _put_back(owner, attribute, value)
                    removed.append(f"{path}.{attribute}".strip("."))
    return layer, list(dict.fromkeys(removed))


def _put_back(owner: Any, attribute: str, static: StaticFunction) -> None:
    """Give an owner back the function that `to_static` wrapped."""
    function = static._dygraph_function
    if not isinstance(owner, nn.Layer):
        setattr(owner, attribute, function)
    elif getattr(type(owner), attribute, None) in (function, static):
        del owner.__dict__[attribute]
    else:
        bound = isinstance(function, types.FunctionType) and static._class_instance is not None
        owner.__dict__[attribute] = types.MethodType(function, owner) if bound else function


@contextlib.contextmanager
def _refusing_graphs(source: str) -> Iterator[None]:
    """Raise Unsupported within the block where a function under `to_static` is called."""
    before = StaticFunction.__call__

    def refuse(static: StaticFunction, *_: Any, **__: Any) -> NoReturn:
        function = static._dygraph_function
        code = getattr(function, "__code__", None)
        place = f" ({user_file.short_place(code.co_filename, code.co_firstlineno, source)})" if code else ""
        raise Unsupported(
            f"the model calls {getattr(function, '__name__', 'a function')}{place} under to_static, so its eager mode "
            "would run a graph: remove to_static from it."
        )

    StaticFunction.__call__ = refuse
    try:
        yield
    finally:
        StaticFunction.__call__ = before


def _cast_layer(layer: nn.Layer, dtype: str) -> nn.Layer:
    """Cast parameters and buffers in place, each by its kind: complex ones stay complex, whole numbers whole."""
    with paddle.no_grad():
        for tensor in (*layer.parameters(), *layer.buffers()):
            made = _cast(tensor, dtype) if has_memory(tensor) else tensor
            if made is not tensor:
                tensor.value().get_tensor()._share_data_with(made.value().get_tensor())
    for part in layer.sublayers(include_self=True):
        part._dtype = dtype
    return layer


def _cast(tensor: paddle.Tensor, dtype: str) -> paddle.Tensor:
    kind = _name(tensor.dtype)
    if "complex" in kind:
        target = "complex128" if dtype == "float64" else "complex64"
    elif "float" in kind:
        target = dtype
    else:
        return tensor
    if kind == target:
        return tensor
    return paddle.sparse.cast(tensor, value_dtype=target) if tensor.is_sparse() else tensor.astype(target)


def _placed(leaf: Any, dtype: str) -> Any:
    """Return a tensor or array of the inputs as a tensor, floating point in a dtype; arrays of text stay.

    It is contiguous, because predictors read the memory of a view as if that were.
    """
    if isinstance(leaf, np.ndarray):
        if leaf.dtype.kind not in "biufc":
            return leaf
        leaf = paddle.to_tensor(leaf)
    made = _cast(leaf.detach(), dtype)
    if made.is_dense() and not made.is_contiguous():
        made = made.contiguous()
    made.stop_gradient = leaf.stop_gradient
    return made


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    made = leaf.detach()
    if leaf.is_sparse_coo():
        made = paddle.sparse.sparse_coo_tensor(leaf.indices().clone(), leaf.values().clone(), leaf.shape)
    elif leaf.is_sparse_csr():
        parts = leaf.crows().clone(), leaf.cols().clone(), leaf.values().clone()
        made = paddle.sparse.sparse_csr_tensor(*parts, leaf.shape)
    else:
        made = made.clone()
    made.stop_gradient = leaf.stop_gradient
    return made


def _filled(inputs: Inputs, tensors: Sequence[Any]) -> Inputs:
    left = iter(tensors)
    return trees.changed(inputs, lambda _: next(left))


def _of_handle(handle: Any) -> np.ndarray:
    """Return a predictor's output as an array of its own kind."""
    values = handle.copy_to_cpu()
    if values.dtype == np.uint16:  # the bits of bfloat16, the upper half of float32's
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


def listed(model: Model, call: Callable, cell: Cell) -> Any:
    """Return the operators of `call` on the first input set, eager; the model's state is restored afterwards."""
    try:
        return programs.executed(call, model.fresh(model.sets[0]), cell)
    finally:
        model.restore()


def _described(inputs: Any) -> list[str]:
    """Return the inputs of a captured program as texts: tensors by dtype and shape, all else by its value."""

    def text(leaf: Any) -> str:
        if isinstance(leaf, type) or not hasattr(leaf, "dtype"):
            return repr(leaf)[:60]
        return f"{_name(leaf.dtype)}[{','.join(map(str, leaf.shape))}]"

    named = user_model.named_arguments(inputs[-2:])
    return [f"{name} {', '.join(map(text, paddle.utils.flatten([value])))}" for name, value in named.items()]


def _has_class(value: Any) -> bool:
    return any(isinstance(leaf, type) for leaf in paddle.utils.flatten(value))


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2].lower()
