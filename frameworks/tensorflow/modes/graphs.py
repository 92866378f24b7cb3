"""Captures of one `tf.function`, and the signatures of functions that serve every shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from frameworks import adapter as boundary
from frameworks.tensorflow.inspect import program
from measurement.cells import Cell
from workloads.spec import Workload

try:  # no part of TensorFlow's API, but the only count of functions that its own code makes and traces in a call
    from tensorflow.python.eager.polymorphic_function import tracing_compilation

    _TRACING = tracing_compilation._graph_building_time_counter
except (ImportError, AttributeError):
    _TRACING = None

UNOPTIMIZED = "function-unoptimized"
RUN_EAGERLY = "tf.config.run_functions_eagerly is on, so no graph runs: turn it off"
CALLS_PYTHON = "the graph calls Python: remove tf.py_function and tf.numpy_function from the model."
# Nodes that leave the graph for Python in every call.
_PYTHON_NODES = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


def python_nodes(concrete: Any) -> int:
    """Return how many nodes of a concrete function call Python."""
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for inner in graph.library.function for node in inner.node_def)]
    return sum(node.op in _PYTHON_NODES for node in nodes)


def tracing_time() -> int | None:
    """Return the microseconds in which this process traced functions; None where this version does not count them."""
    return _TRACING.get_cell().value() if _TRACING else None


class Unoptimized:
    """A `tf.function` each of whose calls makes TensorFlow's runtime keep the graph as traced.

    Grappler's switch belongs to the process; a call passes a copy of it to the runtime, and a function is optimized for
    each such copy separately. Raises `Unsupported` where this version of TensorFlow has no such options.
    """

    def __init__(self, function: Callable[..., Any]):
        try:
            from tensorflow.python.eager import context  # no part of TensorFlow's API, with the process's switch

            self._context = context.context()
            usual = self._context.function_call_options.config_proto_serialized
            config = tf.compat.v1.ConfigProto.FromString(usual)
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            self._options = context.FunctionCallOptions(config_proto=config)
        except (ImportError, AttributeError) as error:
            raise boundary.Unsupported(
                f"TensorFlow {tf.__version__} cannot set options for a call: {error}."
            ) from error
        self._function = function

    def __call__(self, *inputs: tf.Tensor) -> Any:
        usual = self._context.function_call_options
        self._context.function_call_options = self._options
        try:
            return self._function(*inputs)
        finally:
            self._context.function_call_options = usual


def in_mode(
    workload: Workload,
    cell: Cell,
    model: Callable,
    sets: Sequence[tuple],
    outer: Callable[[Callable], Callable] = lambda call: call,
    state: Mapping[str, Callable] = MappingProxyType({}),
) -> boundary.Step:
    """Return the model as the cell's mode calls it, on input sets that are on the device."""
    if cell.mode == "eager":
        return boundary.Step(outer(model), sets, **state, program=partial(program.executed, model, sets[0]))
    function = function_of(model, workload, cell, sets[0])
    listed = partial(program.captured, function, sets[0], program.trips_of(cell))
    call, inputs, capture = called(cell, function, sets)
    return boundary.Step(outer(call), inputs, capture, **state, program=listed)


def called(
    cell: Cell, function: Callable[..., Any], sets: Sequence[tuple], reasons: Sequence[tuple[str, str]] | None = None
) -> tuple:
    """Return the function of a `tf.function` that the cell's mode calls, the input sets, and a report of its capture.

    `reasons`, of a user model, are places and reasons for which it is traced again; others are traced once.
    """
    if cell.mode == UNOPTIMIZED:
        return Unoptimized(function), sets, Captured(function, sets[0], "no rewriter", reasons)
    return function, sets, Captured(function, sets[0], "grappler", reasons)


class Captured:
    """Reports the capture of one `tf.function`; the graph is examined once, after the first call.

    `rewriter` rewrites the graph where XLA does not compile it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: tuple,
        rewriter: str,
        reasons: Sequence[tuple[str, str]] | None = None,
    ):
        self._function, self._inputs, self._rewriter, self._reasons = function, inputs, rewriter, reasons
        self._examined: tuple[str, int] | None = None

    def __call__(self) -> boundary.Capture:
        traces = self._function.experimental_get_tracing_count()
        eagerly = tf.config.functions_run_eagerly()
        if not traces:
            detail = RUN_EAGERLY if eagerly else "not called yet"
            return boundary.Capture(whole=False, graphs=0, compilations=0, detail=detail)
        self._examined = self._examined or self._examine()
        backend, breaks = self._examined
        problems = {
            f"traced {traces} times": traces != 1 and self._reasons is None,
            f"{breaks} nodes call Python": breaks > 0,
            RUN_EAGERLY: eagerly,
        }
        detail = "; ".join(problem for problem, holds in problems.items() if holds)
        # Compilations are traces: XLA compiles once for a trace of fixed shapes.
        again = 0 if self._reasons is None else traces - 1
        recompiled = tuple(self._reasons or ())[:again]
        return boundary.Capture(
            *(not detail, traces - again, breaks, traces, backend, detail), recompiled=recompiled, recompilations=again
        )

    def _examine(self) -> tuple[str, int]:
        """Return the compiler, and how many nodes leave the graph for Python."""
        concrete = self._function.get_concrete_function(*self._inputs)
        breaks = python_nodes(concrete)
        # With this attribute TensorFlow raises, and does not fall back, where XLA cannot compile all of the function.
        if not concrete.function_def.attr["_XlaMustCompile"].b:
            return self._rewriter, breaks
        try:
            module = self._function.experimental_get_compiler_ir(*self._inputs)(stage="hlo")
        except Exception:
            if self._reasons is None:
                raise
            return "xla", breaks  # of inputs for which TensorFlow shows no module, and compiles one
        return ("xla" if module.startswith("HloModule") else "unknown"), breaks


def function_of(model: Callable, workload: Workload, cell: Cell, tensors: tuple) -> Callable:
    """Return the `tf.function` that the cell's mode calls; nothing is traced yet.

    Without a signature each shape is traced once; an extra trace increases the counter. A lambda, since `tf.function`
    holds a bound method's object weakly. Autograph off: no Python control flow in these models depends on a tensor.
    """
    return tf.function(
        lambda *given: model(*given),
        input_signature=signature(workload, cell, tensors) if cell.shapes == "dynamic" else None,
        autograph=False,
        jit_compile=cell.mode == "function-xla",
    )


def signature(workload: Workload, cell: Cell, tensors: tuple) -> list[tf.TensorSpec]:
    """Return specifications of the inputs, with open sizes where they depend on batch size and sequence length."""
    axes = workload.dynamic_axes(dict(cell.parameters))
    if int(cell.parameter("accumulate", 1)) > 1:  # micro-batches have a first axis of fixed length
        axes = tuple(tuple(axis + 1 for axis in free) for free in axes)
    return [
        tf.TensorSpec([None if axis in free else length for axis, length in enumerate(tensor.shape)], tensor.dtype)
        for tensor, free in zip(tensors, axes, strict=True)
    ]
