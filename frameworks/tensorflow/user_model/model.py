"""User models in TensorFlow: a Keras model, a `tf.Module`, or a function of tensors."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import dis
import inspect
import itertools
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks import user_file, user_model
from frameworks.adapter import Step, Unsupported
from frameworks.tensorflow.inspect import counting, program
from frameworks.tensorflow.modes import graphs
from frameworks.tensorflow.user_model import hubs
from frameworks.tensorflow.user_model.arrays import CHOICES, Arrays, Slot
from frameworks.user_file import Fault
from frameworks.user_model import Call, Counted, Inputs
from frameworks.values import Rules, attributes, walk
from measurement.cells import Cell
from workloads.user_model import UserModel

DTYPES = (
    "variables and floating-point inputs in the cell's dtype, which Keras' layers compute in; in bf16 and fp16 Keras 2 "
    "keeps variables of batch norm in float32, and its Input casts to float32 and back in bf16"
)
FUNCTION = tf.types.experimental.PolymorphicFunction
COMPOSITE = tf.__internal__.CompositeTensor
# Tensors that tf.cast casts.
TENSORS = (tf.Tensor, tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)
# Whose own functions are part of eager mode.
LIBRARIES = ("tensorflow", "keras", "tf_keras")
SAVED_MODEL = "tensorflow.python.saved_model"
# Modules of Keras 3 and Keras 2 with functions that run a user's model in a graph: `predict` and others.
TRAINERS = (".trainer", ".training", ".training_v1")
# Modules through which TensorFlow runs a graph that others call.
RUNS_GRAPHS = ("tensorflow.python.eager", "tensorflow.python.framework", "tensorflow.python.util", SAVED_MODEL)
# Largest difference of a tensor computed in another dtype; one that is drawn in it differs by more than 1.
ANOTHER_DTYPE = 0.25
# Texts of errors of calls that cannot be compiled or traced, and whose limit it is.
REFUSED = {
    "Detected unsupported operations": "XLA",
    "must be a compile-time constant": "XLA",
    "XLA compilation": "XLA",
    "uncompilable": "XLA",
    "Could not generate a generic TraceType": "tf.function",
    "To be compatible with tf.function": "tf.function",
    "should not modify its Python input arguments": "tf.function",
}


class TensorFlowRules(Rules):
    """Arrays of TensorFlow's tensors, and the parts of ragged, sparse and other composite ones."""

    def array(self, value: Any) -> np.ndarray | None:
        if not isinstance(value, tf.Tensor | tf.Variable) or value.dtype in (tf.variant, tf.resource):
            return None
        array = np.asarray(value.numpy())
        return array.astype(np.float32) if array.dtype.kind == "V" else array  # bfloat16, and others of ml_dtypes

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        if isinstance(value, tf.DType | tf.TensorShape):
            return {}
        if isinstance(value, tf.TensorArray):
            return {"stack": value.stack()}
        if isinstance(value, tf.RaggedTensor):
            return {"values": value.flat_values, "row_splits": value.nested_row_splits}
        if isinstance(value, tf.SparseTensor):
            value = tf.sparse.reorder(value)
            return {"indices": value.indices, "values": value.values, "shape": tuple(value.shape)}
        if isinstance(value, tf.experimental.ExtensionType):
            return _fields(value)
        if _is_keras3(value):
            return {"value": value.value}
        if not isinstance(value, COMPOSITE) or isinstance(value, tf.Variable):
            return None
        return {str(index): part for index, part in enumerate(tf.nest.flatten(value, expand_composites=True))}

    def opaque(self, value: Any) -> bool:
        return isinstance(value, tf.Module | tf.__internal__.tracking.AutoTrackable) and not isinstance(
            value, tf.Variable
        )


