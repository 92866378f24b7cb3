"""Small ONNX graphs and what another session might execute in their place: prints each pair's difference as JSON.

Run in ONNX Runtime's environment: `python tests/doubles/onnx_graphs.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from frameworks.onnxruntime.inspect.program import captured
from frameworks.program import difference

node = helper.make_node
WRITTEN = [
    node("MatMul", ["x", "w"], ["a"]),
    node("Add", ["a", "b"], ["c"]),
    node("Add", ["c", "x"], ["d"]),
    node("LayerNormalization", ["d", "scale", "b"], ["e"], epsilon=1e-12),
    node("Gelu", ["e"], ["f"]),
    node("Transpose", ["f"], ["g"], perm=[1, 0]),
    node("MatMul", ["f", "g"], ["h"]),
    node("Mul", ["h", "half"], ["i"]),
    node("Softmax", ["i"], ["y"]),
]
HEAD = [node("Gemm", ["x", "w", "b"], ["c"])]
NORM = [node("SkipLayerNormalization", ["c", "x", "scale", "b"], ["e"], epsilon=1e-12)]
TAIL = [node("Gelu", ["e"], ["f"]), node("FusedMatMul", ["f", "f"], ["h"], transB=1, alpha=0.5)]
LAST = [node("Softmax", ["h"], ["y"])]
EXECUTED = {
    "fused": HEAD + NORM + TAIL + LAST,
    "biased skip": [
        node("MatMul", ["x", "w"], ["a"]),
        node("SkipLayerNormalization", ["a", "x", "scale", "b", "b"], ["e"], epsilon=1e-12),
        *(TAIL + LAST),
    ],
    "other order of nodes": [*(TAIL + LAST), *(HEAD + NORM)],
    "computed of constants": [node("Add", ["b", "b"], ["spare"]), *(HEAD + NORM + TAIL + LAST)],
    "no bias": [node("Gemm", ["x", "w"], ["c"]), *(NORM + TAIL + LAST)],
    "another epsilon": [*HEAD, node("SkipLayerNormalization", NORM[0].input, ["e"], epsilon=1e-5), *(TAIL + LAST)],
    "tanh": [*(HEAD + NORM), node("FastGelu", ["e"], ["f"]), TAIL[1], *LAST],
    "unscaled": [*(HEAD + NORM), TAIL[0], node("FusedMatMul", ["f", "f"], ["h"], transB=1), *LAST],
    "activation": [*(HEAD + NORM + TAIL), node("FusedGemm", ["h", "w", "b"], ["z"], activation="Tanh"), *LAST],
    "fused attention": [*HEAD, *NORM, node("MultiHeadAttention", ["e", "e", "e"], ["y"])],
}


def model(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    constants = [helper.make_tensor(name, TensorProto.FLOAT, [1], [1.0]) for name in ("w", "b", "scale", "half")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y", "z")]
    outputs = values[1:] if any("z" in n.output for n in nodes) else values[1:2]
    return helper.make_model(helper.make_graph(nodes, "graph", values[:1], outputs, constants))


if __name__ == "__main__":
    eager = captured(model(WRITTEN).graph)
    print(json.dumps({name: difference(eager, captured(model(nodes).graph)) for name, nodes in EXECUTED.items()}))
