"""The operators that TensorFlow runs eagerly, and those that a `tf.function`'s graph holds, in one normal form.

The graph is the traced one, before Grappler or XLA transform it; `function` and `function-xla` share it.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import tensorflow as tf

from frameworks.program import Operation, Program
from measurement.cells import Cell

try:  # no part of TensorFlow's API, but the only access to its eager operators
    from tensorflow.python.eager import context, wrap_function
    from tensorflow.python.framework import func_graph, function_def_to_graph, importer, op_callbacks, op_def_registry
    from tensorflow.python.ops import handle_data_util
except ImportError:
    context = wrap_function = func_graph = function_def_to_graph = importer = None
    op_callbacks = op_def_registry = handle_data_util = None

# Values, names of values, and shapes, which Python has in a graph and TensorFlow computes eagerly.
LEFT_OUT = {
    "Const", "Placeholder", "Identity", "IdentityN", "NoOp", "ReadVariableOp", "VarHandleOp", "StopGradient",
    "PreventGradient", "Reshape", "ExpandDims", "Squeeze", "Shape", "ShapeN", "BroadcastGradientArgs", "Fill",
    "ZerosLike", "OnesLike", "Assert",
    # Graphs keep a TensorArray in them, eager mode in a list of Python's.
    "TensorListReserve", "TensorListSetItem", "TensorListGetItem", "TensorListFromTensor", "TensorListElementShape",
    "EmptyTensorList", "TensorListPushBack", "TensorListPopBack", "Unpack",
    # The pieces of a concatenation's gradient: one operator eagerly, one for each piece in graphs.
    "SplitV", "Slice", "ConcatOffset",
    # What a branch hands on to its gradient.
    "OptionalFromValue", "OptionalNone", "OptionalGetValue", "FakeParam",
}  # fmt: skip
# Operators replaced by the functions that these attributes name.
CALLS = {
    "PartitionedCall": ("f",), "StatefulPartitionedCall": ("f",),
    "While": ("cond", "body"), "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"), "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",), "StatelessCase": ("branches",),
}  # fmt: skip
LARGE_CONSTANT = 1000  # bytes above which a constant is listed
SYNONYMS = {"Tile": "BroadcastTo"}  # the gradient of a mean uses the first in graphs, the second eagerly
KINDS = {
    "MatMul": "matmul", "BatchMatMul": "matmul", "BatchMatMulV2": "matmul", "BatchMatMulV3": "matmul",
    "Einsum": "matmul", "_FusedMatMul": "matmul", "Conv2D": "convolution", "DepthwiseConv2dNative": "convolution",
    "Softmax": "softmax", "LogSoftmax": "softmax", "FusedBatchNormV3": "normalisation",
}  # fmt: skip
KEPT = (
    "transpose_a", "transpose_b", "adj_x", "adj_y", "equation", "approximate", "keep_dims", "data_format", "padding",
    "strides", "dilations", "epsilon", "is_training", "num_lower", "num_upper",
)  # fmt: skip
# Products of matrices alone are those of tensors where a graph does not know the rank. Attributes by their names there.
BATCHED = ("BatchMatMulV2", "BatchMatMulV3")
OF_MATRICES = {"transpose_a": "adj_x", "transpose_b": "adj_y"}
STACKS = ("Pack", "TensorListStack")
# The gradient of a concatenation's pieces: one concatenation eagerly. A graph pads each piece, and adds them up.
PADDED = ("Pad", "XlaDynamicUpdateSlice")
GRADIENT = "gradient"  # in the names of a gradient's operators: a model may add what it has padded itself
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod")
# How many are listed: the forward operator saved the others, or they are like the first.
OPERANDS = {"FusedBatchNormGradV3": 5, "AddN": 1}
RANK_OF_SCORES = 4
UNSIZED = (tf.resource, tf.variant)
READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape")  # and write no variable


def executed(call: Callable, inputs: tuple) -> Program:
    """Return the operators that an eager `call(*inputs)` runs.

    Raises NotImplementedError where this version of TensorFlow does not expose it.
    """
    operations: list[Operation] = []

    def keep(name: str, operands: Any, attributes: dict, results: Any) -> None:
        if name.startswith("__"):  # a function called eagerly, under its own name
            operations.extend(_of_graph(_defined(name, operands), ()))
        else:
            operations.extend(_normal(name, operands, attributes, results))

    _watch(call, inputs, keep)
    return operations


def graphs_called(call: Callable, inputs: tuple) -> list[list[tuple[FrameType, int]]]:
    """Return, for each graph that an eager `call(*inputs)` runs, the frames that call it, innermost first."""
    stacks: list[list[tuple[FrameType, int]]] = []

    def keep(name: str, operands: Any, attributes: dict, results: Any) -> None:
        if name.startswith("__"):
            frames = traceback.walk_stack(sys._getframe())
            stacks.append([(frame, line) for frame, line in frames if frame.f_globals is not globals()])

    _watch(call, inputs, keep)
    return stacks


def is_watched() -> bool:
    """Return whether a callback of others follows each operator, as `tf.debugging.enable_check_numerics` has it."""
    return context is not None and bool(context.context().op_callbacks)


def _watch(call: Callable, inputs: tuple, keep: Callable[[str, Any, dict, Any], None]) -> None:
    """Call eagerly, and `keep` each operator that it runs."""
    if op_callbacks is None:
        raise NotImplementedError(f"TensorFlow {tf.__version__} does not expose the operators of its eager mode")

    def on_operator(
        called: Any, operands: Any, attributes: Any, results: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is None:  # else it is added to a graph that is being traced, not run
            pairs = dict(zip(attributes[::2], attributes[1::2], strict=True)) if attributes else {}
            keep(tf.compat.as_str(called), operands, pairs, results)  # text or bytes

    op_callbacks.add_op_callback(on_operator)
    try:
        call(*inputs)
    finally:
        op_callbacks.remove_op_callback(on_operator)


def trips_of(cell: Cell) -> tuple[int, ...]:
    """Return how often the loops of a cell's graph run: over micro-batches, and inside over positions."""
    counts = (int(cell.parameter(name, 1)) for name in ("accumulate", "seq_len"))
    return tuple(count for count in counts if count > 1)


