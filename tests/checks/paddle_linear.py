"""Operators of linear layers in a build for CUDA, by dtype: `python paddle_linear.py`, in Paddle's environment."""

import json
from unittest import mock

import paddle
from paddle import nn

from frameworks.paddle import device as gpu
from frameworks.paddle.inspect import program as programs
from frameworks.paddle.modes import graphs
from measurement.cells import Cell


def found(dtype: str) -> dict:
    """What the two modes run once the process is configured, and whether the graph's capture is whole."""
    cell = Cell("paddle", "x", "own", "inference", "cpu", dtype, 1, (), "to_static")
    flags, x = gpu.linear_flags(dtype), paddle.rand([2, 4])
    with paddle.no_grad():
        layer = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        eager = programs.executed(layer, (x,), cell)
        static, capture, operators = graphs.to_static(layer, cell, None)
        static(x)
    names = {mode: [one.name for one in listed] for mode, listed in (("eager", eager), ("graph", operators()))}
    return {**names, "whole": capture().whole, "flags": paddle.get_flags(flags)}


def main() -> None:
    with mock.patch.object(paddle, "is_compiled_with_cuda", lambda: True):
        print("\n" + json.dumps({dtype: found(dtype) for dtype in ("fp32", "tf32")}))


if __name__ == "__main__":
    main()
