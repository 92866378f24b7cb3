"""What the questions' scripts share: a workload's weights and inputs, and ways to call it timed in turn.

A script defines `trials(options)`, which yields a trial's name and its ways, each a call that returns when its work is
done. All ways of a trial are timed in every round, in random order. For each way a line of JSON goes to standard
output: microseconds and minor page faults of a call, round by round.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module

import workloads
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

Ways = Mapping[str, Callable[[], object]]
SAMPLE_S, WARM_UP_S, FEWEST_CALLS, FEWEST_ROUNDS = 0.02, 0.3, 3, 8


def model(name: str, **sizes: int) -> tuple[Workload, dict, Arrays, tuple]:
    """A workload, at other sizes if told, with its parameters, seeded weights and one set of inputs."""
    workload = replace(workloads.get(name), **sizes)
    parameters = {"batch_size": 1, "seq_len": 32, "mask": "none", "attention": "explicit"}
    arrays = workload.inputs(parameters, 0)
    return workload, parameters, workload.seeded_weights(parameters, 0), arrays


def cell(framework: str, parameters: dict, threads: int, mode: str = "eager", dtype: str = "fp32") -> Cell:
    """The cell of a plain model on the CPU, as the adapters want it."""
    shape = tuple(parameters.items())
    return Cell(framework, "bert-tiny", "plain", "inference", "cpu", dtype, threads, shape, mode)


def adapter(framework: str, parameters: dict, threads: int, dtype: str = "fp32"):
    """The framework's adapter, configured as a worker's."""
    made = import_module(f"frameworks.{framework}.adapter").Adapter()
    made.configure(cell(framework, parameters, threads, dtype=dtype))
    return made


def sample(call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Microseconds and minor page faults of a call, over so many; outputs are dropped at once."""
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    start = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - start
    return 1e6 * seconds / calls, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / calls


def warm(call: Callable[[], object]) -> int:
    """Call it until it is warm; how many calls make a sample."""
    end, fastest = time.perf_counter() + WARM_UP_S, float("inf")
    for n in range(10**6):
        fastest = min(fastest, sample(call, 1)[0])
        if n >= FEWEST_CALLS and time.perf_counter() > end:
            break
    return max(FEWEST_CALLS, int(1e6 * SAMPLE_S / fastest))


def in_turn(ways: Ways, seconds: float) -> dict[str, dict[str, list[float]]]:
    """Rounds of all ways for `seconds` a way, and no fewer than eight."""
    calls = {name: warm(call) for name, call in ways.items()}
    taken = {name: {"us": [], "faults": []} for name in ways}
    end, rounds = time.perf_counter() + seconds * len(ways), 0
    while time.perf_counter() < end or rounds < FEWEST_ROUNDS:
        for name in random.sample(list(ways), len(ways)):
            for kind, value in zip(("us", "faults"), sample(ways[name], calls[name]), strict=True):
                taken[name][kind].append(value)
        rounds += 1
    return taken


def main(trials: Callable[[argparse.Namespace], Iterable[tuple[str, Ways]] | Iterator]) -> None:
    """Measure a script's trials one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of samples for each way")
    options = parser.parse_args()
    for trial, ways in trials(options):
        for way, taken in in_turn(ways, options.seconds).items():
            print(json.dumps({"trial": trial, "way": way, **taken}), flush=True)