def captured(
    graph: Any,
    inputs: tuple,
    trips: tuple[int, ...] | None = (),
    kept: Sequence[Any] = (),
) -> Program:
    """Return the operators of the graph that a `tf.function` traced for `inputs`, without tracing it again.

    Loops run `trips` times, those inside of loops the next number of times. With None the graph is run, and loops and
    conditions follow `inputs`. Operators that only values in `kept` need are omitted, as TensorFlow does.

    Raises NotImplementedError for a graph that serves every shape, since the comparison consists mostly of shapes.
    """
    if graph.input_signature is not None:
        raise NotImplementedError("a graph with dynamic shapes cannot be compared with a run at one shape")
    concrete = graph.get_concrete_function(*inputs)
    run = _Run.of_function(concrete, inputs) if trips is None else None
    symbolic = [tensor.op for tensor in kept if getattr(tensor, "graph", None) is concrete.graph]
    return list(_of_graph(concrete.graph, trips, run, _dropped(concrete.graph, symbolic)))


def constants(graph: Any) -> list[str]:
    """Return types of the constants of more than 1 kB that a graph holds, those in its loops and branches too."""
    found = []
    for node in graph.get_operations():
        if node.type == "Const":
            (tensor,) = node.outputs
            if tensor.shape.num_elements() * tensor.dtype.size > LARGE_CONSTANT:
                found.append(f"{tensor.dtype.name}[{','.join(map(str, tensor.shape))}]")
        for key in CALLS.get(node.type, ()):
            found += [constant for inner in _functions(node, key) for constant in constants(inner)]
    return found


def _dropped(graph: Any, kept: list[Any]) -> set[str]:
    """Return the names of the operators that the `kept` ones need, and no output or effect of the graph does."""
    return _needed(kept) - _needed_for(graph, graph.outputs)


