"""Models of one operator repeated, which probe what fusing and dispatching operators costs."""

from __future__ import annotations

import tensorflow as tf

from workloads.spec import Arrays


class FusedCos(tf.Module):
    """`repeat` cosines of a vector."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in range(self.repeat):
            x = tf.cos(x)  # (N,)
        return {"output": x}


class Stream(tf.Module):
    """A vector added to itself."""

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"output": x + x}  # (N,)


class OpOverhead(tf.Module):
    """`additions` tiny additions, each on the last one's result."""

    def __init__(self, weights: Arrays, additions: int, dtype: tf.DType):
        super().__init__()
        self.additions = additions
        self.up, self.down = (tf.Variable(weights[name], dtype=dtype) for name in ("up", "down"))

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        terms = (self.up.read_value(), self.down.read_value())  # once: reading a variable is an operator of its own
        for index in range(self.additions):
            x = x + terms[index % 2]  # (N,)
        return {"output": x}


MODELS = {
    "fused-cos": lambda workload, cell, weights, types: FusedCos(cell.parameter("repeat")),
    "stream": lambda workload, cell, weights, types: Stream(),
    "op-overhead": lambda workload, cell, weights, types: OpOverhead(
        weights, cell.parameter("additions"), types.variables
    ),
}
