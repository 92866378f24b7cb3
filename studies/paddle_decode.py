"""Why Paddle's `to_static` loses to eager mode on a small decode: its executor's threads, or freeing between operators.

A token of `llama-tiny` at 128 places, one thread on one CPU, in fresh processes that take turns. Two settings of the
executor are varied, each alone and both together: whether it runs operators on threads of its own (users' default) or
on one (`FLAGS_new_executor_serial_run=1`), and whether it frees a result after its last use (users' default) or not
(`FLAGS_eager_delete_tensor_gb=-1`). Each process times eager mode, `to_static` and the same program under the
predictor without passes, in random order round by round, and tells the processor time of a call, which other processes
leave alone, and the median over rounds of eager mode's over each graph's.

.venvs/paddle-cpu/bin/python studies/paddle_decode.py [--processes 5]   # a line of JSON a process
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
SERIAL, KEPT = {"FLAGS_new_executor_serial_run": "1"}, {"FLAGS_eager_delete_tensor_gb": "-1"}
SETTINGS = {"default": {}, "serial": SERIAL, "nothing freed": KEPT, "serial, nothing freed": SERIAL | KEPT}
GRAPHS = ("to_static", "inference-no-passes")
ROUNDS, CALLS, WARM_UP = 60, 20, 50


def measured() -> dict[str, object]:
    """Milliseconds of processor time a call by mode, and eager mode's over each graph's."""
    import frameworks
    import workloads
    from measurement.cells import Cell

    parameters = {"batch_size": 1, "context": 128, "attention": "explicit", "cache": "static"}
    workload = workloads.get("llama-tiny", "decode")
    weights, sets = workload.seeded_weights(parameters, 0), workload.sets(parameters, 0)
    adapter, steps = frameworks.load_adapter("paddle"), {}
    for mode in ("eager", *GRAPHS):
        cell = Cell("paddle", "llama-tiny", "plain", "decode", "cpu", "fp32", 1, tuple(parameters.items()), mode)
        adapter.configure(cell)
        steps[mode] = adapter.prepare(workload, cell, weights, sets)
        if steps[mode].load:
            steps[mode].load()
        for _ in range(WARM_UP):
            steps[mode]()
    times: dict[str, list[float]] = {mode: [] for mode in steps}
    for _ in range(ROUNDS):
        for mode in random.sample(list(steps), len(steps)):
            start = time.process_time()
            for _ in range(CALLS):
                steps[mode]()
            times[mode].append(1e3 * (time.process_time() - start) / CALLS)
    ratios = {mode: median(e / g for e, g in zip(times["eager"], times[mode], strict=True)) for mode in GRAPHS}
    return {"cpu_ms": {mode: median(taken) for mode, taken in times.items()}, "times_eager": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--measured", action="store_true", help="measure in this process")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.measured:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(measured()))
        return
    import frameworks

    environment = os.environ | frameworks.describe("paddle").environment(1, "cpu")
    for number in range(options.processes):
        for name, setting in SETTINGS.items():
            command = [sys.executable, __file__, "--measured"]
            done = subprocess.run(command, env=environment | setting, capture_output=True, text=True, check=True)
            told = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps({"setting": name, "process": number, **told}), flush=True)


if __name__ == "__main__":
    main()