def _needed_for(graph: Any, outputs: Sequence[Any]) -> set[str]:
    """Return the names of the operators that some outputs of a graph, or its effects, need."""
    effects = [node for node in graph.get_operations() if node.op_def is not None and node.op_def.is_stateful]
    return _needed([*(tensor.op for tensor in outputs), *graph.control_outputs, *effects])


def _needed(nodes: list[Any]) -> set[str]:
    """Return the names of operators and of those that they need."""
    names, pending = set(), list(nodes)
    while pending:
        node = pending.pop()
        if node.name not in names:
            names.add(node.name)
            pending += [*(tensor.op for tensor in node.inputs), *node.control_inputs]
    return names


def _of_graph(
    graph: Any,
    trips: tuple[int, ...] | None,
    run: _Run | None = None,
    dropped: Collection[str] = (),
    outputs: Sequence[Any] | None = None,
    looped: bool = False,
    start: Collection[str] = (),
) -> Iterator[Operation]:
    """Yield the operators of a graph, of which something needs `outputs`, by default all.

    Spare are those that no output needs, such as gradients of a loop's input, and those of constants alone. So are
    sums of gradients in a loop (`looped`), since they begin with zeros. `start` names the inputs that are constants.
    """
    outputs = graph.outputs if outputs is None else outputs
    constant, sizes = _constant(graph, start), run.sizes() if run else {}
    needed, ends = _needed_for(graph, outputs) - constant, {one.name for one in outputs}
    for node in graph.get_operations():
        if node.name in dropped or _is_piece(node):
            continue
        if node.type not in CALLS:
            if any(value.WhichOneof("value") == "func" for value in node.node_def.attr.values()):
                raise NotImplementedError(f"the graph calls a function in {node.type}, whose operators are not listed")
            attributes = {name: node.get_attr(name) for name in node.node_def.attr if not name.startswith("_")}
            spare = node.name not in needed or (looped and node.type == "AddN")
            name = "ConcatV2" if _adds_pieces(node) else node.type
            operands, results = ([sizes.get(one.name, one) for one in given] for given in (node.inputs, node.outputs))
            for operation in _normal(name, operands, attributes, results):
                yield replace(operation, spare=spare)
            continue
        functions, count, inner = _called(node, trips, run)
        loops = "body" in CALLS[node.type]
        read = [one.name in ends or any(reader.name in needed for reader in one.consumers()) for one in node.outputs]
        others, last = _outputs(functions, {place for place, is_read in enumerate(read) if is_read}, loops)
        inside = trips[1:] if loops and trips else trips
        for trip in range(count):
            for function, some in zip(functions, last if trip == count - 1 else others, strict=True):
                begin = _of_inputs(node, function, constant) if loops and trip == 0 else ()
                yield from _of_graph(function, inside, inner, (), some, looped or loops, begin)
        if loops:  # the condition that ends it
            yield from _of_graph(functions[0], inside, inner, looped=True)


def _constant(graph: Any, start: Collection[str]) -> set[str]:
    """Return the names of the operators that compute with constants alone, which come after these.

    From a loop's `start` also those whose floating-point operands are constants: a mask of zeros that are a gradient.
    """
    found = set(start)
    for node in graph.get_operations():
        operands = [one for one in node.inputs if one.dtype.is_floating] if start else []
        names = [one.op.name for one in operands or node.inputs]
        drawn = node.op_def is None or node.op_def.is_stateful
        if node.type == "Const" or (names and not drawn and found.issuperset(names)):
            found.add(node.name)
    return found


def _of_inputs(node: Any, function: Any, constant: Collection[str]) -> set[str]:
    """Return the names of a function's inputs for which the calling node has constants."""
    pairs = zip(node.inputs, function.inputs, strict=True)
    return {inside.op.name for outside, inside in pairs if outside.op.name in constant}


def _adds_pieces(node: Any) -> bool:
    return node.type == "AddN" and all(one.op.type in PADDED and GRADIENT in one.op.name for one in node.inputs)


def _is_piece(node: Any) -> bool:
    """Return whether an operator makes a piece of a concatenation that only their sum reads."""
    readers = node.outputs[0].consumers() if node.type in PADDED else []
    return bool(readers) and all(map(_adds_pieces, readers))


