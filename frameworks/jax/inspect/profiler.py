"""`jax.profiler`: the kernels that XLA ran, on a CPU's threads or a GPU's streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

from frameworks.adapter import Step
from frameworks.traces import hlo, xplane
from frameworks.traces import profile as boundary
from frameworks.traces.profile import Profile, reduce


class Profiler(boundary.Profiler):
    """Reads the profile that JAX writes. `dumps` is where XLA writes the modules it compiles."""

    def __init__(self, dumps: Path) -> None:
        self._dumps = dumps

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # an event for every Python call would be most of an eager call's time
        jax.profiler.start_trace(str(folder), profiler_options=options)
        try:
            with jax.profiler.TraceAnnotation(xplane.CALLS):
                for _ in range(calls):
                    synchronize(step())
        finally:
            jax.profiler.stop_trace()
        (written,) = folder.rglob("*.xplane.pb")
        rows = list(_rows(written))
        trace = next(folder.rglob("*.trace.json.gz"), written)
        return reduce(xplane.events(rows, hlo.read(self._dumps)), xplane.wall_s(rows), calls, trace)


def _rows(path: Path) -> Iterator[xplane.Row]:
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                yield xplane.Row(plane.name, line.name, event.name, event.start_ns, event.duration_ns, stats)
