"""FLOPs and bytes of a call, counted on the graph that TensorFlow traces of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from frameworks.tensorflow.inspect.program import CALLS, LEFT_OUT
from frameworks.user_model import Counted, Uncounted

BY = (
    "tf.compat.v1.profiler's float operations of the traced graph, einsums by their sizes; bytes of every operator's "
    "operands and results"
)
# Operators that read rows of their first operand.
_GATHERS = ("Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd")
# Operators that compute much and have no rule in the profiler: a graph with one is not counted.
_WITHOUT_RULE = (
    *(
        "Conv3DBackprop",
        "CudnnRNN",
        "LSTM",
        "BlockLSTM",
        "GRU",
        "XlaDot",
        "XlaConv",
        "XlaCallModule",
        "QuantizedMatMul",
    ),
    *("Sparse", "CSRSparse", "Cholesky", "Matrix", "Qr", "Svd", "SelfAdjointEig", "Eig", "Lu", "FFT", "IFFT", "RFFT"),
    *("IRFFT", "CTC", "Tridiagonal", "PyFunc", "EagerPyFunc", "UniformQuantized"),
)
# Begin like one of these, and compute little.
_WITH_RULE = (
    "SparseSegment",
    "SparseSoftmaxCrossEntropy",
    "SparseReshape",
    "MatrixDiag",
    "MatrixBandPart",
    "MatrixSetDiag",
)


def _unknown(kind: str) -> bool:
    """Return whether an operator may compute much that is not counted."""
    return kind in CALLS or (kind.startswith(_WITHOUT_RULE) and not kind.startswith(_WITH_RULE))


def traced(call: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Return the graph that TensorFlow traces of `call(*inputs)`."""
    return tf.function(lambda *given: call(*given)).get_concrete_function(*inputs).graph


def counted(graph: Any, inputs: Sequence[Any]) -> Counted:
    """Return FLOPs and bytes of a graph traced for `inputs`. Raises Uncounted where the profiler cannot count it.

    The bytes include those variables that the graph reads; of a table that it only gathers, the rows.
    """
    given = [leaf for leaf in tf.nest.flatten(inputs, expand_composites=True) if tf.is_tensor(leaf)]
    operators = [op for op in graph.get_operations() if op.type not in LEFT_OUT]
    if unknown := [op.type for op in operators if _unknown(op.type)]:
        raise Uncounted.naming(unknown)
    einsums = [_einsum(op) for op in operators if op.type == "Einsum"]
    moved = [_nbytes([*_operands(op), *op.outputs]) for op in operators]
    once = _nbytes([*given, *graph.outputs])
    read = [_read(graph, variable) for variable in graph.variables]
    if None in (*einsums, *moved, once, *read):
        raise Uncounted("the traced graph leaves shapes open")
    profiler = tf.compat.v1.profiler
    options = profiler.ProfileOptionBuilder(profiler.ProfileOptionBuilder.float_operation()).with_empty_output()
    profile = profiler.profile(graph=graph, options=options.build())
    return Counted(int(profile.total_float_ops) + sum(einsums), once + sum(read), sum(moved), BY)


def _operands(op: tf.Operation) -> list[tf.Tensor]:
    """Return an operator's operands; of a table, the rows that it gathers, which are as large as its result."""
    return [*op.outputs, *op.inputs[1:]] if op.type in _GATHERS else list(op.inputs)


def _read(graph: Any, variable: tf.Variable) -> int | None:
    """Return the bytes that the graph reads of a variable; None where a shape is open."""
    whole, rows = _nbytes([variable]), []
    tensors = [inner for outer, inner in graph.captures if outer is variable.handle]
    if whole is None or not tensors:
        return whole
    for tensor in tensors:  # which grows
        for op in tensor.consumers():
            if op.type in ("ReadVariableOp", "Identity"):
                tensors.append(op.outputs[0])
            elif op.type in _GATHERS and op.inputs[0] is tensor:
                rows += op.outputs
            else:
                return whole
        if any(tensor is output for output in graph.outputs):
            return whole
    read = _nbytes(rows)
    return None if read is None else min(whole, read)


def _einsum(op: tf.Operation) -> int | None:
    """Return two operations for every combination of the indices' values; None where an equation leaves some open."""
    sides = op.get_attr("equation").decode().split("->")[0].split(",")
    if any(not side.isalpha() for side in sides) or any(tensor.shape.rank is None for tensor in op.inputs):
        return None
    sizes = {
        label: size
        for side, tensor in zip(sides, op.inputs, strict=True)
        for label, size in zip(side, tensor.shape, strict=True)
    }
    return None if None in sizes.values() else 2 * math.prod(sizes.values())


def _nbytes(tensors: Sequence[Any]) -> int | None:
    """Return bytes of all tensors except handles of variables; None where a shape is open."""
    sizes = [
        None if tensor.shape.num_elements() is None else tensor.shape.num_elements() * tensor.dtype.size
        for tensor in tensors
        if tensor.dtype not in (tf.resource, tf.variant, tf.string)
    ]
    return None if None in sizes else sum(sizes)
