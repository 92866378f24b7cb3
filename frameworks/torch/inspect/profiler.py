"""`torch.profiler`: CUDA kernels on a GPU, operators and Inductor's generated kernels on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from frameworks.adapter import Step
from frameworks.torch.inspect import attention
from frameworks.traces import profile as boundary
from frameworks.traces.events import Event
from frameworks.traces.profile import Profile, reduce, union_s

CALLS = "calls"
# On the CPU: operators (aten::addmm, mkldnn::...) and kernels that Inductor generates, loops and products alike, which
# it names after the graph's number in the process if it counts them. The rest are wrappers, whose time is overhead.
OPERATORS, GENERATED = "::", re.compile(r"^graph_\d+_|^(?=cpp_)")
MICROSECONDS = 1e-6
PROFILED = 4  # calls of several ranks
COLLECTIVES = ("gloo:", "nccl")  # prefixes of these events
ON_CPU = ("gloo:", "aten::", "mkldnn::", "## Call CompiledFxGraph")  # those and computation


class Profiler(boundary.Profiler):
    """Made before anything is compiled: Inductor must write its CPU kernels' names into the code it generates."""

    def __init__(self, dumps: Path) -> None:
        torch._inductor.config.cpp.enable_kernel_profile = True

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        recorded, whole = _recorded(step, synchronize, calls)
        trace = folder / "trace.json"
        recorded.export_chrome_trace(str(trace))
        events = recorded.events()
        kernels = _kernels(events, _links(recorded)) if _on_gpu() else _operators(events)
        return reduce(kernels, whole.time_range.elapsed_us() * MICROSECONDS, calls, trace)

    def attention(self, step: Step, eager: bool) -> list[dict]:
        return attention.described(step, eager)


def communication(step: Step, synchronize: Callable[[Any], None]) -> tuple[float, float, float] | None:
    """Return seconds of a call with a collective in progress, of these without computation, and of the whole call.

    On a GPU both are kernels. On a CPU the collective runs in a thread of gloo's, in parallel with the operators. None
    where no collective is seen.
    """
    recorded, whole = _recorded(step, synchronize, PROFILED, ahead=1)
    events = [e for e in recorded.events() if e.time_range.start >= whole.time_range.start]
    found = _kernels(events, {}) if _on_gpu() else [_event(e) for e in events if e.name.startswith(ON_CPU)]
    collectives = [event for event in found if event.name.startswith(COLLECTIVES)]
    computing = [event for event in found if not event.name.startswith(COLLECTIVES)]
    if not collectives:
        return None
    under_way, seconds = union_s(collectives), whole.time_range.elapsed_us() * MICROSECONDS
    exposed = min(max(union_s(found) - union_s(computing), 0.0), under_way)  # a difference of rounded sums
    return under_way / PROFILED, exposed / PROFILED, seconds / PROFILED


def _on_gpu() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def _recorded(step: Step, synchronize: Callable[[Any], None], calls: int, ahead: int = 0) -> tuple[profile, Any]:
    """Return the record of so many calls after those `ahead`, and the event that spans them."""
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * _on_gpu()
    with profile(activities=activities) as recorded:
        for _ in range(ahead):  # ranks do not start recording at the same time
            synchronize(step())
        with record_function(CALLS):
            for _ in range(calls):
                synchronize(step())
    (whole,) = (e for e in recorded.events() if e.name == CALLS and e.device_type == DeviceType.CPU)
    return recorded, whole


def _event(event: Any, operators: tuple[str, ...] = ()) -> Event:
    times = event.time_range
    lane = event.device_resource_id if event.device_type == DeviceType.CUDA else event.thread
    name = GENERATED.sub("", event.name)
    return Event(name, times.start * MICROSECONDS, times.elapsed_us() * MICROSECONDS, lane, operators)


def _kernels(events: Any, links: dict[int, int]) -> list[Event]:
    """Yield a GPU's kernels with the operators that launched them; `links` maps a launch to its operator's number."""
    launchers = {e.id: e for e in events if e.device_type == DeviceType.CPU and OPERATORS in e.name}
    on_gpu = (e for e in events if e.device_type == DeviceType.CUDA and not e.is_user_annotation)
    # Annotations of the host appear again as ranges of the device.
    kernels = [e for e in on_gpu if e.name != CALLS and not e.name.startswith(("##", "Torch-Compiled"))]
    return [_event(e, _path(launchers.get(links.get(e.id, 0)))) for e in kernels]


def _links(recorded: Any) -> dict[int, int]:
    """Return the host operator's number by the launch's; empty where torch lacks this private API."""
    try:
        events = recorded.profiler.kineto_results.events()
        return {e.correlation_id(): e.linked_correlation_id() for e in events if e.device_type() == DeviceType.CUDA}
    except AttributeError:
        return {}


def _path(event: Any) -> tuple[str, ...]:
    """Return an operator and those around it, the outermost first."""
    names: list[str] = []
    while event is not None:
        names += [event.name] if OPERATORS in event.name else []
        event = event.cpu_parent
    return tuple(reversed(names))


def _operators(events: Any) -> list[Event]:
    return [_event(e) for e in events if OPERATORS in e.name or GENERATED.match(e.name)]
