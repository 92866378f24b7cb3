"""Models of one operator repeated, which probe what fusing and dispatching operators costs."""

from __future__ import annotations

import paddle
from paddle import nn


class FusedCos(nn.Layer):
    """`repeat` cosines of a vector."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat

    def forward(self, x):
        """Map `x` (N,) -> output (N,)."""
        for _ in range(self.repeat):
            x = paddle.cos(x)  # (N,)
        return x


class Stream(nn.Layer):
    """A vector added to itself."""

    def forward(self, x):
        """Map `x` (N,) -> output (N,)."""
        return x + x


class OpOverhead(nn.Layer):
    """`additions` tiny additions, each on the last one's result."""

    def __init__(self, additions: int):
        super().__init__()
        self.additions = additions
        self.up, self.down = self.create_parameter([1]), self.create_parameter([1])

    def forward(self, x):
        """Map `x` (N,) -> output (N,)."""
        terms = (self.up, self.down)  # looked up once: a layer's attributes are slow
        for index in range(self.additions):
            x = x + terms[index % 2]  # (N,)
        return x
