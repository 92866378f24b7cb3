"""Stands in for a GPU's recorder of CUDA graphs on the CPU; only torch's interpreter can import it."""

from __future__ import annotations

import math

import torch
from torch.utils._pytree import tree_flatten, tree_map

from frameworks.torch.modes.cuda_graph import WARM_UP_CALLS, Recording


class Recorder:
    """A replay is the call once more, its results copied into memory that the recording owns.

    As on a GPU nothing is computed during the capture: until the first replay that memory holds NaN. `idle` makes
    replays that do nothing.
    """

    def __init__(self, device: torch.device, idle: bool = False):
        self._idle, self._output = idle, None

    def warm_up(self, call) -> None:
        for _ in range(WARM_UP_CALLS):
            self._output = call()

    def capture(self, call) -> Recording:
        with torch.inference_mode(False):
            owned = tree_map(lambda tensor: torch.full_like(tensor, math.nan), self._output)

        def replay() -> None:
            values = tree_flatten(call())[0]
            with torch.no_grad():
                for memory, value in zip(tree_flatten(owned)[0], values, strict=True):
                    memory.copy_(value)

        return Recording((lambda: None) if self._idle else replay, owned, kernels=None)

    def listed(self, listing):
        return listing()


class Idle(Recorder):
    """Its replays compute nothing."""

    def __init__(self, device: torch.device):
        super().__init__(device, idle=True)