def _called(node: Any, trips: tuple[int, ...] | None, run: _Run | None) -> tuple[list[Any], int, _Run | None]:
    """Return the functions that a node calls, how often, and their run."""
    called = CALLS[node.type]
    functions = [function for key in called for function in _functions(node, key)]
    if trips is not None:
        return functions, trips[0] if "body" in called and trips else 1, None
    if run is None:
        raise NotImplementedError("the graph has a loop, a condition or a function in a loop")
    if "body" in called:
        return functions, int(run.value(node.outputs[0])), None
    function = functions[_branch(node, run)]
    return [function], 1, run.inside(function, node.inputs[len(node.inputs) - len(function.inputs) :])


def _outputs(functions: list[Any], places: set[int], loops: bool) -> tuple[list[Any], list[Any]]:
    """Return the outputs of each function that something needs, in every trip of a loop but the last, and in that.

    `places` are those that the calling graph needs. A loop needs others for its condition and for later trips.
    """
    if not loops:
        each = [[function.outputs[place] for place in sorted(places)] for function in functions]
        return each, each
    condition, body = functions
    last = places | _read(condition, condition.outputs)
    others = last
    while (more := others | _read(body, [body.outputs[place] for place in others])) != others:
        others = more
    kept = [[condition.outputs, [body.outputs[place] for place in sorted(some)]] for some in (others, last)]
    return kept[0], kept[1]


def _read(graph: Any, outputs: Sequence[Any]) -> set[int]:
    """Return the places of the inputs that some outputs of a function need."""
    needed = _needed_for(graph, outputs)
    return {place for place, one in enumerate(graph.inputs) if one.op.name in needed}


@dataclass
class _Run:
    """A graph and its inputs, to compute its tensors: iterations of loops, conditions of branches, open sizes."""

    graph: Any
    feeds: list[Any]
    given: list[Any]

    @classmethod
    def of_function(cls, concrete: Any, inputs: tuple) -> _Run:
        """Return the run of a traced function on its inputs."""
        given = concrete.function_type.unpack_inputs(concrete.function_type.bind(*inputs))
        captured = {id(inside) for _, inside in concrete.graph.captures}
        feeds = [tensor for tensor in concrete.graph.inputs if id(tensor) not in captured]
        return cls(concrete.graph, feeds, given[: len(feeds)])

    def inside(self, graph: Any, inputs: Sequence[Any]) -> _Run:
        """Return the run of the graph of a function that a node of this one calls."""
        graph.structured_input_signature = None  # a definition's is none that TensorFlow can call
        return _Run(graph, list(graph.inputs), self._computed(list(inputs)))

    def sizes(self) -> dict[str, tf.TensorSpec]:
        """Return the tensors whose sizes the graph leaves open, by name, with those of the run."""
        tensors = [one for node in self.graph.get_operations() for one in node.outputs]
        left_open = [one for one in tensors if one.dtype not in UNSIZED and not one.shape.is_fully_defined()]
        feeds = {id(feed): value.shape for feed, value in zip(self.feeds, self.given, strict=True)}
        others = [one for one in left_open if id(one) not in feeds]
        # Shapes alone are returned, so that each tensor is freed after its last use, as in a call.
        found = self._run(others, lambda one: tf.shape(one, tf.int64)) if others else []
        feeds |= {id(one): size.numpy().tolist() for one, size in zip(others, found, strict=True)}
        return {one.name: tf.TensorSpec(feeds[id(one)], one.dtype) for one in left_open}

    def value(self, tensor: Any) -> Any:
        """Return a tensor of the graph, computed from the run's inputs, as a NumPy array."""
        return self._computed([tensor])[0].numpy()

    def _computed(self, tensors: list[Any]) -> list[Any]:
        fed = {id(feed): value for feed, value in zip(self.feeds, self.given, strict=True)}
        wanted = list({id(tensor): tensor for tensor in tensors if id(tensor) not in fed}.values())
        if wanted:
            fed |= {id(tensor): value for tensor, value in zip(wanted, self._run(wanted), strict=True)}
        return [fed[id(tensor)] for tensor in tensors]

    def _run(self, tensors: list[Any], of: Callable[[Any], Any] = lambda one: one) -> list[Any]:
        """Compute each tensor that is no feed, and `of` of it; put back the variables that the run writes."""
        function = wrap_function.WrappedFunction(self.graph, variable_holder=wrap_function.VariableHolder())
        pruned = function.prune(self.feeds, tensors)
        with _restored(pruned.graph, self.given):
            return tf.function(lambda: [of(one) for one in pruned(*self.given)], autograph=False)()


