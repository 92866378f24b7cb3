"""`tf.profiler`: operators of eager mode and of graphs, XLA's kernels, CUDA kernels on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from frameworks.adapter import Step
from frameworks.traces import hlo, xplane
from frameworks.traces import profile as boundary
from frameworks.traces.profile import Profile, reduce


class Profiler(boundary.Profiler):
    """Reads the profile that TensorFlow writes. `dumps` is where XLA writes the modules it compiles."""

    # A graph's executor stops tracing operators that it has found to be cheap: some thousand calls later it shows none.
    before_timing = True

    def __init__(self, dumps: Path) -> None:
        self._dumps = dumps

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
        tf.profiler.experimental.start(str(folder), options=options)
        try:
            with tf.profiler.experimental.Trace(xplane.CALLS):
                for _ in range(calls):
                    synchronize(step())
        finally:
            tf.profiler.experimental.stop()
        (written,) = folder.rglob("*.xplane.pb")
        rows = list(_rows(written))
        return reduce(xplane.events(rows, hlo.read(self._dumps)), xplane.wall_s(rows), calls, written)


def _rows(path: Path) -> Iterator[xplane.Row]:
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    for plane in space.planes:
        kinds = {number: kind.name for number, kind in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                start_ns = line.timestamp_ns + event.offset_ps / 1e3
                stats = {kinds[stat.metadata_id]: _value(stat, kinds) for stat in event.stats}
                name = plane.event_metadata[event.metadata_id].name
                yield xplane.Row(plane.name, line.name, name, start_ns, event.duration_ps / 1e3, stats)


def _value(stat: Any, kinds: dict[int, str]) -> object:
    which = stat.WhichOneof("value")
    return kinds.get(stat.ref_value) if which == "ref_value" else getattr(stat, which) if which else None
