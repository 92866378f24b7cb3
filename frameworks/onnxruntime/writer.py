"""An ONNX graph while it is written: operators, constants, and weights that stay outside of the model's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import NodeProto, TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 20, 10  # GELU is one operator from 20 on
WEIGHTS = "weights"  # the file that external tensors name; a session is handed their memory instead


class Weights:
    """Weights in memory that every session of a model uses, under the names that the model's file gives them."""

    def __init__(self) -> None:
        self._values: dict[str, onnxruntime.OrtValue] = {}
        self._arrays: dict[str, np.ndarray] = {}  # whose memory those are

    def add(self, name: str, array: np.ndarray) -> np.ndarray:
        """Keep a copy of `array`, which may be a page of a file, under `name`; returns it."""
        self._arrays[name] = np.array(array, order="C")
        self._values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(self._arrays[name])
        return self._arrays[name]

    def give(self, options: onnxruntime.SessionOptions) -> None:
        """Make a session opened with `options` use them."""
        if self._values:
            options.add_external_initializers(list(self._values), list(self._values.values()))


class Writer:
    """Writes one graph. A tensor is its name; every method that adds an operator returns the name of its result."""

    def __init__(self) -> None:
        self.weights = Weights()
        self._nodes: list = []
        self._initializers: list = []
        self._names: set[str] = set()

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Return the result of an operator with one output."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Return the results of an operator with `count` outputs."""
        outputs = [f"{kind}_{len(self._nodes)}_{index}" for index in range(count)]
        self._nodes.append(helper.make_node(kind, inputs, outputs, f"{kind}_{len(self._nodes)}", **attributes))
        return outputs

    def constant(self, value: Any, dtype: type = np.int64) -> str:
        """Return a small constant inside the model's file: an axis, a shape, a number."""
        name = f"constant_{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def weight(self, name: str, array: np.ndarray) -> str:
        """Return a weight by its canonical name, once however often it is used."""
        if name not in self._names:
            self._names.add(name)
            kept = self.weights.add(name, array)
            tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(kept.dtype), dims=kept.shape)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=WEIGHTS)
            self._initializers.append(tensor)
        return name

    def model(self, inputs: dict[str, tuple[np.dtype, Sequence[int | str]]], outputs: dict[str, str]) -> bytes:
        """Return the model's file. `inputs` have a type and axes, an open axis by its name; `outputs` name tensors."""
        named = {tensor: name for name, tensor in outputs.items()}
        graph = helper.make_graph(
            [_renamed(node, named) for node in self._nodes],
            "model",
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(t), a) for n, (t, a) in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self._initializers,
        )
        operators = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=operators, ir_version=IR_VERSION).SerializeToString()


def _renamed(node: NodeProto, names: dict[str, str]) -> NodeProto:
    """Return the node with some tensors under other names: an operator that renames an output would copy it."""
    renamed = NodeProto()
    renamed.CopyFrom(node)
    renamed.input[:] = [names.get(tensor, tensor) for tensor in node.input]
    renamed.output[:] = [names.get(tensor, tensor) for tensor in node.output]
    return renamed
