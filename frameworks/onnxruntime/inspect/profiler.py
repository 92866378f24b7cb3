"""ONNX Runtime's own profiler: the time of every node's kernel, as a session writes it at its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frameworks.adapter import Step
from frameworks.traces import profile as boundary
from frameworks.traces.profile import Event, Profile, reduce

CALLS_BEFORE = 3
MICROSECONDS = 1e-6
KERNEL = "_kernel_time"
AXES_OF_HEADS = 4  # (B, nh, S, hs)


class Profiler(boundary.Profiler):
    """A session profiles from its opening or never, so a second session like the step's is profiled."""

    def __init__(self, dumps: Path) -> None:
        pass

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        runner, values = step.native
        session = runner.profiled(folder / "trace")
        for _ in range(CALLS_BEFORE + calls):
            runner.called_in(session, values)
        trace = Path(session.end_profiling())
        events = json.loads(trace.read_text())
        runs = [event for event in events if event["cat"] == "Session" and event["name"] == "model_run"][-calls:]
        first = runs[0]["ts"]
        wall_s = (runs[-1]["ts"] + runs[-1]["dur"] - first) * MICROSECONDS
        kernels = [_event(e) for e in events if e["cat"] == "Node" and e["name"].endswith(KERNEL) and e["ts"] >= first]
        return reduce(kernels, wall_s, calls, trace)


def _event(event: dict) -> Event:
    """Return a node's kernel by its operator; a product says whether both sides have a batch, or one is a weight."""
    arguments = event["args"]
    name = arguments["op_name"]
    if "MatMul" in name or "Gemm" in name:
        batched = all(len(next(iter(shape.values()))) == AXES_OF_HEADS for shape in arguments["input_type_shape"][:2])
        name += " (batched)" if batched else " (linear)"
    return Event(name, event["ts"] * MICROSECONDS, event["dur"] * MICROSECONDS, event["tid"])
