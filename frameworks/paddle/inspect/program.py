"""The operators that Paddle dispatches in eager mode, and those that a captured program holds, in one normal form.

Operators have one set of names in both (`matmul`, `pd_op.matmul`), so the normal form is small. It omits constants, a
program's inputs and outputs, and reshapes, which compute nothing. It keeps the types and shapes of all operands, the
target type of a cast, and the attributes in `ATTRIBUTES`, which choose a kernel. Transposes and slices stay, since
those of a captured program copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import paddle

from frameworks.paddle.inspect import eager_log
from frameworks.paddle.inspect.eager_log import ATTRIBUTES, Dispatch, tensor
from frameworks.program import NONE, PRODUCTS, Operation, Program
from measurement.cells import Cell

KINDS = {
    "matmul": "matmul", "bmm": "matmul", "addmm": "matmul", "linear_v2": "linear", "fused_gemm_epilogue": "linear",
    "matmul_v2": "matmul",  # in Paddle 2's programs
    "conv2d": "convolution", "depthwise_conv2d": "convolution", "conv3d": "convolution",
    "rnn": "recurrent", "softmax": "softmax", "cross_entropy_with_softmax": "softmax", "log_softmax": "softmax",
    "layer_norm": "normalisation", "rms_norm": "normalisation", "batch_norm": "normalisation",
    "group_norm": "normalisation",
}  # fmt: skip
# Names that one side has for an operator of the other.
ALIASES = {
    "div_scale": "scale",
    "elementwise_pow": "pow",
    "mean_all": "mean",
    "index_elementwise_get": "gather_nd",  # x[index]
    "masked_fill": "index_put",  # x[mask] = number
    "index_elementwise_put": "index_put",  # x[index] = value
    "index_elementwise_put_with_tensor": "index_put",
}
MASKS = ("attn_mask", "bias", "startend_row_indices")  # attention's operands
# What eager mode takes as an attribute and a captured program as an operand; those that are constants need no entry.
ATTRIBUTE_OPERANDS = {
    "scale": {"scale"}, "linspace": {"start", "stop", "number"}, "clip": {"min", "max"}, "topk": {"k"},
    "roll": {"shifts"}, "expand": {"shape"}, "tile": {"repeat_times"}, "split": {"sections", "axis"},
    "slice": {"starts", "ends"}, "strided_slice": {"starts", "ends", "strides"},
    "set_value": {"starts", "ends", "steps"}, "set_value_with_tensor": {"starts", "ends", "steps"},
    "nearest_interp": {"size_tensor"}, "bilinear_interp": {"size_tensor"}, "bicubic_interp": {"size_tensor"},
}  # fmt: skip
CONSTANTS = {"full", "full_like", "full_int_array", "full_with_tensor", "assign_value", "arange", "empty"}
SHAPES = ("pd_op.shape", "pd_op.shape64")
PROGRAM_ENDS = {"data", "feed", "fetch", "shadow_output", "share_data"}
RESHAPES = {"reshape", "squeeze", "unsqueeze", "flatten", "view_shape", "shape", "shape64"}
WRITES = {"assign_out"}  # of state at the end of a program; eager mode uses another tensor
# Names of operators, some with the dtype of their operand: those to omit, between those that come before and after.
Omitted = tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]
# What functions of Paddle check in eager mode alone, with results that nothing or only Python reads.
CHECKS: Omitted = (
    ((), ("not_equal int", "cast", "multiply"), ("cross_entropy_with_softmax",)),  # cross_entropy: its labels
    (("maximum",), ("less_equal", "any"), ("divide",)),  # var and std: degrees of freedom
)
# How `where` broadcasts its operands, whose shapes it shows: by `expand`, and in graphs by adding zeros.
ADDING = ("cast bool", "cast bool", *("add",) * 5, "cast")
BROADCASTS: Omitted = tuple(
    ((), (*("expand",) * count, *added), ("where",)) for count in range(4) for added in ((), ADDING)
)
# How a loss with weights finds its labels: before it in eager mode, as one of the checks, and after it in graphs.
LABELS: Omitted = ((("cross_entropy_with_softmax",), ("not_equal int", "cast", "multiply"), ()),)
# How both index: the operator, and names of those that may come after it and before it, to omit. Graphs transpose the
# indexed axes to the front and back, and write by another operator. Eager mode takes strides.
INDEXING = {"gather_nd": ("transpose",), "index_put": ("transpose", "set_value_with_tensor")}
BEFORE_INDEXING = ("transpose", "broadcast_tensors", "stack int", "expand int", "slice int", "nonzero")
LEFT_OUT = CONSTANTS | PROGRAM_ENDS | RESHAPES | WRITES


def is_product(operator: str) -> bool:
    """Return whether an operator, by its name in a program, is a matrix product, with or without a bias."""
    return KINDS.get(operator.removeprefix("pd_op.")) in ("matmul", "linear")


def executed(call: Callable[..., Any], inputs: tuple, cell: Cell | None, despite_numpy: bool = False) -> Program | None:
    """Return the operators that `call(*inputs)` dispatches in eager mode, in their order.

    None where Paddle's log cannot be switched on for one call, as in 2.6. Raises ValueError as `eager_log.logged` and
    `eager_log.dispatches`.
    """
    log = eager_log.logged(call, inputs, despite_numpy)
    if log is None:
        return None
    dispatches = eager_log.dispatches(log, cell)
    if not dispatches and not despite_numpy:
        raise ValueError("Paddle's log has no operators.")
    return _without(normal_form(dispatches), CHECKS)


def normal_form(dispatches: Iterable[Dispatch]) -> list[Operation]:
    """Return the operators that compute values, in normal form; an in-place operator has the name of the other one."""
    operations, before = [], None
    for dispatch in dispatches:
        name = dispatch.name.removesuffix("_")
        name = ALIASES.get(name, name)
        if name not in LEFT_OUT and not _is_identity(name, dispatch) and not _of_numbers(dispatch):
            operations.append(_operation(name, dispatch, before))
        before = dispatch
    return _indexing(_without(operations, BROADCASTS + LABELS))


def _without(operations: list[Operation], omitted: Omitted) -> list[Operation]:
    """Return the operators without those that a table omits."""
    dropped: set[int] = set()
    for before, names, after in omitted:
        whole = [*before, *names, *after]
        for start in range(len(operations) - len(whole) + 1):
            if all(map(_is_named, operations[start : start + len(whole)], whole)):
                first = start + len(before)
                dropped |= set(range(first, first + len(names)))
    return [operation for index, operation in enumerate(operations) if index not in dropped]


def _is_named(operation: Operation, text: str) -> bool:
    name, _, dtype = text.partition(" ")
    return operation.name == name and next(iter(operation.arguments.values()), "").startswith(dtype)


def _indexing(operations: list[Operation]) -> list[Operation]:
    """Return the operators with one for each index, and what finds the places of a mask."""
    made, start = list(operations), len(operations)
    while start:
        place, end = start - 1, start
        start = place
        if (after := INDEXING.get(made[place].name)) is None:
            continue
        while start and any(_is_named(made[start - 1], text) for text in BEFORE_INDEXING):
            start -= 1
        while end < len(made) and made[end].name in after:
            end += 1
        places = [operation for operation in made[start:place] if operation.name == "nonzero"]
        x = _amount(made[end - 1].arguments["x"])
        made[start:end] = [*places, replace(made[place], arguments={"x": x})]
    return made


def _amount(text: str) -> str:
    """Return `float32 (96)` for `float32 (4,3,8)`: how many values there are, whatever the order of the axes."""
    dtype, _, shape = text.partition(" (")
    if not shape:  # of a program that serves every shape
        return text
    return f"{dtype} ({None if 'None' in shape else prod(map(int, re.findall('[0-9]+', shape)))})"


def _is_identity(name: str, dispatch: Dispatch) -> bool:
    """Return whether an operator is a cast to the dtype that its operand has."""
    given = [text.partition(" ")[0] for texts in dispatch.operands.values() for text in texts]
    return name == "cast" and given == [dispatch.results[0].partition(" ")[0]]


def _of_numbers(dispatch: Dispatch) -> bool:
    """Return whether an operator computes with single whole numbers, such as lengths, as Python may in eager mode."""
    given = [text for texts in dispatch.operands.values() for text in texts]
    return bool(given) and all(text.startswith("int") and text.endswith(("()", "rank 0")) for text in given)


def _operation(name: str, dispatch: Dispatch, before: Dispatch | None) -> Operation:
    operands = {key: texts for key, texts in dispatch.operands.items() if key not in ATTRIBUTE_OPERANDS.get(name, ())}
    arguments = {key: " ".join(texts) for key, texts in operands.items() if texts}
    kind = "attention" if "attention" in name or name.startswith("flash_attn") else KINDS.get(name, "")
    if name == "cast":
        arguments["to"] = dispatch.results[0].split()[0]
        kind = "cast" if all("float" in text for text in arguments.values()) else ""
    if before and before.name == "full" and arguments.get("y") == before.results[0]:
        dtype, _, size = arguments["y"].partition(" ")
        if size in ("()", "(1)", "rank 0") or arguments["y"] == arguments["x"]:
            arguments["y"] = f"{dtype} number"  # which eager mode gives its operand's shape
        if name == "pow":
            del arguments["y"]  # in eager mode an attribute
    if name in INDEXING:  # by what it gives, since one side indexes a view
        arguments = {"x": dispatch.results[0]}
    if kind == "attention":  # named in this order: the most important first
        masks = {key: " ".join(texts) or NONE for key, texts in operands.items() if key in MASKS}
        arguments = masks | arguments
    for key in ATTRIBUTES.get(name, {}):
        arguments[key] = _text(dispatch.attributes[key])
    return Operation(name, kind, arguments, spare=dispatch.constant and kind not in PRODUCTS)


def _text(value: Any) -> str:
    """Return one text for an eager call's argument and a program's attribute, which is a float32 where that is none."""
    if value in ("tanh", "none"):  # values of GELU's argument
        return str(value == "tanh")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def captured(graph: Any, cell: Cell) -> Program | None:
    """Return the operators of a program that `to_static` captured, before any pass of Paddle's own.

    None where it is none of Paddle 3's programs, whose operators come with their operands.

    Raises ValueError for one that branches or loops, whose operators depend on values.
    """
    if not hasattr(paddle, "pir") or not isinstance(graph, paddle.pir.Program):
        return None
    operators = _operators(graph.global_block())
    return normal_form(_dispatch(operator, cell) for operator in operators if not _of_a_shape(operator))


def _operators(block: Any) -> Iterator[Any]:
    """Yield the operators of a block that compute, and those within the user's own `PyLayer`."""
    for operator in block.ops:
        if operator.name() == "pd_op.pylayer":
            for inner in operator.blocks():
                yield from _operators(inner)
        elif not operator.name().startswith(("builtin.", "cf.")):
            yield operator


