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
from frameworks.profile import Event, Profile, reduce

CALLS = "calls"
# On the CPU: operators (aten::addmm, mkldnn::...) and generated kernels. The rest are wrappers, whose time is overhead.
OPERATORS, GENERATED = "::", "cpp_fused"
MICROSECONDS = 1e-6


class Profiler:
    """Made before anything is compiled: Inductor must write its CPU kernels' names into the code it generates."""

    def __init__(self, dumps: Path) -> None:
        torch._inductor.config.cpp.enable_kernel_profile = True

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu
        with profile(activities=activities) as recorded, record_function(CALLS):
            for _ in range(calls):
                synchronize(step())
        trace = folder / "trace.json"
        recorded.export_chrome_trace(str(trace))
        events = recorded.events()
        (whole,) = (e for e in events if e.name == CALLS and e.device_type == DeviceType.CPU)
        kernels = _kernels(events) if on_gpu else _operators(events)
        return reduce(kernels, whole.time_range.elapsed_us() * MICROSECONDS, calls, trace)


def _event(event: Any) -> Event:
    times = event.time_range
    lane = event.device_resource_id if event.device_type == DeviceType.CUDA else event.thread
    name = re.sub(r"^graph_\d+_", "", event.name)  # Inductor numbers the graphs of a process
    return Event(name, times.start * MICROSECONDS, times.elapsed_us() * MICROSECONDS, lane)


def _kernels(events: Any) -> list[Event]:
    found = (e for e in events if e.device_type == DeviceType.CUDA and not e.is_user_annotation)
    # Annotations of the host appear again as ranges of the device.
    return [_event(e) for e in found if e.name != CALLS and not e.name.startswith(("##", "Torch-Compiled"))]


def _operators(events: Any) -> list[Event]:
    return [_event(e) for e in events if OPERATORS in e.name or GENERATED in e.name]
