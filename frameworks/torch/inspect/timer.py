"""`torch.utils.benchmark`, torch's own benchmark tool, as a control of the suite's loop in self-checks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.benchmark import Timer


def timer(call: Callable[[], object]) -> Callable[[int], float]:
    """Return a function from a number of calls to seconds per call, the median of its blocks."""
    # It takes one thread by default.
    measured = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return lambda calls: measured.timeit(calls).median