def _of_a_shape(operator: Any) -> bool:
    """Return whether an operator computes a number or list of numbers from tensors' shapes alone.

    Where a dimension is left open the program does so itself; in eager mode Python does, and passes numbers.
    """
    if _is_constant(operator) or not all(_is_length(value) for value in operator.results()):
        return False
    sources = [part.get_defining_op() for value in operator.operands_source() for part in _parts(value)]
    computed = [source for source in sources if not _is_constant(source)]
    return bool(computed) and all(source.name() in SHAPES or _of_a_shape(source) for source in computed)


def _of_constants(operator: Any) -> bool:
    """Return whether all operands of an operator are constants."""
    sources = [part.get_defining_op() for value in operator.operands_source() for part in _parts(value)]
    return bool(sources) and all(map(_is_constant, sources))


def _is_length(value: Any) -> bool:
    """Return whether a value is an integer or a list of integers, as shapes and values derived from them are."""
    if not value.is_dense_tensor_type():
        return False
    dtype, shape = _type(value)
    return dtype.startswith("int") and len(shape) <= 1


def _is_constant(operator: Any) -> bool:
    return operator.name().removeprefix("pd_op.").removesuffix("_") in CONSTANTS


def _dispatch(operator: Any, cell: Cell) -> Dispatch:
    if list(operator.blocks()):
        name = operator.name().removeprefix("pd_op.")
        raise ValueError(f"the graph holds a branch or loop ({name}), so its operators depend on the tensors' values.")
    sources = zip(operator.get_input_names(), operator.operands_source(), strict=True)
    parts = {key: [part for part in _parts(value) if not _of_a_shape(part.get_defining_op())] for key, value in sources}
    operands = {key: [tensor(*_type(part), cell) for part in values] for key, values in parts.items()}
    results = [tensor(*_type(value), cell) for value in operator.results() if value.is_dense_tensor_type()]
    name, constant = operator.name().removeprefix("pd_op."), _of_constants(operator)
    return Dispatch(name, operands, results, operator.attrs(), constant)


def _parts(value: Any) -> list:
    """Return the tensors of an operand: several of a list; none where it is absent or an attribute made a tensor."""
    if value is None or not value.initialized():
        return []
    maker = value.get_defining_op()
    if maker.name() == "builtin.combine":
        return list(maker.operands_source())
    attribute = maker.name() == "pd_op.full_int_array" or (
        maker.name() == "pd_op.full" and "cpu" in str(maker.attrs()["place"])
    )
    return [] if attribute else [value]


def _type(value: Any) -> tuple[str, list[int]]:
    return str(value.dtype).rpartition(".")[2].lower(), list(value.shape)
