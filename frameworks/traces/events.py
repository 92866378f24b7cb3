"""A kernel or an operator in a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """A kernel or operator that ran, in seconds from the trace's zero. `lane` is a thread or a stream.

    `operators` are the host's that launched it, the outermost first, where the profiler reports them.
    """

    name: str
    start_s: float
    duration_s: float
    lane: Any = 0
    operators: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s
