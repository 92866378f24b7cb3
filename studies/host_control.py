"""Which fixed work tells that a model's call was slowed by a neighbour: a loop of Python, or arithmetic on each thread?

Five things are timed in turn, in rounds: the loop that every record has (`measurement.host`); fixed products in NumPy
on one thread, and on two at once; BERT-tiny op by op, whose calls the host decides; and a product of matrices, which
arithmetic decides. That is done alone and beside one and two processes that keep a core busy with Python or with
arithmetic. Printed is by how much each slows down, and how well each control's ratio agrees with the two calls'.

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venvs/torch-cpu/bin/python studies/host_control.py
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE / "by_question")]

import turns  # noqa: E402

from frameworks.torch.models import plain  # noqa: E402
from measurement import host, load  # noqa: E402

SIDE, TIMES = 96, 12  # of the arithmetic's matrices, which lie in the first cache; about 1 ms
CONTROLS, CALLS = ("Python loop", "arithmetic", "arithmetic on two threads"), ("bert-tiny", "product")
NEIGHBOURS = {
    "Python": ("", "pass"),
    "arithmetic": (f"import numpy as np; a = np.ones(({SIDE}, {SIDE}), np.float32)", "a @ a"),
}


def arithmetic() -> Callable[[], None]:
    """The same products every time, on arrays of the thread's own."""
    left = np.ones((SIDE, SIDE), np.float32)
    out = np.empty_like(left)

    def call() -> None:
        for _ in range(TIMES):
            np.matmul(left, left, out=out)

    return call


def on_two_threads(pool: ThreadPoolExecutor) -> Callable[[], None]:
    """The same on two threads at once; it takes as long as the slower one."""
    parts = arithmetic(), arithmetic()

    def call() -> None:
        for future in [pool.submit(part) for part in parts]:
            future.result()

    return call


def ways(pool: ThreadPoolExecutor, threads: int) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    workload, parameters, weights, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("torch", parameters, threads)
    (ids,) = adapter.place(turns.cell("torch", parameters, threads), inputs)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    model = plain.build(workload, parameters, tensors).eval()
    matrix = torch.ones(512, 512)

    def call(function: Callable, *arguments: torch.Tensor) -> Callable[[], object]:
        def inside() -> object:
            with torch.inference_mode():
                return function(*arguments)

        return inside

    controls = dict(zip(CONTROLS, (host.loop, arithmetic(), on_two_threads(pool)), strict=True))
    return controls | dict(zip(CALLS, (call(model, ids), call(torch.mm, matrix, matrix)), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="of samples for each way")
    parser.add_argument("--out", help="add what was taken to this file, a line of JSON a condition")
    options = parser.parse_args()
    conditions: dict[str, tuple] = {"alone": (0,)}
    conditions |= {f"{n} of {kind}": (n, *code) for kind, code in NEIGHBOURS.items() for n in (1, 2)}
    conditions["alone again"] = (0,)
    medians: dict[str, dict[str, float]] = {}
    with ThreadPoolExecutor(2) as pool:
        timed = ways(pool, options.threads)
        for name, neighbours in conditions.items():
            with load.busy(*neighbours):
                taken = {way: values["us"] for way, values in turns.in_turn(timed, options.seconds).items()}
            medians[name] = {way: median(series) for way, series in taken.items()}
            if options.out:
                with open(options.out, "a") as file:
                    print(json.dumps({"condition": name, "threads": options.threads, "us": taken}), file=file)
    print("| | " + " | ".join(timed) + " |\n|---|" + "---|" * len(timed))
    for name, by_way in medians.items():
        slower = [by_way[way] / medians["alone"][way] for way in timed]
        print(f"| {name} | " + " | ".join(f"{ratio:.2f}" for ratio in slower) + " |")
    for control in CONTROLS:
        off = {
            call: median(
                abs(math.log(by_way[control] / medians["alone"][control] * medians["alone"][call] / by_way[call]))
                for name, by_way in medians.items()
                if not name.startswith("alone")
            )
            for call in CALLS
        }
        told = ", ".join(f"{math.expm1(value):.0%} for {call}" for call, value in off.items())
        print(f"{control}: off by {told} (median over conditions with a neighbour).")


if __name__ == "__main__":
    main()
