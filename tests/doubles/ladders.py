"""A framework with a ladder of five rungs, and raw samples of its modes."""

from __future__ import annotations

import math
import random

from doubles.reported import record

from frameworks.description import Crossing, Framework, Mode, Rung

NAMES = ("eager", "captured", "split", "fused", "replayed")
ADDS = ("op by op", "a graph", "smaller operators", "fusion", "one launch")
DESCRIPTION = Framework(
    name="alpha",
    title="Alpha",
    distributions=(),
    modes=tuple(Mode(name, graph=name != "eager", summary=name, deployed=name != "split") for name in NAMES),
    default_graph=("fused",),
    models={},
    ladders={"cpu": tuple(map(Rung, NAMES, ADDS))},
    crossings={"cpu": Crossing(("launching", "kernels"), "eager", "captured", "fused", "replayed")},
)
TIMES = {"eager": 8.0, "captured": 4.0, "split": 5.0, "fused": 6.0, "replayed": 2.0}  # ms


def named(mode: str) -> str:
    return record("alpha", mode).cell


def samples(times=TIMES, launches=3, rounds=20, noise=0.0, shared=0.0, worker=lambda mode, launch: "w"):
    """Raw samples: every round is slowed for all modes by `shared` and for each by `noise`, as standard deviations."""
    chance = random.Random(1)
    entries = []
    for launch in range(launches):
        together = [chance.gauss(0, shared) for _ in range(rounds)]
        for mode, milliseconds in times.items():
            seconds = [1e-3 * milliseconds * math.exp(x + chance.gauss(0, noise)) for x in together]
            whose = {"cell": named(mode), "launch": launch, "worker": worker(mode, launch)}
            entries.append({**whose, "seconds_per_call": seconds, "host_loop_s": [3e-4] * rounds})
    return entries
