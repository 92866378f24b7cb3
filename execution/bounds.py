"""How much a graph can gain, before any is compiled: from a profile of eager mode in a separate process.

A profiler may stay attached to its process and slow later calls, so no figure of a record comes from that process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from execution.launcher import Launcher
from launchers import local
from measurement import protocol
from measurement.cells import Cell
from measurement.peaks import Peaks, least_seconds
from measurement.protocol import PROFILE, Failed, Hello, Profiled, ProtocolError
from plan.plan import Group
from records.costs import known_cost
from reports.numbers import text_of


def answers(launcher: Launcher, groups: Sequence[Group]) -> Iterator[tuple[Cell, Profiled | Failed, str | None]]:
    """Yield each eager cell with its profile or failure, and the device's name. Raises SlotFailure."""
    left = {group.cells[0].id: group.cells[0] for group in groups}
    folder = launcher.run.new_process_folder()
    start = launcher.start_of(groups[0].cells[0], folder, folder / "cache")
    device_name, reason = None, "The worker ended without a report."
    try:
        for message in map(protocol.message, launcher.messages(start, launcher.job(PROFILE, groups, folder))):
            if isinstance(message, Hello):
                device_name = message.effective.device_name
            elif isinstance(message, Profiled | Failed) and message.cell in left:
                yield left.pop(message.cell), message, device_name
    except local.SlotFailure:
        raise
    except (local.WorkerFailure, ProtocolError) as error:
        reason = str(error)
    for cell in left.values():
        yield cell, Failed(cell.id, "error", reason), device_name


def sentence(cell: Cell, answer: Profiled | Failed, device_name: str | None, peaks: Peaks | None) -> str:
    """Return a sentence for the terminal on the bounds from a profile, or on why there are none."""
    if isinstance(answer, Failed):
        return f"no bound: {answer.reason}"
    least_s, cost = None, known_cost(cell, None)
    if cost:
        measured = (peaks.flops_per_s / 1e12, peaks.bytes_per_s / 1e9) if peaks else ()
        least_s = least_seconds(cost.flops, cost.compulsory_bytes, cell.device, device_name, cell.dtype, *measured)
    idle = f"{100 * max(1 - answer.busy_s / answer.latency_s, 0.0):.0f} %"
    most = _times(answer.latency_s, answer.busy_s)
    replayed = f"the GPU is idle for {idle} of a call, so replaying these kernels brings at most {most}"
    if not least_s:
        return replayed
    return f"{replayed}; no implementation beats {_times(answer.latency_s, least_s)} on this device (roofline)"


def _times(eager_s: float, least_s: float) -> str:
    return f"{text_of(max(eager_s / least_s, 1.0))}×"