@dataclasses.dataclass(frozen=True)
class Made:
    """A user's model from `model()`: a function called in its place, and all of its variables in a fixed order.

    `constants` are tensors of floating point that it reaches, those in the places of NumPy's `arrays` too. `layers` are
    Keras' layers that it reaches and is none of, `draws` the states of Keras' generators of random numbers.
    """

    model: Any
    call: Callable[..., Any]
    variables: Sequence[tf.Variable]
    constants: Sequence[tf.Tensor]
    arrays: Arrays
    layers: Sequence[Any]
    draws: Sequence[tf.Variable]

    @property
    def trained(self) -> list[tf.Variable]:
        """The variables that training changes.

        Neither a tf.Module nor a variable knows what Keras' layers freeze, and a tf.Module none of Keras 3's layers.
        """
        if not hasattr(self.model, "trainable_variables"):
            found = [variable for variable in self.variables if variable.trainable and variable.dtype.is_floating]
        else:
            found = raw([*self.model.trainable_variables, *_of_layers(self.layers, "trainable_variables")])
        frozen: set[int] = set()
        for layer in self.layers:
            frozen |= set(map(id, raw(layer.variables))) - set(map(id, raw(layer.trainable_variables)))
        return list({id(variable): variable for variable in found if id(variable) not in frozen}.values())

    @property
    def state(self) -> list[tf.Variable]:
        """The model's own variables that training leaves to the model: running statistics."""
        others = {id(variable) for variable in (*self.trained, *self.draws)}
        own = self.variables
        if hasattr(self.model, "variables"):
            own = raw([*self.model.variables, *_of_layers(self.layers, "variables")])
        return list({id(variable): variable for variable in own if id(variable) not in others}.values())


