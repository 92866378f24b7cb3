"""The loop that anybody would write: warm up, time some calls, synchronize once, take the median. Knows no suite."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

WARM_UP_CALLS = 5
MOST_CALLS = 50  # between two synchronizations


def arguments(*modes: str) -> argparse.Namespace:
    """What is to be measured: BERT-base, library model, random weights."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default=",".join(modes))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of samples for each mode")
    found = parser.parse_args()
    found.mode = [mode for mode in found.mode.split(",") if mode]
    return found


def measure(call: Callable, synchronize: Callable, seconds: float) -> dict:
    """Milliseconds a call: the median of samples, their range, how many there were and of how many calls."""
    for _ in range(WARM_UP_CALLS):
        output = call()
    synchronize(output)
    start = time.perf_counter()
    synchronize(call())
    once = time.perf_counter() - start
    calls = max(1, min(MOST_CALLS, int(seconds / 4 / once)))
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 3:
        start = time.perf_counter()
        for _ in range(calls):
            output = call()
        synchronize(output)
        samples.append(1e3 * (time.perf_counter() - start) / calls)
    return {"ms": median(samples), "low": min(samples), "high": max(samples), "samples": len(samples), "calls": calls}


def report(mode: str, figures: dict) -> None:
    """Print a mode's figures as one line of JSON."""
    print(json.dumps({"mode": mode, **figures}), flush=True)
