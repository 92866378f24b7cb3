"""ONNX Runtime behind the boundary: one model's file, opened without the optimizer and with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from frameworks import adapter, smoke_test
from frameworks.adapter import Effective, Step, Unsupported
from frameworks.onnxruntime.models import plain
from frameworks.onnxruntime.sessions import BASELINE, PROVIDER, Model, Runner, Value
from frameworks.onnxruntime.writer import OPSET, Writer
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

WEIGHTS = (
    "initializers outside of the file, one copy in memory for both modes: constants to the optimizer, and both modes' "
    "matrix products pack them when a session is opened"
)


class Adapter(adapter.Adapter):
    """ONNX Runtime's CPU provider, float32. A call runs `run_with_ort_values`; its outputs are new ones every time."""

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, Model] = {}  # by group: its modes open one model, with one copy of the weights

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return None if device == "cpu" else "ONNX Runtime is measured on the CPU only: choose DEVICE=cpu."

    def smoke_test(self, device: str) -> dict[str, Any]:
        graph = Writer()
        results = {
            "ones": graph.op("Div", "left_like", "left_like"),
            "sum": graph.op("Add", "left", "right"),
            "matmul": graph.op("MatMul", "left", "right"),
            "relu": graph.op("Relu", "left"),
        }
        operands = {"left": smoke_test.LEFT, "right": smoke_test.RIGHT, "left_like": smoke_test.RIGHT}
        inputs = {name: (array.dtype, array.shape) for name, array in operands.items()}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # no pool before `configure` makes the one
        session = onnxruntime.InferenceSession(graph.model(inputs, results), options, providers=[PROVIDER])
        return dict(zip(results, session.run(list(results), operands), strict=True))

    def configure(self, cell: Cell) -> Effective:
        if cell.dtype != "fp32":
            raise Unsupported(f"The suite writes ONNX models in float32 only, not in {cell.dtype}.")
        before = len(os.listdir("/proc/self/task"))
        # One pool for all sessions, as in a process with one model: sessions' threads never compete.
        onnxruntime.set_global_thread_pool_sizes(cell.threads, 1)
        started = len(os.listdir("/proc/self/task")) - before
        settings = {
            "operators": f"ONNX {onnx.__version__}, operator set {OPSET}",
            "build": onnxruntime.get_build_info(),
            "execution_mode": "ORT_SEQUENTIAL",
            "inter_op_threads": 1,
            "idle_threads": "spin for a while (ONNX Runtime's default)",
            "flush_denormals": "off (ONNX Runtime's default)",
            "weights": WEIGHTS,
            "affinity": sorted(os.sched_getaffinity(0)),
        }
        return Effective(threads=1 + started, settings=settings)  # the caller works as well

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.parameter("attention") == "fused":
            raise Unsupported(f"ONNX operator set {OPSET} has no attention operator: choose ATTENTION=explicit.")
        if cell.group_id not in self.models:
            self.models[cell.group_id] = _written(workload, cell, weights, inputs[0])
        resident = [self.place(cell, arrays) for arrays in inputs]
        fixed = cell.mode != BASELINE and cell.shapes == "static"
        runner = Runner(self.models[cell.group_id], cell.mode, fixed, resident[0])
        native = (runner, resident[0])
        return Step(runner, resident, runner.capture, program=runner.operations, load=runner.load, native=native)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        # Copies: these arrays may be pages of a file, and a value may share its array's memory.
        return tuple(Value.ortvalue_from_numpy(np.array(array, order="C")) for array in arrays.values())

    def synchronize(self, output: Any) -> None:
        return None  # a call returns when its work is done

    def to_numpy(self, output: Any) -> Arrays:
        return {name: value.numpy() for name, value in output.items()}

    def release(self) -> None:
        self.models.clear()


def _written(workload: Workload, cell: Cell, weights: Arrays, inputs: Arrays) -> Model:
    """Return the cell's model as an ONNX graph, for both modes."""
    graph, parameters = Writer(), dict(cell.parameters)
    outputs = plain.MODELS[workload.family](graph, workload, parameters, weights, *inputs)
    return Model(graph, outputs, inputs, workload.dynamic_axes(parameters))
