"""`paddle.profiler`: CUDA kernels on a GPU, operators on the CPU, in eager mode, to_static and the predictor alike."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paddle
from paddle import profiler

from frameworks.adapter import Step
from frameworks.traces import profile as boundary
from frameworks.traces.events import Event
from frameworks.traces.profile import Profile, reduce

CALLS = "calls"
OPERATORS, KERNELS = ("Operator",), ("Kernel", "Memcpy", "Memset")
MICROSECONDS = 1e-6


class Profiler(boundary.Profiler):
    """Reads the Chrome trace that Paddle writes; its own summary is text."""

    def __init__(self, dumps: Path) -> None:
        pass

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        on_gpu = paddle.get_device() != "cpu"
        targets = [profiler.ProfilerTarget.CPU] + [profiler.ProfilerTarget.GPU] * on_gpu
        recorder = profiler.Profiler(targets=targets, on_trace_ready=lambda recorder: None)  # no file of its own
        recorder.start()
        with profiler.RecordEvent(CALLS):
            for _ in range(calls):
                synchronize(step())
        recorder.stop()
        trace = folder / "trace.json"
        recorder.export(str(trace), format="json")
        del recorder
        gc.collect()  # a process has one profiler at a time
        entries = [entry for entry in json.loads(trace.read_text())["traceEvents"] if "dur" in entry]
        (whole,) = (entry for entry in entries if _name(entry) == CALLS)
        categories = KERNELS if on_gpu else OPERATORS
        events = [_event(entry, whole["ts"]) for entry in entries if entry["cat"] in categories]
        return reduce(events, whole["dur"] * MICROSECONDS, calls, trace)


def _name(entry: dict) -> str:
    """Return one name, whether eager mode (`matmul dygraph`) or a graph (`pd_op.matmul_`) ran the operator."""
    name = re.sub(r"\[[\d.]+ [mun]?s\]$", "", entry["name"])  # the duration is a part of the name there
    return re.sub(r"^pd_op\.(\w+?)_?$|^(\w+) dygraph$", lambda match: match[1] or match[2], name)


def _event(entry: dict, zero: int) -> Event:
    """Return an event of the trace, in seconds from `zero`, which is in microseconds: Paddle counts from 1970."""
    lane = (entry.get("pid"), entry.get("tid"))
    return Event(_name(entry), (entry["ts"] - zero) * MICROSECONDS, entry["dur"] * MICROSECONDS, lane)
