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
from frameworks.tensorflow import counting, graphs, hubs, program
from frameworks.user_file import Counted, Fault
from measurement.cells import Cell
from workloads.own import Own
from workloads.spec import Arrays

DTYPES = (
    "variables and floating-point inputs in the cell's dtype, which Keras' layers compute in; in bf16 and fp16 Keras 2 "
    "keeps variables of batch norm in float32, and its Input casts to float32 and back in bf16"
)


class Model:
    """A user's model with its variables in the cell's dtype; made on the current device."""

    def __init__(self, workload: Own, weights: Arrays, inputs: Sequence[Arrays], dtype: tf.DType, trains: bool = False):
        self._trains = trains
        self.file = own.UserFile(workload.source) if workload.is_file else hubs.Library(workload.source)
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
        given = own.as_call(self.file.call("inputs", **own.arguments_of(arrays)))
        leaves = tf.nest.flatten(given)
        self._form = given
        self._constants = [None if _is_array(leaf) else (leaf,) for leaf in leaves]
        array_leaves = [leaf for leaf in leaves if _is_array(leaf)]
        if not array_leaves:
            raise Fault("inputs() returned no tensor and no array: return one, a tuple, or a dict of keywords.")
        return tuple(_cast(tf.convert_to_tensor(leaf), self.dtype) for leaf in array_leaves)

    def restore(self) -> None:
        """Put the model's variables back."""
        for variable, first in self._state:
            variable.assign(first)

    def reference(self, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """Outputs of the first calls in eager mode, in float64 where the model can be made in it."""
        self.refuse_what_changes()
        return self.in_more_precision(lambda call, sets: [named(call(*tensors)) for tensors in sets], calls)

    def refuse_what_changes(self) -> None:
        """Raise `Unsupported` for a model whose output two calls on one input do not have in common."""
        output = lambda: named(self.call(*self.sets[0]))  # noqa: E731
        if reason := own.problem(output, _seed, self._tolerance, self.restore):
            raise Unsupported(reason)

    def in_more_precision(self, run: Callable[..., list[dict]], calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """What `run(a copy of the model, input sets)` gives of the first calls, in the first dtype that it runs in."""
        for dtype in dict.fromkeys((tf.float64, tf.float32, self.dtype)):
            with contextlib.suppress(Exception):
                call = self.copied(dtype)
                sets = [[_cast(tensor, dtype) for tensor in tensors] for tensors in self.sets[:calls]]
                return f"its own eager mode in {dtype.name}", run(call, sets)
        raise Unsupported("the model cannot be made anew in any dtype, so nothing can be compared with it.")

    @property
    def variables(self) -> list[tf.Variable]:
        """The model's variables."""
        return self._variables(self.call)

    def _built(self, dtype: tf.DType) -> Callable[..., Any]:
        """What calls a new model with tensors as `place` returns them; its variables are made by a first call."""
        with _making(dtype):
            _seed(self._seed_of_weights)
            model = self.file.call("model")
            if not callable(model):
                raise Fault(
                    f"model() returned {type(model).__name__}: return a Keras model, a tf.Module or a function."
                )
            told = {"training": self._trains} if _takes_training(model) else {}

            def call(*tensors: tf.Tensor) -> Any:
                left = iter(tensors)
                leaves = [next(left) if kept is None else kept[0] for kept in self._constants]
                args, kwargs = tf.nest.pack_sequence_as(self._form, leaves)
                return model(*args, **kwargs, **told)

            call.model = model
            call(*(_cast(tensor, dtype) for tensor in self.sets[0]))
        kept = _kept_in_float32(call.model)
        floating = [v.dtype for v in self._variables(call) if v.dtype.is_floating and id(v) not in kept]
        if wrong := [made for made in floating if made.base_dtype != dtype]:
            raise Unsupported(
                f"the model makes variables in {wrong[0].name} where {dtype.name} is asked for: leave dtypes to Keras, "
                "or measure in fp32."
            )
        return call

    def copied(self, dtype: tf.DType) -> Callable[..., Any]:
        """A new model in a dtype with the values that this one's variables had first."""
        call = self._built(dtype)
        for copy, (_, first) in zip(self._variables(call), self._state, strict=True):
            copy.assign(tf.cast(first, copy.dtype))
        return call

    @staticmethod
    def _variables(call: Any) -> list[tf.Variable]:
        return raw(getattr(call.model, "variables", ()))


class Owned(own.Owned):
    """What a step tells of its user's model."""

    def cost(self) -> Counted | None:
        return counting.counted(self._model.call, self._model.sets[0], self._model.variables)


def prepare(model: Model, cell: Cell) -> Step:
    """The model in the cell's mode."""
    told = {"restore": model.restore, "own": Owned(model)}
    if cell.mode == "eager":
        return Step(model.call, model.sets, **told, program=partial(program.executed, model.call, *model.sets[0]))
    call, sets, capture, listed = captured(lambda *tensors: model.call(*tensors), model.sets, cell)
    return Step(call, sets, capture, **told, program=listed)


def captured(function: Callable, sets: Sequence[tuple], cell: Cell) -> tuple:
    """What a graph mode calls of a function, its input sets, what tells of its capture, and of its operators."""
    graph = tf.function(function, jit_compile=cell.mode == "function-xla")
    return *graphs.called(cell, graph, sets), partial(program.captured, graph, sets[0], 1)


def raw(variables: Sequence[Any]) -> list[tf.Variable]:
    """TensorFlow's variables behind those of Keras 3; others as they are."""
    return [getattr(variable, "value", variable) if _is_keras3(variable) else variable for variable in variables]


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


def _kept_in_float32(model: Any) -> set[int]:
    """Variables, by identity, that Keras 2 makes in float32 even where its layers compute in 16 bits: batch norm's."""
    kinds = tuple(keras.layers.BatchNormalization for keras in hubs.installed_keras() if not _is_version_3(keras))
    layers = (model, *model.submodules) if isinstance(model, tf.Module) else ()
    return {id(variable) for layer in layers if isinstance(layer, kinds) for variable in layer.variables}


@contextlib.contextmanager
def _making(dtype: tf.DType) -> Iterator[None]:
    """Have Keras, of either kind, make layers in a dtype."""
    before = [(keras, keras.backend.floatx(), _policy(keras)) for keras in hubs.installed_keras()]
    try:
        for keras, floatx, _ in before:
            # That of Keras 2 has no bfloat16, and its policies have.
            told = floatx if dtype == tf.bfloat16 and not _is_version_3(keras) else dtype.name
            _default(keras, told, dtype.name)
        yield
    finally:
        for told in before:
            _default(*told)


def _is_version_3(keras: Any) -> bool:
    return hasattr(keras, "config")


def _policy(keras: Any) -> Any:
    return keras.config.dtype_policy() if _is_version_3(keras) else keras.mixed_precision.global_policy()


def _default(keras: Any, floatx: str, policy: Any) -> None:
    """Set both, since a policy that was asked for, or set, does not follow `floatx` any more."""
    keras.backend.set_floatx(floatx)
    set_policy = keras.config.set_dtype_policy if _is_version_3(keras) else keras.mixed_precision.set_global_policy
    set_policy(policy)
