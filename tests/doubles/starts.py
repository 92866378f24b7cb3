"""Records of starts whose figures are known."""

from __future__ import annotations

import random

from records.starts import StartRecord

CELL = "torch/mlp/plain/inference/cpu/fp32/threads=1/batch_size=8"


def planted(strategy: str, first_s: float, steady_ms: float, scatter: float = 0.0, rounds: int = 10, **fields):
    """Records of a strategy whose figures are known, scattered by a seeded generator."""
    noise = random.Random(f"{strategy}/{scatter}")
    return [
        StartRecord(
            schema_version=1,
            run_id="run",
            started_at="2026-01-01T00:00:00Z",
            cell=CELL,
            framework="torch",
            workload="mlp",
            device="cpu",
            dtype="fp32",
            threads=1,
            strategy=strategy,
            round=number,
            place=0,
            status="ok",
            first_answer_s=first_s * (1 + scatter * noise.uniform(-1, 1)),
            steady_ms=steady_ms * (1 + scatter * noise.uniform(-1, 1)),
            imports_s=first_s / 2,
            trace_s=first_s / 2,
            **fields,
        )
        for number in range(rounds)
    ]
