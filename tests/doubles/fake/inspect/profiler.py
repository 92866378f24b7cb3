"""A profiler that has seen two streams of a GPU at work at once: 3 µs of each call, whatever the call does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frameworks.adapter import Step
from frameworks.traces import profile as boundary
from frameworks.traces.events import Event
from frameworks.traces.profile import Profile, reduce

MICROSECOND = 1e-6
STREAMS = ((0.0, 2.0, 7), (1.0, 3.0, 8), (1.5, 2.0, 7))  # start and end of kernels of a call, and their stream


class Profiler(boundary.Profiler):
    """It raises or hangs where `FAKE_PROFILER` says so."""

    def __init__(self, dumps: Path) -> None:
        pass

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        if os.environ.get("FAKE_PROFILER") == "raises":
            raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
        if os.environ.get("FAKE_PROFILER") == "hangs":
            (folder / "begun").touch()
            time.sleep(600)
        events = []
        for call in range(calls):
            synchronize(step())
            times = [(start + 10 * call, end + 10 * call, stream) for start, end, stream in STREAMS]
            events += [Event("kernel", s * MICROSECOND, (e - s) * MICROSECOND, stream) for s, e, stream in times]
        return reduce(events, 10 * calls * MICROSECOND, calls)
