"""Records of streams whose figures are known."""

from __future__ import annotations

import random

from execution.streams import figures
from measurement.streams import STRATEGIES, Stream, StreamJob
from records.streams import StreamRecord

CELL = "torch/bert-tiny/plain/inference/cpu/fp32/threads=1/batch_size=1,seq_len=512"


def stream(calls_s, **changes):
    """What a process reports of calls of so many seconds."""
    given = {
        "setup_s": 0.0,
        "compilations": 1,
        "reported": 1,
        "recorded": 0,
        "compile_s": 0.5,
        "fell_back": None,
        "parity": 1e-6,
        "tolerance": 1e-4,
        "right": True,
        "memory_before_bytes": 100,
        "memory_bytes": 150,
    }
    return Stream(calls_s=tuple(calls_s), **{**given, **changes})


def planted(strategy, first_s, call_s, scatter=0.0, rounds=5, calls=100, caches="cold", unseen=0, **changes):
    """Records of a strategy whose first call compiles, and whose figures are known."""
    noise = random.Random(f"{strategy}/{scatter}")
    found = []
    for number in range(rounds):
        factor = 1 + scatter * noise.uniform(-1, 1)
        seconds = [factor * (first_s if call == 0 else call_s) for call in range(calls)]
        padded = (16 if STRATEGIES[strategy].pads else 10,) * calls
        job = StreamJob(strategy, (10,) * calls, padded, (1,) * calls, 10, 16)
        found.append(
            StreamRecord(
                schema_version=1,
                run_id="run",
                started_at="2026-01-01T00:00:00Z",
                cell=CELL,
                framework="torch",
                framework_version="1",
                device_name="A processor",
                workload="bert-tiny",
                device="cpu",
                dtype="fp32",
                threads=1,
                lengths="chat",
                clipped=0.6,
                strategy=strategy,
                caches=caches,
                round=number,
                place=0,
                **figures(stream(seconds, **changes), job, unseen),
            )
        )
    return found
