"""Models of one operator repeated, which probe what fusing and dispatching operators costs."""

from __future__ import annotations

import torch
from torch import nn


class FusedCos(nn.Module):
    """`repeat` cosines of a vector."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        for _ in range(self.repeat):
            x = torch.cos(x)  # (N,)
        return {"output": x}


class Stream(nn.Module):
    """A vector added to itself."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        return {"output": x + x}


class OpOverhead(nn.Module):
    """`additions` tiny additions, each on the last one's result."""

    def __init__(self, additions: int):
        super().__init__()
        self.additions = additions
        self.up, self.down = nn.Parameter(torch.empty(1)), nn.Parameter(torch.empty(1))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        terms = (self.up, self.down)  # looked up once: a module's attributes are slow
        for index in range(self.additions):
            x = x + terms[index % 2]  # (N,)
        return {"output": x}


MODELS = {
    "fused-cos": lambda parameters: FusedCos(parameters["repeat"]),
    "stream": lambda parameters: Stream(),
    "op-overhead": lambda parameters: OpOverhead(parameters["additions"]),
}
