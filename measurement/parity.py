"""Whether two outputs are the same computation."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np


def largest_error(outputs: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]) -> float:
    """The largest absolute difference over all outputs. Infinite for a missing output, another size, or any NaN.

    Infinite without any reference, too: nothing compared is nothing shown.
    """
    worst = 0.0 if reference else math.inf
    for name, expected in reference.items():
        got = outputs.get(name)
        if got is None or got.shape != expected.shape:
            return math.inf
        difference = float(np.max(np.abs(got.astype(np.float64) - expected.astype(np.float64)), initial=0.0))
        worst = max(worst, math.inf if math.isnan(difference) else difference)
    return worst
