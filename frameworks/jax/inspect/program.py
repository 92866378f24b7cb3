"""The primitives that JAX runs op by op, and those that a jitted function's jaxpr holds, in one normal form.

Both sides are lists of the same primitives, since XLA decomposes them only afterwards. Jitted functions, such as most
of `jax.numpy`, count as their primitives on both sides; so do gradient rules, rematerialization and loops.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr

from frameworks.adapter import Unsupported
from frameworks.jax import runtime
from frameworks.jax.modes import compiling
from frameworks.program import Operation, Program
from measurement.cells import Cell

try:  # no part of JAX's API, but the only access to its op-by-op execution
    from jax._src import core

    _EvalTrace, _set_current_trace, _eval_trace = core.EvalTrace, core.set_current_trace, core.eval_trace
except (ImportError, AttributeError):
    _EvalTrace, _set_current_trace, _eval_trace = object, None, None

# Primitives replaced by the jaxprs they hold.
CALLS = (
    "jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr", "custom_partitioning", "eval_jaxpr", "scan", "while", "cond", "shard_map",
)  # fmt: skip
# They rename memory or copy a value to the device; reading one micro-batch is a slice here and part of `scan` there.
RENAMES = (
    "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "unstack", "copy", "copy_p", "stop_gradient",
    "stage",
)  # fmt: skip
KINDS = {"dot_general": "matmul", "conv_general_dilated": "convolution", "reduce_precision": "cast"}
# Parameters that choose no kernel: names, and placement, as there is one device.
DROPPED = ("name", "sharding", "out_sharding", "weak_type")
RANK_OF_SCORES = 4
JITTED = ("jit", "pjit")
TRANSFERS = ("convert_element_type", "copy", "copy_p", "device_put", "stage")  # to the device, and casts on the way
Primitive = tuple[str, dict[str, Any]]  # its name, and its parameters
PLAIN_TYPES = (bool, int, float, str, tuple, list, np.dtype, np.generic, enum.Enum)


class Listing(_EvalTrace):
    """Executes op by op, as JAX does where nothing traces, and records the executed primitives."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def process_primitive(self, primitive: Any, args: Sequence, params: dict, /) -> Any:
        with _set_current_trace(_eval_trace):
            self.operations += operations(primitive.name, [jax.typeof(x) for x in args], params)
            return _eval_trace.process_primitive(primitive, args, params)

    def process_call(self, primitive: Any, function: Any, args: Sequence, params: dict, /) -> Any:
        with _set_current_trace(self):
            return function.call_wrapped(*args)

    def process_custom_jvp_call(self, primitive: Any, function: Any, jvp: Any, args: Sequence, /, **_: Any) -> Any:
        with _set_current_trace(self):
            return function.call_wrapped(*args)

    def process_custom_vjp_call(
        self, primitive: Any, function: Any, forward: Any, backward: Any, args: Sequence, /, **_: Any
    ) -> Any:
        with _set_current_trace(self):
            return function.call_wrapped(*args)

    def process_shard_map(self, primitive: Any, function: Any, args: Sequence, /, **params: Any) -> Any:
        def staged(*given: Any) -> None:
            core.trace_ctx.trace.process_shard_map(primitive, function, given, **params)

        with _set_current_trace(_eval_trace):  # which runs each primitive within under jit
            self.operations += _of_jaxpr(jax.make_jaxpr(staged)(*args))
            return _eval_trace.process_shard_map(primitive, function, args, **params)


class Dispatches(_EvalTrace):
    """Executes op by op, as JAX does where nothing traces, and keeps the name and the parameters of each dispatch."""

    def __init__(self) -> None:
        super().__init__()
        self.primitives: list[Primitive] = []

    def process_primitive(self, primitive: Any, args: Sequence, params: dict, /) -> Any:
        with _set_current_trace(_eval_trace):
            self.primitives.append((primitive.name, params))
            return _eval_trace.process_primitive(primitive, args, params)


def dispatched(call: Callable, inputs: Sequence[Any]) -> list[Primitive]:
    """Return the primitives that `call(*inputs)` dispatches, among them jitted functions, not their contents."""
    trace = Dispatches()
    _run_under(trace, call, inputs)
    return trace.primitives


def names(primitives: Iterable[Primitive]) -> Counter[str]:
    """Return how often primitives occur by name; a jitted function, such as most of `jax.numpy`, by its own."""
    return Counter(params["name"] if name in JITTED else name for name, params in primitives)


def listing(cell: Cell, call: Callable, arguments: tuple, step: Callable, inputs: tuple) -> Callable[[], Program]:
    """Return a function that lists the operators of the cell's mode.

    `call` takes `arguments` (their shapes are kept), `step` takes `inputs`.
    """
    if cell.mode in ("eager", compiling.BLOCKS):
        return functools.partial(executed, step, inputs)
    return functools.partial(captured, call, runtime.shapes(arguments))


