"""User models in TensorFlow: a Keras model, a `tf.Module`, or a function of tensors."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks import user_file, user_model
from frameworks.adapter import Step, Unsupported
from frameworks.program import product_dtypes
from frameworks.tensorflow import counting, graphs, hubs, program
from frameworks.user_file import Fault
from frameworks.user_model import Call, Counted, Inputs
from frameworks.values import Rules
from measurement.cells import Cell
from workloads.own import Own
from workloads.spec import Arrays

DTYPES = (
    "variables and floating-point inputs in the cell's dtype, which Keras' layers compute in; in bf16 and fp16 Keras 2 "
    "keeps variables of batch norm in float32, and its Input casts to float32 and back in bf16"
)
FUNCTION = tf.types.experimental.PolymorphicFunction


class TensorFlowRules(Rules):
    """Arrays of TensorFlow's tensors, and the parts of ragged, sparse and other composite ones."""

    def array(self, value: Any) -> np.ndarray | None:
        if not isinstance(value, tf.Tensor | tf.Variable) or value.dtype in (tf.variant, tf.resource):
            return None
        sixteen = value.dtype in (tf.bfloat16, tf.float16)
        return np.asarray((tf.cast(value, tf.float32) if sixteen else value).numpy())

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        if isinstance(value, tf.DType | tf.TensorShape):
            return {}
        if isinstance(value, tf.TensorArray):
            return {"stack": value.stack()}
        if hasattr(value, "value") and _is_keras3(value):
            return {"value": value.value}
        if not isinstance(value, tf.__internal__.CompositeTensor) or isinstance(value, tf.Variable):
            return None
        return {str(index): part for index, part in enumerate(tf.nest.flatten(value, expand_composites=True))}

    def opaque(self, value: Any) -> bool:
        return isinstance(value, tf.Module) and not isinstance(value, tf.Variable)


class Model(user_model.UserModel):
    """A user's model with its variables in the cell's dtype; made on the current device."""

    rules = TensorFlowRules()

    def __init__(self, workload: Own, weights: Arrays, inputs: Sequence[Arrays], dtype: tf.DType, trains: bool = False):
        super().__init__(user_file.UserFile(workload.source) if workload.is_file else hubs.Library(workload.source))
        self._trains, self.dtype, self._seed_of_weights = trains, dtype, int(weights["seed"])
        self.precisions = [name for name in ("float64", "float32") if name != dtype.name]
        self.settings: dict[str, Any] = {}
        self.sets = [self.place(arrays) for arrays in inputs]
        self.model = self._built(dtype)
        self._state = [(variable, tf.identity(variable)) for variable in self.variables]
        self.settle()

    def seed(self, seed: int) -> None:
        user_file.seed_python(seed)
        tf.random.set_seed(seed)

    def placed(self, given: Inputs) -> Inputs:
        return tf.nest.map_structure(partial(_cast, dtype=self.dtype), given)

    def fresh(self, inputs: Inputs) -> Inputs:
        return tf.nest.map_structure(_copied, inputs)

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.model(*args, **kwargs)

    def calling(self, model: Callable) -> Call:
        return lambda args, kwargs: model(*args, **kwargs)

    def restore(self) -> None:
        for variable, first in self._state:
            variable.assign(first)

    @contextlib.contextmanager
    def in_precision(self, dtype: str) -> Iterator[tuple[Callable, Callable[[Inputs], Inputs]]]:
        """Enter a new model in another dtype, with the values that this one's variables had first."""
        kind = tf.as_dtype(dtype)
        yield self.copied(kind), partial(tf.nest.map_structure, partial(_cast, dtype=kind))

    def cost(self) -> Counted | None:
        return counting.counted(self.call, self.sets[0], self.variables)

    def computes_in(self) -> Sequence[str]:
        return product_dtypes(program.executed(self.call, *self.sets[0]))

    @property
    def variables(self) -> list[tf.Variable]:
        """The model's variables."""
        return variables_of(self.model)

    def _built(self, dtype: tf.DType) -> Callable[..., Any]:
        """Return what calls a new model; its variables are made by a first call."""
        with _making(dtype):
            self.seed(self._seed_of_weights)
            made, removed = plain(self.file.call("model"))
            if removed:
                self.settings["tf.function removed from"] = removed
            told = {"training": self._trains} if _takes_training(made) else {}
            model = partial(made, **told)
            args, kwargs = tf.nest.map_structure(partial(_cast, dtype=dtype), self.sets[0])
            model(*args, **kwargs)
        kept = _kept_in_float32(made)
        floating = [v.dtype for v in variables_of(model) if v.dtype.is_floating and id(v) not in kept]
        if wrong := [made for made in floating if made.base_dtype != dtype]:
            raise Unsupported(
                f"the model makes variables in {wrong[0].name} where {dtype.name} is asked for: leave dtypes to Keras, "
                "or measure in fp32."
            )
        return model

    def copied(self, dtype: tf.DType) -> Callable[..., Any]:
        """Return a new model in a dtype with the values that this one's variables had first."""
        model = self._built(dtype)
        for variable, (_, first) in zip(variables_of(model), self._state, strict=True):
            variable.assign(_cast(first, variable.dtype))
        return model


