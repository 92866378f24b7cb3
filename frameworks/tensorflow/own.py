"""Users' own TensorFlow models: a Keras model, a `tf.Module`, or a function of tensors."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks import own
from frameworks.adapter import Step, Unsupported
from frameworks.own import Counted, Fault
from frameworks.tensorflow import graphs, hubs, program
from measurement.cells import Cell
from workloads.own import Own
from workloads.spec import Arrays


class Model:
    """A user's model with its variables in the cell's dtype; made on the current device."""

    def __init__(self, workload: Own, weights: Arrays, inputs: Sequence[Arrays], dtype: tf.DType):
        self._file = own.UserFile(workload.source) if workload.is_file else hubs.Library(workload.source)
        self.dtype, self._seed_of_weights = dtype, int(weights["seed"])
        self._tolerance = max(workload.tolerance.values())
        self._form: Any = None
        self._constants: list[Any] = []
        self.sets = [self.place(arrays) for arrays in inputs]
        self.call = self._built(dtype)
        self._state = [(variable, tf.identity(variable)) for variable in self._variables(self.call)]

    def place(self, arrays: Arrays) -> tuple[tf.Tensor, ...]:
        """The tensors of one input set, floating point in the cell's dtype."""
        _seed(int(arrays["seed"]))
        given = own.as_call(self._file.call("inputs", **own.arguments_of(arrays)))
        leaves = tf.nest.flatten(given)
        self._form = given
        self._constants = [None if _is_array(leaf) else (leaf,) for leaf in leaves]
        found = [leaf for leaf in leaves if _is_array(leaf)]
        if not found:
            raise Fault("inputs() returned no tensor and no array: return one, a tuple, or a dict of keywords.")
        return tuple(_cast(tf.convert_to_tensor(leaf), self.dtype) for leaf in found)

    def restore(self) -> None:
        """Put the model's variables back."""
        for variable, first in self._state:
            variable.assign(first)

    def reference(self, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """Outputs of the first calls in eager mode, in float64 where the model can be made in it."""
        outputs = []
        for seed in (0, 0, 1):
            _seed(seed)
            outputs.append(named(self.call(*self.sets[0])))
            self.restore()
        if reason := own.changes(outputs, self._tolerance):
            raise Unsupported(reason)
        for dtype in dict.fromkeys((tf.float64, tf.float32, self.dtype)):
            with contextlib.suppress(Exception):
                call = self._copy_in(dtype)
                sets = [[_cast(tensor, dtype) for tensor in tensors] for tensors in self.sets[:calls]]
                return f"its own eager mode in {dtype.name}", [named(call(*tensors)) for tensors in sets]
        raise Unsupported("the model cannot be made anew in any dtype, so nothing can be compared with it.")

    def _built(self, dtype: tf.DType) -> Callable[..., Any]:
        """What calls a new model with tensors as `place` returns them; its variables are made by a first call."""
        with _making(dtype):
            _seed(self._seed_of_weights)
            model = self._file.call("model")
            if not callable(model):
                raise Fault(
                    f"model() returned {type(model).__name__}: return a Keras model, a tf.Module or a function."
                )
            told = {"training": False} if _takes_training(model) else {}

            def call(*tensors: tf.Tensor) -> Any:
                left = iter(tensors)
                leaves = [next(left) if kept is None else kept[0] for kept in self._constants]
                args, kwargs = tf.nest.pack_sequence_as(self._form, leaves)
                return model(*args, **kwargs, **told)

            call.model = model
            call(*(_cast(tensor, dtype) for tensor in self.sets[0]))
        wrong = [v.dtype for v in self._variables(call) if v.dtype.is_floating and v.dtype.base_dtype != dtype]
        if wrong:
            raise Unsupported(
                f"the model makes variables in {wrong[0].name} where {dtype.name} is asked for: leave dtypes to Keras, "
                "or measure in fp32."
            )
        return call

    def _copy_in(self, dtype: tf.DType) -> Callable[..., Any]:
        """A new model in another dtype with the values of this one's variables."""
        if dtype == self.dtype:
            return self.call
        call = self._built(dtype)
        for copy, (variable, _) in zip(self._variables(call), self._state, strict=True):
            copy.assign(tf.cast(variable, copy.dtype))
        return call

    @staticmethod
    def _variables(call: Any) -> list[tf.Variable]:
        found = getattr(call.model, "variables", ())
        return [getattr(variable, "value", variable) if _is_keras3(variable) else variable for variable in found]


class Owned(own.Owned):
    """What a step tells of its user's model. TensorFlow's counter of FLOPs takes frozen graphs: none is counted."""

    def __init__(self, model: Model):
        self._model = model

    def reference(self, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        return self._model.reference(calls)

    def cost(self) -> Counted | None:
        return None


def prepare(model: Model, cell: Cell) -> Step:
    """The model in the cell's mode."""
    told = {"restore": model.restore, "own": Owned(model)}
    if cell.mode == "eager":
        return Step(model.call, model.sets, **told, program=partial(program.executed, model.call, *model.sets[0]))
    if cell.shapes == "dynamic":
        raise Unsupported("which axes of a user's inputs may change is not known to TensorFlow: SHAPES=static.")
    function = tf.function(lambda *tensors: model.call(*tensors), jit_compile=cell.mode == "function-xla")
    listed = partial(program.captured, function, model.sets[0], 1)
    call, sets, capture = graphs.called(cell, function, model.sets)
    return Step(call, sets, capture, **told, program=listed)


def named(output: Any) -> dict[str, np.ndarray]:
    """An output's tensors by name, on the host."""
    return {name: _on_host(tensor) for name, tensor in own.named(output, tf.is_tensor).items()}


def _on_host(tensor: tf.Tensor) -> np.ndarray:
    return (tensor if tensor.dtype == tf.float64 else tf.cast(tensor, tf.float32)).numpy()


def _is_array(leaf: Any) -> bool:
    return tf.is_tensor(leaf) or isinstance(leaf, np.ndarray)


def _cast(tensor: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(tensor, dtype) if tensor.dtype.is_floating else tensor


def _seed(seed: int) -> None:
    own.seed_python(seed)
    tf.random.set_seed(seed)


def _is_keras3(variable: Any) -> bool:
    return not isinstance(variable, tf.Variable) and hasattr(variable, "value")


def _takes_training(model: Any) -> bool:
    try:
        return "training" in inspect.signature(getattr(model, "call", model)).parameters
    except (TypeError, ValueError):
        return False


@contextlib.contextmanager
def _making(dtype: tf.DType) -> Iterator[None]:
    """Have Keras, of either kind, make layers in a dtype."""
    before = [(module, module.backend.floatx()) for module in hubs.installed_keras()]
    try:
        for module, _ in before:
            _default(module, dtype.name)
        yield
    finally:
        for module, name in before:
            _default(module, name)


def _default(keras: Any, dtype: str) -> None:
    keras.backend.set_floatx(dtype)
    if hasattr(keras, "config"):  # Keras 3 has made a policy of the dtype that there was when it was asked first
        keras.config.set_dtype_policy(dtype)
