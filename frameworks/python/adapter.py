"""Python's own floats behind the boundary, as a baseline for the cost of frameworks' operators."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from frameworks import adapter, smoke_test
from frameworks.adapter import Effective, Step, Unsupported
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

Values = list[float]


class Adapter(adapter.Adapter):
    """The interpreter: double precision on one CPU, synchronous."""

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return None if device == "cpu" else "Python computes on the CPU only."

    def smoke_test(self, device: str) -> dict[str, Any]:
        left, right = smoke_test.LEFT.tolist(), smoke_test.RIGHT.tolist()
        columns = list(zip(*right, strict=True))
        return {
            "ones": np.array([[1.0] * 4] * 4),
            "sum": np.array([[a + b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]),
            "matmul": np.array([[sum(a * b for a, b in zip(r, c, strict=True)) for c in columns] for r in left]),
            "relu": np.array([[max(a, 0.0) for a in row] for row in left]),
        }

    def configure(self, cell: Cell) -> Effective:
        if cell.dtype != "fp32":
            raise Unsupported(f"Python has no {cell.dtype}; its only floating-point type is measured as fp32.")
        settings = {"implementation": platform.python_implementation(), "arithmetic": "float64"}
        return Effective(threads=1, device_name=platform.processor() or None, settings=settings)

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        up, down = (float(weights[name][0]) for name in ("up", "down"))
        call = partial(additions, int(cell.parameter("additions")), up, down)
        return Step(call, [self.place(cell, arrays) for arrays in inputs])

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        return (arrays["x"].tolist(),)

    def synchronize(self, output: Any) -> None:
        return None

    def to_numpy(self, output: Any) -> Arrays:
        return {"output": np.array(output, np.float32)}


def additions(count: int, up: float, down: float, values: Values) -> Values:
    """Add `up` and `down` in turn, `count` additions for each value; two per iteration, to reduce the loop's share."""
    results = []
    for x in values:
        for _ in range(count // 2):
            x = x + up
            x = x + down
        results.append(x + up if count % 2 else x)
    return results