def prepare(model: Model, cell: Cell) -> Step:
    """Return the step of the model in the cell's mode."""
    told = {"restore": model.restore, "own": model}
    if cell.mode == "eager":
        listed = partial(program.executed, model.call, *model.sets[0])
        return Step(model.call, model.sets, program=listed, **told)
    call, sets, capture, listed = captured(model.call, model, cell)
    return Step(call, sets, capture, program=listed, **told)


def captured(function: Callable, model: Model, cell: Cell) -> tuple:
    """Return what a graph mode calls of a function of input sets, the sets, its capture, and its operators."""
    graph = tf.function(lambda args, kwargs: function(args, kwargs), jit_compile=cell.mode == "function-xla")
    reasons = [(model.file.name, reason) for reason in _others(model.sets)]
    return *graphs.called(cell, graph, model.sets, reasons), partial(program.captured, graph, model.sets[0], None)


def _others(sets: Sequence[Inputs]) -> list[str]:
    """Return, of the input sets for which a function is traced again, what differs from the first one."""
    first, *rest = [_specification(inputs) for inputs in sets]
    return list(dict.fromkeys(f"inputs of another kind: {other}" for other in rest if other != first))


def _specification(inputs: Inputs) -> str:
    def text(leaf: Any) -> str:
        shape = getattr(leaf, "shape", None)
        return repr(leaf) if shape is None else f"{leaf.dtype.name} {tuple(shape)}"

    return ", ".join(map(text, tf.nest.flatten(inputs)))


def plain(made: Any) -> tuple[Callable, list[str]]:
    """Return the user's model without `tf.function`, and the places from which that was removed.

    Raises Fault for what cannot be called, and Unsupported for what has no Python function behind it.
    """
    removed = []
    if isinstance(made, FUNCTION) and hasattr(made, "python_function"):
        made, removed = made.python_function, ["the function"]
    loaded = type(made).__module__.endswith("saved_model.load")
    if loaded or isinstance(made, tf.types.experimental.ConcreteFunction | FUNCTION):
        raise Unsupported("model() returned a graph, which has no eager mode: return the model it was made of.")
    if not callable(made):
        raise Fault(f"model() returned {type(made).__name__}: return a Keras model, a tf.Module or a function.")
    for layer in (made, *made.submodules) if isinstance(made, tf.Module) else (made,):
        for owner in (layer, *type(layer).__mro__):
            for name, value in list(getattr(owner, "__dict__", {}).items()):
                if isinstance(value, FUNCTION) and hasattr(value, "python_function") and not name.startswith("_"):
                    setattr(owner, name, value.python_function)
                    removed.append(name)
    return made, list(dict.fromkeys(removed))


def variables_of(model: Any) -> list[tf.Variable]:
    """Return the variables behind what `Model._built` returns."""
    return raw(getattr(model.func, "variables", ()))


def _cast(leaf: Any, dtype: tf.DType) -> Any:
    """Return a leaf of the inputs as a tensor, floating point and complex in a dtype's width; others as they are."""
    if isinstance(leaf, np.ndarray):
        leaf = tf.convert_to_tensor(leaf)
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type | tf.__internal__.CompositeTensor):
        held = {field.name: getattr(leaf, field.name) for field in dataclasses.fields(leaf) if field.init}
        return dataclasses.replace(leaf, **tf.nest.map_structure(partial(_cast, dtype=dtype), held))
    kind = getattr(leaf, "dtype", None)
    if not isinstance(kind, tf.DType):
        return leaf
    if kind.is_complex:
        return tf.cast(leaf, tf.complex128 if dtype == tf.float64 else tf.complex64)
    return tf.cast(leaf, dtype) if kind.is_floating else leaf


def _copied(leaf: Any) -> Any:
    constant = isinstance(leaf, str | bytes | bool | int | float | complex | type(None) | tf.Tensor)
    return leaf if constant or isinstance(leaf, tf.__internal__.CompositeTensor) else copy.deepcopy(leaf)


def raw(variables: Sequence[Any]) -> list[tf.Variable]:
    """TensorFlow's variables behind those of Keras 3; others as they are."""
    return [getattr(variable, "value", variable) if _is_keras3(variable) else variable for variable in variables]


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
