"""Memory of a GPU as JAX's allocator counts it."""

from __future__ import annotations

import jax

import frameworks.adapter as boundary
from frameworks.jax import runtime


class Meter(boundary.Meter):
    """Memory of a GPU as its allocator counts it."""

    def __init__(self, device: jax.Device):
        self._device, self._ballast = device, None

    def allocated_bytes(self) -> int | None:
        statistics = runtime.memory(self._device)
        return statistics and statistics["bytes_in_use"]

    def reset_peak(self) -> None:
        # JAX cannot. Memory is filled up to the old peak instead, so that whatever a call takes makes a new one.
        self._ballast = runtime.ballast(self._device)

    def peak_bytes(self) -> int | None:
        ballast, self._ballast = self._ballast, None
        return runtime.memory(self._device)["peak_bytes_in_use"] - ballast.bytes if ballast else None