def executed(call: Callable, inputs: Sequence[Any], before: Callable[[], Any] = lambda: None) -> Program:
    """Return the operators that `call(*inputs)` runs op by op, on concrete values, after `before()`.

    A module of Flax NNX is listed only where it was made, such as by `before`.
    """
    trace = Listing()

    def listed() -> None:
        before()
        trace.operations.clear()
        call(*inputs)

    _run_under(trace, listed, ())
    return trace.operations


def _run_under(trace: Any, call: Callable, inputs: Sequence[Any]) -> None:
    """Call under a trace. Raises Unsupported where this version of JAX has no trace of op-by-op execution."""
    if _eval_trace is None:
        raise Unsupported(f"JAX {jax.__version__} does not expose the operators of its op-by-op mode.")
    with _set_current_trace(trace):
        call(*inputs)


def captured(graph: Any, inputs: Sequence[Any], pruned: bool = False) -> Program:
    """Return the operators in the jaxpr of a jitted function for inputs of these shapes; nothing is compiled.

    `pruned` omits those that no output needs, as XLA does.
    """
    closed = graph.trace(*inputs).jaxpr
    return needed(closed, len(closed.jaxpr.outvars)) if pruned else list(_of_jaxpr(closed))


def drops(closed: Any, count: int) -> bool:
    """Return whether the first `count` outputs of a closed jaxpr need fewer operators than all of them."""
    every = len(closed.jaxpr.outvars)
    return count < every and len(needed(closed, count)) < len(needed(closed, every))


def needed(closed: Any, count: int) -> Program:
    """Return the operators that the first `count` outputs of a closed jaxpr need."""
    outputs = [index < count for index in range(len(closed.jaxpr.outvars))]
    return list(_of_jaxpr(dce_jaxpr(closed.jaxpr, outputs)[0]))


def operations(name: str, operands: Sequence, params: dict) -> Iterator[Operation]:
    """Yield a primitive in normal form: nothing, the primitive, or the primitives inside it.

    `operands` are abstract values.
    """
    if name in CALLS:
        for _ in range(params["length"] if name == "scan" else 1):
            for jaxpr in inner(params):
                yield from _of_jaxpr(jaxpr)
    elif name not in RENAMES and not (name == "convert_element_type" and _is_no_cast(operands[0], params)):
        yield _operation(name, operands, params)


def _of_jaxpr(jaxpr: Any) -> Iterator[Operation]:
    for equation in jaxpr.eqns:
        yield from operations(equation.primitive.name, [x.aval for x in equation.invars], equation.params)


def inner(params: dict) -> Iterator[Any]:
    """Yield the jaxprs that the parameters of an equation hold."""
    for value in params.values():
        for jaxpr in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(jaxpr, "eqns"):
                yield jaxpr


def _is_no_cast(operand: Any, params: dict) -> bool:
    """Return whether nothing is converted, or a single number: Python's, which a graph converts while it is traced."""
    return not operand.shape or np.dtype(params["new_dtype"]) == operand.dtype


def _operation(name: str, operands: Sequence, params: dict) -> Operation:
    mask = _mask(name, operands)
    arguments = {} if mask is None else {"mask": _type(mask)}
    arguments |= {f"operand {index}": _type(x) for index, x in enumerate(operands)}
    arguments |= {
        key: _text(value) for key, value in params.items() if key not in DROPPED and isinstance(value, PLAIN_TYPES)
    }
    return Operation(name, _kind(name, operands, params) if mask is None else "attention", arguments)


def _mask(name: str, operands: Sequence) -> Any | None:
    """Return the operand that masks scores (B, heads, S, S): a predicate, or a number added for all heads or queries.

    None for other operators. It decides which attention kernels can be used, so it counts as attention.
    """
    if any(len(getattr(x, "shape", ())) != RANK_OF_SCORES for x in operands):
        return None
    if name == "select_n":
        return operands[0]
    if name == "add" and operands[0].shape != operands[1].shape:
        return min(operands, key=lambda x: x.size)
    return None


def _kind(name: str, operands: Sequence, params: dict) -> str:
    if name == "convert_element_type":
        floats = all(jax.numpy.issubdtype(dtype, np.floating) for dtype in (params["new_dtype"], operands[0].dtype))
        return "cast" if floats else ""
    return "attention" if "attention" in name else KINDS.get(name, "")


def _type(aval: Any) -> str:
    return f"{aval.dtype} ({','.join(map(str, aval.shape))})" if hasattr(aval, "shape") else str(aval)


def _text(value: Any) -> str:
    """Return the same text for the same value, whether NumPy's or Python's."""
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_text, value))})"
    return str(value)