class Model(user_model.UserModel):
    """A user's model with its variables in the cell's dtype; made on the current device."""

    rules, compiler = TensorFlowRules(), "tf.function"
    wanted = "a Keras model, a tf.Module or a function"
    module: Made

    def __init__(self, *given: Any):
        self._arrays, self._sizes = Arrays(()), CHOICES[0]
        self._policies: dict[str, Any] = {}  # of mixed precision, which the file set when it was run
        super().__init__(*given)
        self.precisions = ("float64", "float32")  # the second where Keras' layers compute in another dtype
        if not self.adapter.starts:  # early checks have refused them before starts are measured
            self._refuse_functions()

    def opened(self, workload: UserModel) -> Any:
        file = hubs.opened(workload.source, workload.is_file)
        self._policies = _of_file.setdefault(workload.source, _mixed_policies())
        return file

    def made(self) -> None:
        """Make nothing yet: each dtype gets its own model."""

    @staticmethod
    def fits(made: Any) -> bool:
        return user_file.can_be_called(made)

    def built(self, made: None) -> Made:
        module = self._exchanged(tf.as_dtype(self.dtype))
        self._model, self._arrays = module.call, module.arrays
        self._state = [(variable, tf.identity(variable)) for variable in module.variables]
        return module

    def seed(self, seed: int) -> None:
        user_file.seed_python(seed)
        tf.random.set_seed(seed)

    def cast(self, inputs: Inputs, dtype: str) -> Inputs:
        return cast(inputs, tf.as_dtype(dtype))

    def fresh(self, inputs: Inputs) -> Inputs:
        copies: dict[int, Any] = {}
        return tf.nest.map_structure(lambda leaf: copies.setdefault(id(leaf), _copied(leaf, copies)), inputs)

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._model(*args, **kwargs)

    def calling(self, model: Made) -> Call:
        def call(args: tuple, kwargs: dict[str, Any]) -> Any:
            model.arrays.put()  # places outside of `model()` have those of another copy
            return model.call(*args, **kwargs)

        return call

    def restore(self) -> None:
        self._arrays.put()
        for variable, first in self._state:
            variable.assign(first)

    def copied(self, dtype: str) -> Made:
        """Return the model itself where it computes in that dtype already and is not trained."""
        kind = tf.as_dtype(dtype)
        if dtype == self.dtype and not self.trains and not _computing_otherwise(self.module.model, kind):
            return self.module
        return self.remade(kind, everywhere=True)

    def as_trained(self) -> Made:
        return self.remade(tf.as_dtype(self.dtype))

    def operators(self, inputs: Inputs) -> Any:
        return program.executed(self.call, inputs)

    def shared_bytes(self) -> int:
        """Return the bytes of weights, constants and input sets, which all modes use."""
        held = [*self.module.variables, *self.module.constants, *tf.nest.flatten(self.sets, expand_composites=True)]
        tensors = {id(one): one for one in held if isinstance(one, tf.Tensor | tf.Variable)}.values()
        return sum((one.shape.num_elements() or 0) * one.dtype.size for one in tensors)

    def cost(self) -> Counted | None:
        inputs = self.fresh(self.sets[0])
        return counting.counted(self.traced(inputs), inputs)

    def traced(self, inputs: Inputs) -> Any:
        """Return the graph of a call, and list the constants that it holds in the settings."""
        graph = counting.traced(self.call, inputs)
        if held := program.constants(graph):
            self.settings["held as constants"] = held
        return graph

    def remade(self, dtype: tf.DType, everywhere: bool = False) -> Made:
        """Return a new model in a dtype, with the values that this one's variables had first.

        Variables that `model()` does not make are the same ones in both. Raises Fault for other constants than here.
        """
        try:
            made = self._built(dtype, everywhere)
        finally:
            self.restore()
        shared = {id(variable) for variable in self.module.variables} & {id(variable) for variable in made.variables}
        new = [variable for variable in made.variables if id(variable) not in shared]
        for variable, first in zip(new, [first for one, first in self._state if id(one) not in shared], strict=True):
            variable.assign(tf.cast(first, variable.dtype))
        if not all(map(_alike, self.module.constants, made.constants)):
            raise Fault(
                f"in {dtype.name} model() or build() creates other constants: make them non-trainable variables."
            )
        return made

    def _exchanged(self, dtype: tf.DType) -> Made:
        """Return a new model with tensors for as many of NumPy's arrays as it can be called and traced with."""
        for self._sizes in CHOICES:
            self._found = Arrays(())
            try:
                module = self._built(dtype)
                if module.arrays.places:
                    counting.traced(self.calling(module), self.fresh(self.sets[0]))
                return module
            except Exception:
                if not self._found.places:
                    raise
                self._found.restore()
        raise AssertionError("nothing is exchanged at last")

    def _built(self, dtype: tf.DType, everywhere: bool = False) -> Made:
        """Return a new model, whose variables are made by a first call.

        `everywhere`: Keras' layers compute in the dtype even where the user's policy names another one.
        """
        created: list[tf.Variable] = []

        def keep(make: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
            created.append(make(**arguments))
            return created[-1]

        args, kwargs = cast(self.fresh(self.sets[0]), dtype)  # with variables other than the model's
        with _making(dtype, self._policies), tf.variable_creator_scope(keep):
            self.seed(self.seed_of_weights)
            draws = [state for state in raw([hubs.generator()]) if isinstance(state, tf.Variable)]
            for state in draws:
                state.assign([self.seed_of_weights % 2**31, 0])
            self._arrays.restore()
            model, removed = plain(super().made())
            held = list(walk(model, _within))
            slots = [slot for one in held for slot in _slots(one)]
            sizes = {} if any(map(_asks_for_arrays, held)) else self._sizes
            arrays = self._found = Arrays.found(slots, sizes, partial(_cast, dtype=dtype, made={}))
            arrays.put()
            hubs.refuse_other_backends(self.file.name)
            self.removed += removed  # of a class once for all copies
            for layer in _computing_otherwise(model, dtype) if everywhere else ():
                hubs.compute_in(layer, dtype.name)
            call = partial(model, training=self.trains) if _takes_training(model, self.trains, args) else model
            try:
                with self.naming_inputs():
                    call(*args, **kwargs)
            except Exception:
                _refuse_other_dtypes(model, created, dtype)
                raise
        own = raw(getattr(model, "variables", ()))
        reached = list(_reached(model))
        variables = [*own, *created, *draws, *(one for one in reached if isinstance(one, tf.Variable))]
        variables = list({id(variable): variable for variable in variables}.values())
        _refuse_other_dtypes(model, variables, dtype)
        constants = [one for one in reached if isinstance(one, tf.Tensor) and one.dtype.is_floating]
        kinds = tuple(keras.layers.Layer for keras in hubs.installed_keras())
        called = [one for one in reached if isinstance(one, kinds) and one.built]  # others may lack their variables
        layers = [] if isinstance(model, kinds) else called
        if self.trains and layers and call is model:
            self.settings["training"] = "as the function calls its layers, by default for inference: it takes none"
        generators = raw([one.state for one in reached if isinstance(one, hubs.generators())])
        return Made(model, call, variables, constants, arrays, layers, [*draws, *generators])

    def _refuse_functions(self) -> None:
        """Raise Unsupported for a model of which eager mode runs graphs other than those of TensorFlow's own code."""
        try:
            stacks = program.graphs_called(self.call, self.fresh(self.sets[0]))
        except NotImplementedError as error:
            self.settings["graphs within eager mode"] = f"not looked for: {error}"
            return
        finally:
            self.restore()
        for stack in stacks:
            called = [holder for frame, _ in stack if isinstance(holder := frame.f_locals.get("self"), FUNCTION)]
            restored = any(_module_of(frame).startswith(SAVED_MODEL) for frame, _ in stack)
            if restored or any(map(_is_restored, called)):
                raise Unsupported("the model calls a SavedModel, which has no eager mode: use the original model.")
            code = getattr(called[0].python_function, "__code__", None) if called else None
            caller, line = next(entry for entry in stack if not _module_of(entry[0]).startswith(RUNS_GRAPHS))
            if called and _is_trainers(called[0]):
                raise Unsupported(
                    f"the model calls {caller.f_code.co_name} of Keras, a tf.function, so its eager mode would run a "
                    "graph: call the model itself."
                )
            if code and _is_users(called[0].python_function.__module__):
                place = user_file.short_place(code.co_filename, code.co_firstlineno, self.source)
                raise Unsupported(
                    f"the model calls {code.co_name} ({place}), a tf.function, so its eager mode would run a graph: "
                    "remove tf.function from it."
                )
            if not called and _is_users(_module_of(caller)):
                place = user_file.short_place(caller.f_code.co_filename, line, self.source)
                raise Unsupported(f"the model calls a graph ({place}), which has no eager mode: use the original code.")


def prepare(model: Model, cell: Cell) -> Step:
    """Return the step of the model in the cell's mode."""
    fields = {"restore": model.restore, "user_model": model}
    if cell.mode == "eager":
        return Step(model.call, model.sets, program=lambda: model.listed, **fields)
    call, sets, capture, listed = captured(model.call, model, cell)
    return Step(call, sets, capture, program=listed, **fields)


def captured(function: Callable, model: Model, cell: Cell) -> tuple:
    """Return the callable of a graph mode for a function of input sets, the sets, its capture, and its operators."""
    kept: list[tf.Tensor] = []  # tensors that the model reaches once it is traced: eager calls replace them

    @tf.autograph.experimental.do_not_convert
    def keep(output: Any) -> Any:
        kept.extend(one for one in _reached(model.module.model) if isinstance(one, tf.Tensor))
        return output

    graph = graph_of(lambda args, kwargs: keep(function(args, kwargs)), cell.mode == "function-xla")
    reasons = [(model.file.name, reason) for reason in user_model.other_forms(map(_specification, model.sets))]
    call, sets, capture = graphs.called(cell, graph, model.sets, reasons)
    return partial(refusing, call), sets, capture, partial(program.captured, graph, model.sets[0], None, kept)


def graph_of(function: Callable, xla: bool, **how: Any) -> Callable:
    """Return the `tf.function` of a function of input sets; nothing is traced yet."""
    return tf.function(lambda args, kwargs: function(args, kwargs), jit_compile=xla, **how)


def refusing(graph: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a graph. Raises Unsupported, with TensorFlow's reason, where it cannot hold the model or XLA compile it."""
    try:
        return graph(args, kwargs)
    except (TypeError, ValueError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
        words = " ".join(str(error).split())
        sign = next((sign for sign in REFUSED if sign in words), None)
        if sign is None:
            raise
        trace = error.__traceback__
    raise Unsupported(f"{REFUSED[sign]} cannot compile the model: {_reason(words, sign)}").with_traceback(trace)


def _reason(words: str, sign: str) -> str:
    """Return the reason in TensorFlow's text: operators that XLA lacks, or what follows the sign."""
    if lacking := dict.fromkeys(re.findall(r"No registered '(\w+)' OpKernel", words)):
        return f"it has no kernel for {'strings' if '=DT_STRING' in words else ', '.join(lacking)}"
    words = re.sub(r"graph __\S+?(\[\S*\])? on", "the graph on", words.partition("The op is created at")[0])
    words = re.sub(r"\{\{node (\S+)\}\}", r" \1", re.sub(r"<function \S+ at \w+>|\S*<lambda>\(.*?\)", "it", words))
    return words[words.find(sign) :][:400]


def _specification(inputs: Inputs) -> dict[str, tuple[str, Any]]:
    """Return the properties that a trace depends on, by the input's name: as text, and to compare.

    They are shapes, other values, and objects.
    """
    named = user_model.named_arguments(inputs)
    found = {name: [_traced_by(leaf) for leaf in tf.nest.flatten(value)] for name, value in named.items()}
    return {name: (", ".join(text for text, _ in leaves), leaves) for name, leaves in found.items()}


def _traced_by(leaf: Any) -> tuple[str, Any]:
    if isinstance(leaf, tf.experimental.ExtensionType):
        parts = [_traced_by(part) for part in tf.nest.flatten(_fields(leaf))]
        return ", ".join(text for text, _ in parts), parts
    if isinstance(leaf, (*TENSORS, tf.Variable)):
        lengths = leaf.shape if leaf.shape.rank is not None else ("any rank",)
        text = f"{leaf.dtype.name}[{','.join('?' if n is None else str(n) for n in lengths)}]"
        return text, text
    if isinstance(leaf, bool | int | float | complex | str | bytes | None):
        return repr(leaf)[:80], leaf
    return f"{type(leaf).__name__} object", id(leaf)


def plain(made: Any) -> tuple[Callable, list[str]]:
    """Return the user's model without `tf.function`, and the names from which that was removed.

    Raises Unsupported for a callable without a Python function.
    """
    removed = []
    if _has_original(made):
        made = made.python_function
        removed = [getattr(made, "__name__", "the function")]
    if isinstance(made, tf.types.experimental.ConcreteFunction | FUNCTION):
        raise Unsupported("model() returned a graph, which has no eager mode: return the original model.")
    for owner in _reached(made):
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            if _has_original(value) and not _is_trainers(value):
                if isinstance(owner, type):
                    setattr(owner, name, value.python_function)
                else:
                    vars(owner)[name] = value.python_function  # Keras would track an attribute that is set
                removed.append(name)
    return made, list(dict.fromkeys(removed))


def _has_original(value: Any) -> bool:
    """Return whether a value is a tf.function that was made from a Python function, not from a SavedModel."""
    return isinstance(value, FUNCTION) and hasattr(value, "python_function") and not _is_restored(value)


def _is_trainers(function: Any) -> bool:
    """Return whether a tf.function is one that Keras makes for `predict` and other methods of training."""
    module = getattr(function.python_function, "__module__", None) or ""
    return module.endswith(TRAINERS) and not _is_users(module)


def _module_of(frame: types.FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _is_restored(function: Any) -> bool:
    return type(function).__module__.startswith(SAVED_MODEL)


def _reached(made: Any) -> Iterator[Any]:
    """Yield a user's objects that a model reaches, their classes, the modules of these, and tensors and variables."""
    for one in walk(made, _within):
        if isinstance(one, types.ModuleType | type):
            if _is_users(one.__name__ if isinstance(one, types.ModuleType) else one.__module__):
                yield one
        elif isinstance(one, tf.Tensor | tf.Variable) or (hasattr(one, "__dict__") and _parts(one) is None):
            yield one


def _within(one: Any) -> list[Any]:
    """Return the objects that a user's object, class or module refers to."""
    if isinstance(one, tf.Tensor | tf.Variable | np.ndarray | str | bytes | int | float):
        return []
    if isinstance(one, types.ModuleType | type):
        users = _is_users(one.__name__ if isinstance(one, types.ModuleType) else one.__module__)
        return [value for value in vars(one).values() if users and isinstance(value, type)]
    if (parts := _parts(one)) is not None or not hasattr(one, "__dict__"):
        return parts or []
    kinds = type(one).__mro__
    held = [value for kind in kinds if _is_users(kind.__module__) for value in vars(kind).values()]
    code = [value for value in held if isinstance(value, types.FunctionType | list | dict | tuple)]
    return [*vars(one).values(), *code, *kinds, *(sys.modules.get(kind.__module__) for kind in kinds)]


def _parts(one: Any) -> list[Any] | None:
    """Return the parts of a container or function; None for another object."""
    if isinstance(one, Mapping):
        return list(one.values())
    if isinstance(one, list | tuple | set):
        return list(one)
    if isinstance(one, partial):
        return [one.func, *one.args, *one.keywords.values()]
    if isinstance(one, types.MethodType):
        return [one.__self__, one.__func__]
    if isinstance(one, types.FunctionType):
        return [*(value for _, _, value in _read(one)), sys.modules.get(one.__module__)]
    return [one.python_function] if _has_original(one) else None


def _slots(one: Any) -> list[Slot]:
    """Return the slots of a container, or of a user's function, object or class, whose values can be exchanged."""
    if isinstance(one, dict):
        return [(one, name, value) for name, value in one.items()]
    if isinstance(one, list):
        return [(one, index, value) for index, value in enumerate(one)]
    if isinstance(one, partial):
        return [(one, "args", one.args), *_slots(one.keywords)]
    if isinstance(one, types.FunctionType):
        return _read(one) if _is_users(one.__module__ or "") else []
    if isinstance(one, type):
        return [(one, name, value) for name, value in vars(one).items() if _is_users(one.__module__)]
    users = isinstance(one, types.SimpleNamespace) or _is_users(type(one).__module__)
    return _slots(vars(one)) if users and hasattr(one, "__dict__") and not isinstance(one, types.ModuleType) else []


def _read(function: types.FunctionType) -> list[Slot]:
    """Return the slots that a function reads: of its closure, its defaults, globals, and users' modules."""
    names = _names(function.__code__)
    cells = [(cell, "cell_contents", cell.cell_contents) for cell in function.__closure__ or () if _is_set(cell)]
    defaults: list[Slot] = [(function, "__defaults__", function.__defaults__)] if function.__defaults__ else []
    spaces = [function.__globals__]
    modules = [function.__globals__[name] for name in names if name in function.__globals__]
    spaces += [vars(one) for one in modules if isinstance(one, types.ModuleType) and _is_users(one.__name__)]
    read = [(space, name, space[name]) for space in spaces for name in names if name in space]
    return [*cells, *defaults, *_slots(function.__kwdefaults__ or {}), *read]


def _names(code: types.CodeType) -> list[str]:
    """Return the names of the globals and attributes that code reads, that of functions within it as well."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return list(dict.fromkeys([*code.co_names, *(name for names in inner for name in names)]))


def _asks_for_arrays(one: Any) -> bool:
    """Return whether a user's function asks whether a value is one of NumPy's arrays, and may branch on it.

    Questions about its own arguments do not count: they are asked about inputs.
    """
    users = isinstance(one, types.FunctionType) and _is_users(one.__module__ or "")
    if not users or "ndarray" not in _names(one.__code__):
        return False
    code = one.__code__
    lines = [line for line in dis.get_instructions(code) if line.opname != "PUSH_NULL"]
    asked = [then.argval for line, then in itertools.pairwise(lines) if line.argval == "isinstance"]
    return any(name not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] for name in asked)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # of a name that its function has not reached yet
        return False


def _is_users(module: str) -> bool:
    return module.partition(".")[0] not in (*LIBRARIES, *sys.stdlib_module_names, "numpy")


def cast(inputs: Any, dtype: tf.DType, made: dict[int, Any] | None = None) -> Any:
    """Return inputs with their arrays as tensors, floating-point ones in a dtype and complex ones in its width.

    A leaf that is held twice stays one. `made` has earlier casts by the identity of their sources.
    """
    made = {} if made is None else made

    def one(leaf: Any) -> Any:
        if id(leaf) not in made:
            made[id(leaf)] = _cast(leaf, dtype, made)
        return made[id(leaf)]

    return tf.nest.map_structure(one, inputs)


def _cast(leaf: Any, dtype: tf.DType, made: dict[int, Any]) -> Any:
    if isinstance(leaf, np.ndarray | np.generic) and not isinstance(leaf, bool | str | bytes):
        with contextlib.suppress(ValueError, TypeError):  # dates, objects: as the user would pass them
            leaf = tf.convert_to_tensor(leaf)
    if isinstance(leaf, tf.Variable):
        kind = _kind_of(leaf.dtype, dtype)
        return leaf if kind == leaf.dtype else tf.Variable(tf.cast(leaf, kind), trainable=leaf.trainable)
    if isinstance(leaf, TENSORS):
        kind = _kind_of(leaf.dtype, dtype)
        return leaf if kind == leaf.dtype else tf.cast(leaf, kind)
    if isinstance(leaf, tf.experimental.ExtensionType):
        return _rebuilt(leaf, cast(_fields(leaf), dtype, made))
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return _rebuilt(leaf, {name: cast(value, dtype, made) for name, value in attributes(leaf).items()})
    return leaf


def _kind_of(kind: tf.DType, dtype: tf.DType) -> tf.DType:
    """Return the dtype of a kind of values; those of one byte stay, since code computes with their scales."""
    if kind.is_complex:
        return tf.complex128 if dtype == tf.float64 else tf.complex64
    return dtype if kind.is_floating and kind.size > 1 else kind


def _fields(value: tf.experimental.ExtensionType) -> dict[str, Any]:
    """Return the fields of an extension type, without TensorFlow's cache among its attributes."""
    return {name: field for name, field in vars(value).items() if not name.startswith("_tf_extension_type")}


def _rebuilt(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return an object of the same class that holds other fields, whatever its `__init__` takes."""
    made = object.__new__(type(value))
    for name, field in fields.items():
        object.__setattr__(made, name, field)  # of a frozen class too
    return made


def _copied(leaf: Any, copies: dict[int, Any]) -> Any:
    if id(leaf) in copies:
        return copies[id(leaf)]
    if isinstance(leaf, tf.Variable):
        return tf.Variable(leaf, trainable=leaf.trainable, dtype=leaf.dtype)
    constant = isinstance(leaf, str | bytes | bool | int | float | complex | type(None) | tf.Tensor | COMPOSITE)
    return leaf if constant else copy.deepcopy(leaf, copies)


def _computing_otherwise(model: Any, dtype: tf.DType) -> list[Any]:
    """Return Keras' layers of a model that compute in another floating-point dtype."""
    layers = getattr(model, "_flatten_layers", None)
    computing = {layer: getattr(layer, "compute_dtype", None) for layer in (layers() if callable(layers) else ())}
    return [
        layer for layer, kind in computing.items() if kind not in (None, dtype.name) and tf.as_dtype(kind).is_floating
    ]


def _of_layers(layers: Sequence[Any], attribute: str) -> list[Any]:
    return [variable for layer in layers for variable in getattr(layer, attribute)]


def raw(variables: Sequence[Any]) -> list[tf.Variable]:
    """Return TensorFlow's variables behind those of Keras 3; others as they are."""
    return [getattr(variable, "value", variable) if _is_keras3(variable) else variable for variable in variables]


def _is_keras3(variable: Any) -> bool:
    return type(variable).__module__.startswith("keras.") and isinstance(getattr(variable, "value", None), tf.Variable)


def _alike(one: tf.Tensor, other: tf.Tensor) -> bool:
    """Return whether two tensors hold the same values, up to the error of another dtype."""
    first, second = (tf.cast(tensor, tf.float64).numpy() for tensor in (one, other))
    return first.shape == second.shape and bool(
        np.nansum((first - second) ** 2) <= ANOTHER_DTYPE**2 * np.nansum(first**2)
    )


def _takes_training(model: Any, trains: bool, args: tuple[Any, ...]) -> bool:
    """Return whether a model is called with `training`, which Keras hands on to layers whatever `call` itself takes.

    Inputs may hold it already, by its place.
    """
    with contextlib.suppress(TypeError, ValueError):  # of a callable without signature, or called otherwise
        signature = inspect.signature(getattr(model, "call", model))
        if "training" in signature.parameters:
            return "training" not in signature.bind_partial(*args).arguments
    return trains and isinstance(model, tuple(keras.layers.Layer for keras in hubs.installed_keras()))


def _refuse_other_dtypes(model: Any, variables: Sequence[tf.Variable], dtype: tf.DType) -> None:
    """Raise Unsupported where the model's own variables, or else those given, have another floating-point dtype."""
    kept = _kept_in_float32(model)
    found = raw(getattr(model, "variables", ())) or variables
    floating = [one.dtype.base_dtype for one in found if one.dtype.is_floating and id(one) not in kept]
    if wrong := [made.name for made in floating if made != dtype]:
        way = "make them in float32" if dtype == tf.float32 else "do not set dtypes in the model, or measure in fp32"
        raise Unsupported(f"the model makes variables in {wrong[0]} instead of {dtype.name}: {way}.")


def _kept_in_float32(model: Any) -> set[int]:
    """Return ids of variables that Keras 2 keeps in float32 where its layers compute in 16 bits: batch norm's."""
    kinds = tuple(keras.layers.BatchNormalization for keras in hubs.installed_keras() if not _is_version_3(keras))
    layers = (model, *model.submodules) if isinstance(model, tf.Module) else ()
    return {id(variable) for layer in layers if isinstance(layer, kinds) for variable in layer.variables}


_of_file: dict[str, dict[str, Any]] = {}  # by file, which a process runs once


def _mixed_policies() -> dict[str, Any]:
    """Return Keras' policies of mixed precision by the library's name, and replace them for other files."""
    found = {}
    for keras in hubs.installed_keras():
        policy, floatx = _policy(keras), keras.backend.floatx()
        if policy.compute_dtype != policy.variable_dtype:
            found[keras.__name__] = policy
            _default(keras, floatx, floatx)
    return found


@contextlib.contextmanager
def _making(dtype: tf.DType, policies: Mapping[str, Any]) -> Iterator[None]:
    """Make Keras 2 and Keras 3 create layers in a dtype, or with the policy for a library's name."""
    before = [(keras, keras.backend.floatx(), _policy(keras)) for keras in hubs.installed_keras()]
    try:
        for keras, floatx, _ in before:
            # That of Keras 2 has no bfloat16, and its policies have.
            kept = floatx if dtype == tf.bfloat16 and not _is_version_3(keras) else dtype.name
            policy = policies.get(keras.__name__)
            _default(keras, kept, policy if policy and policy.variable_dtype == dtype.name else dtype.name)
        yield
    finally:
        for settings in before:
            _default(*settings)


def _is_version_3(keras: Any) -> bool:
    return hasattr(keras, "config")


def _policy(keras: Any) -> Any:
    return keras.config.dtype_policy() if _is_version_3(keras) else keras.mixed_precision.global_policy()


def _default(keras: Any, floatx: str, policy: Any) -> None:
    """Set both, since a policy that was read or set does not follow `floatx`."""
    keras.backend.set_floatx(floatx)
    set_policy = keras.config.set_dtype_policy if _is_version_3(keras) else keras.mixed_precision.set_global_policy
    set_policy(policy)
