"""The operators of an ONNX graph as a session executes it, in one normal form for both modes.

Both lists are read from the graph that a session writes: eager mode's holds the model's own nodes, the optimized one's
the nodes that replaced them. A fused node stands for its parts. So two lists differ where the optimizer changed the
computation, or in a node that this table lacks.
"""

from __future__ import annotations

import onnx

from frameworks.program import Operation

# Nodes that rename or move values, which the optimizer moves or merges into products, and nodes of shapes.
LEFT_OUT = ("Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Shape", "Split", "Cast", "Slice")
# Fused node -> its parts. `?` follows a part that is there with its input alone: (part, number of the input).
PARTS: dict[str, tuple[str | tuple[str, int], ...]] = {
    "SkipLayerNormalization": (("Add", 4), "Add", "LayerNormalization"),  # a bias, then the residual
    "BiasGelu": ("Add", "Gelu"),
    "QuickGelu": ("Sigmoid", "Mul"),
    "BiasSoftmax": ("Add", "Softmax"),
    "Gemm": ("MatMul", ("Add", 2)),
    "FusedGemm": ("MatMul", ("Add", 2)),
    "FusedMatMul": ("MatMul",),
}
KINDS = {
    "MatMul": "matmul",
    "Softmax": "softmax",
    "LayerNormalization": "normalisation",
    "Attention": "attention",
    "MultiHeadAttention": "attention",
}


def captured(graph: onnx.GraphProto) -> list[Operation]:
    """Return the operators of `graph`; a function of constants alone is a constant.

    Their order is that in which the outputs need them: a file's nodes may have any valid order.
    """
    constant = {tensor.name for tensor in graph.initializer}
    listed = []
    for node in _ordered(graph):
        if node.op_type == "Shape" or all(name in constant for name in node.input if name):
            constant.update(node.output)
        elif node.op_type not in LEFT_OUT:
            listed += _parts(node)
    return listed


def _ordered(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return each node after those that it needs, which come in the order of its inputs."""
    makers = {output: node for node in graph.node for output in node.output}
    ordered, done = [], set()
    waiting = [makers[value.name] for value in reversed(graph.output) if value.name in makers]
    while waiting:
        node = waiting[-1]
        needed = [
            makers[name] for name in reversed(node.input) if name in makers and makers[name].output[0] not in done
        ]
        if needed and node.output[0] not in done:
            waiting += needed
            continue
        waiting.pop()
        if node.output[0] not in done:
            done.add(node.output[0])
            ordered.append(node)
    return ordered


def _parts(node: onnx.NodeProto) -> list[Operation]:
    """Return one node in normal form; the attributes of a fused one determine its further parts."""
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    parts = []
    for part in PARTS.get(node.op_type, (node.op_type,)):
        name, needs = (part, None) if isinstance(part, str) else part
        if needs is None or (len(node.input) > needs and node.input[needs]):
            parts.append(name)
    if node.op_type in ("FusedMatMul", "FusedGemm") and attributes.get("alpha", 1.0) != 1.0:
        parts.append("Mul")  # scores by the root of their width
    if activation := attributes.get("activation", b"").decode():
        parts.append(activation)
    return [Operation(name.lower(), KINDS.get(name, ""), _arguments(name, attributes)) for name in parts]


def _arguments(name: str, attributes: dict) -> dict[str, str]:
    """Return the attributes that choose a kernel or another result: of norms and GELUs, those that fused nodes keep."""
    if name == "LayerNormalization":
        return {"epsilon": f"{attributes.get('epsilon', 1e-5):.3g}"}
    if name == "Gelu":
        return {"approximate": attributes.get("approximate", b"none").decode()}
    return {}
