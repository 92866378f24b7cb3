"""The reference behind the boundary: it computes the workload's own reference."""

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


class Adapter(adapter.Adapter):
    """NumPy: float32 on the CPU, synchronous."""

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return None if device == "cpu" else "NumPy runs on the CPU only."

    def smoke_test(self, device: str) -> dict[str, Any]:
        return {
            "ones": np.ones((4, 4), np.float32),
            "sum": smoke_test.LEFT + smoke_test.RIGHT,
            "matmul": smoke_test.LEFT @ smoke_test.RIGHT,
            "relu": np.maximum(smoke_test.LEFT, 0),
        }

    def configure(self, cell: Cell) -> Effective:
        if cell.dtype != "fp32":
            raise Unsupported(f"NumPy has no {cell.dtype} arithmetic.")
        blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        return Effective(threads=None, device_name=platform.processor() or None, settings={"blas": blas.get("name")})

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        parameters = dict(cell.parameters)
        if parameters.get("attention") == "fused":
            raise Unsupported("NumPy has no fused attention operator.")
        resident = {name: np.array(value) for name, value in weights.items()}
        return Step(partial(workload.reference, parameters, resident), [self.place(cell, arrays) for arrays in inputs])

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        return (arrays,)

    def synchronize(self, output: Any) -> None:
        return None

    def to_numpy(self, output: Any) -> Arrays:
        return output