@contextlib.contextmanager
def _restored(graph: Any, given: Sequence[Any]) -> Iterator[None]:
    """Put back, at the end, the values of variables that a graph's operators may write; `given` has some of them."""
    handles = {id(inside): outside for outside, inside in graph.captures}
    handles |= {id(inside): outside for inside, outside in zip(graph.inputs, given, strict=False)}
    written = {
        id(one): handles[id(one)]
        for node in graph.get_operations()
        if node.type not in READS
        for one in node.inputs
        if one.dtype == tf.resource and id(one) in handles
    }
    first = []
    for handle in written.values():
        data = None if tf.is_symbolic_tensor(handle) else handle_data_util.get_handle_data(handle)
        if data is not None and data.is_set and tf.raw_ops.VarIsInitializedOp(resource=handle):
            kind = data.shape_and_type[0].dtype
            first.append((handle, tf.identity(tf.raw_ops.ReadVariableOp(resource=handle, dtype=kind))))
    try:
        yield
    finally:
        for handle, value in first:
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _branch(node: Any, run: _Run) -> int:
    """Return the index of the function that a node calls: by a truth value, or by a number, by default the last."""
    if len(CALLS[node.type]) == 2:
        return 0 if run.value(node.inputs[0]) else 1
    if CALLS[node.type] != ("branches",):
        return 0
    value, count = int(run.value(node.inputs[0])), len(node.get_attr("branches"))
    return value if 0 <= value < count else count - 1


def _functions(node: Any, key: str) -> list[Any]:
    """Return the graphs of functions that a node calls: as traced, or from their definitions, which contain less."""
    if traced := getattr(node, f"_{key}_graph", None):
        return [traced]
    operands, names = node.inputs[1 if "branch" in key else 0 :], node.get_attr(key)
    return [_defined(one.name, operands) for one in (names if isinstance(names, list) else [names])]


def _defined(name: str, operands: Sequence) -> Any:
    """Return the graph of a defined function, with the shapes of its operands, and of variables among these."""
    definition = context.context().get_function_def(name)
    written, names = function_def_to_graph.function_def_to_graph_def(definition, [x.shape for x in operands])
    for node, operand in zip(written.node, operands, strict=False):  # the first nodes are the inputs
        data = handle_data_util.get_handle_data(operand) if operand.dtype == tf.resource else None
        if data is not None and len(data.shape_and_type) == 1:  # else the handle's own shape is all that it has
            node.op = "VarHandleOp"
            node.attr.clear()
            node.attr["dtype"].type = data.shape_and_type[0].dtype
            node.attr["shape"].shape.CopyFrom(data.shape_and_type[0].shape)
    graph = func_graph.FuncGraph(name)
    with graph.as_default():
        importer.import_graph_def_for_function(written, name="")
    signature = definition.signature
    graph.inputs = [graph.get_tensor_by_name(names[one.name]) for one in signature.input_arg]
    graph.outputs = [graph.get_tensor_by_name(names[definition.ret[one.name]]) for one in signature.output_arg]
    graph.control_outputs = [graph.get_operation_by_name(name) for name in definition.control_ret.values()]
    return graph


def _normal(name: str, operands: Sequence, attributes: dict, results: Sequence) -> Iterator[Operation]:
    """Yield an operator in normal form: itself, none, or a sum of several as one for each addition."""
    if name == "Cast" and operands[0].dtype == results[0].dtype:
        return
    left_out = name in LEFT_OUT or _is_row(name, operands, results) or _of_nothing(name, operands, results)
    if not left_out and not _of_shapes(operands, results):
        count = len(operands) - 1 if name == "AddN" else 1
        yield from [_operation(name, operands, attributes, results)] * count


