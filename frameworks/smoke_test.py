"""Known operators on known operands: a device whose results differ here is not measured.

Some builds run on a GPU without having kernels for it, raise no error and return zeros; they would appear as the
fastest framework.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from frameworks.adapter import Adapter, Unsupported

# Small whole numbers, so that every result is exact in every dtype.
LEFT = (np.arange(16, dtype=np.float32).reshape(4, 4) % 5) - 2
RIGHT = (np.arange(16, dtype=np.float32).reshape(4, 4) % 3) + 1

EXPECTED = {
    "ones": np.ones((4, 4), np.float32),
    "sum": LEFT + RIGHT,
    "matmul": LEFT @ RIGHT,
    "relu": np.maximum(LEFT, 0),
}


def problem(results: Mapping[str, np.ndarray]) -> str | None:
    """Return a sentence on the first operator with a wrong result; None if all are right."""
    for name, expected in EXPECTED.items():
        got = np.asarray(results.get(name, np.nan), dtype=np.float32)
        if got.shape != expected.shape or not np.array_equal(got, expected):
            return f"the smoke test's '{name}' returned wrong values without an error (e.g. {got.reshape(-1)[:4]})"
    return None


def obstacle(adapter: Adapter, device: str) -> str | None:
    """Run the operators on `device`; return why it cannot be trusted, in at most two sentences, or None."""
    try:
        wrong = problem(adapter.smoke_test(device))
    except Unsupported as refusal:
        return str(refusal).rstrip(".")
    return wrong and f"{wrong}: this build does not work on {device}"