def _of_shapes(operands: Sequence, results: Sequence) -> bool:
    """Return whether it computes with single numbers, or lists of whole ones: axes, lengths, micro-batches."""
    tensors = [tensor for tensor in (*operands, *results) if tensor.dtype != tf.resource]
    return bool(tensors) and all(
        tensor.shape.rank == 0 or (tensor.shape.rank == 1 and tensor.dtype.is_integer) for tensor in tensors
    )


def _is_row(name: str, operands: Sequence, results: Sequence) -> bool:
    """Return whether it takes an index of the first axis, as a loop over a tensor does, in graphs from a TensorList."""
    sizes = operands[0].shape if name == "StridedSlice" else None
    return sizes is not None and bool(sizes.rank) and sizes[1:].as_list() == results[0].shape.as_list()


def _of_nothing(name: str, operands: Sequence, results: Sequence) -> bool:
    """Return whether it sums over no axes, or over axes of length one, as gradients of broadcasting in eager calls."""
    count = operands[0].shape.num_elements() if name in REDUCTIONS else None
    return count is not None and count == results[0].shape.num_elements()


def _operation(name: str, operands: Sequence, attributes: dict, results: Sequence) -> Operation:
    if name in BATCHED and {one.shape.rank for one in operands} == {2}:
        name, attributes = "MatMul", {key: attributes[other] for key, other in OF_MATRICES.items()}
    mask = _mask(name, operands)
    kind, arguments = KINDS.get(name, ""), {}
    if mask is not None:
        kind, arguments = "attention", {"mask": _type(mask)}
    if name == "Cast":
        kind = "cast" if operands[0].dtype.is_floating and results[0].dtype.is_floating else ""
        arguments = {"to": results[0].dtype.name}
    if name in STACKS:
        return Operation("pack", arguments={"result": _type(results[0])})
    if name in ("ConcatV2", *PADDED):
        return Operation("concatv2", arguments={"result": _type(results[0])})
    if name in REDUCTIONS:  # the result shows the axes, whose list may name more of length one
        operands, arguments = operands[:1], {"result": _type(results[0])}
    operands = operands[: OPERANDS.get(name)]
    arguments |= {f"operand {index}": _type(x) for index, x in enumerate(operands)}
    arguments |= {key: _text(name, key, attributes[key]) for key in KEPT if key in attributes}
    return Operation(SYNONYMS.get(name, name).lower(), kind, arguments)


def _mask(name: str, operands: Sequence) -> Any | None:
    """Return the operand that masks scores (B, heads, S, S): a predicate, or a number added for all heads or queries.

    None for other operators. It decides which attention kernels can be used, so it counts as attention.
    """
    scores = [x for x in operands if x.shape.rank == RANK_OF_SCORES and x.dtype.is_floating]
    if not scores:
        return None
    if name == "SelectV2":
        return operands[0]
    if name == "AddV2" and operands[0].shape != operands[1].shape:
        return min(operands, key=lambda x: x.shape.num_elements() or 0)
    return None


def _type(tensor: Any) -> str:
    if tensor.dtype == tf.resource:
        return "variable"
    rank, dtype = tensor.shape.rank, tensor.dtype
    name = "integer" if dtype.is_integer and rank in (0, 1) else dtype.name  # axes, of 32 bits here and 64 there
    return f"{name} {'of any rank' if rank is None else '(' + ','.join(map(str, tensor.shape)) + ')'}"


def _text(name: str, key: str, value: Any) -> str:
    if value is None:  # eager calls omit it where it is the operator's default
        attribute = next(a for a in op_def_registry.get(name).attr if a.name == key)
        value = getattr(attribute.default_value, attribute.default_value.WhichOneof("value"))
    if isinstance(value, tuple):  # a graph holds lists
        value = list(value)
    if isinstance(value, float):  # a graph holds float32
        return f"{value:.6g}"
    return value.decode() if isinstance(value, bytes) else str(value)
