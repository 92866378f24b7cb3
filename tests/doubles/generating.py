"""Passes of a small Llama in one framework, all in one process: `python generating.py FRAMEWORK MODE,...`.

Prints JSON: for each pass and mode its parity, capture and program, and whether calls compiled anything again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import frameworks
import workloads
from frameworks import program
from measurement.cells import Cell
from measurement.parity import difference

PARAMETERS = {
    "decode": {"batch_size": 2, "context": 48, "attention": "explicit"},
    "prefill": {"batch_size": 2, "prompt": 12, "attention": "explicit"},
    "generate": {"batch_size": 2, "prompt": 12, "tokens": 128, "attention": "explicit"},
}
# Relative. The matrices below make attention so peaked that rounding grows to some 1e-6; a fault is of order 1e-2.
TOLERANCE = 2e-5
# Calls after which nothing is compiled any more, and those before parity is looked at: the cache holds what they left.
# One of a generation is 128 tokens long.
SETTLED = {"decode": 2, "prefill": 2, "generate": 1}
CALLS = {"decode": 6, "prefill": 2, "generate": 0}


def weights_of(workload, pass_name: str, parameters: dict) -> dict[str, np.ndarray]:
    """Matrices that are 16 times as large as seeded ones, so that a fault in attention shows."""
    weights = workload.weights_from(parameters, workload.kept_weights(parameters, 0))
    factor = np.float32(1 if pass_name == "generate" else 16)  # there they are larger themselves
    return {name: value * factor if value.ndim == 2 else value for name, value in weights.items()}


def compared(adapter, step, calls: int, count: int) -> dict[str, np.ndarray]:
    """The outputs of the first calls, 1-D, once some were made that leave a cache behind."""
    for _ in range(calls):
        adapter.synchronize(step())
    step.rewind()
    outputs = {}
    for index in range(count):
        output = step()
        adapter.synchronize(output)
        outputs |= {f"{index}.{name}": value.reshape(-1) for name, value in adapter.to_numpy(output).items()}
    return outputs


def in_parts(adapter, step) -> list[list[int]]:
    """The tokens of a call that gives them one after the other, a row a step."""
    return [adapter.to_numpy(output)["tokens"].astype(int).tolist() for output in step.called_in_parts()]


def main() -> None:
    name, modes = sys.argv[1], sys.argv[2].split(",")
    adapter, rows = frameworks.load_adapter(name), []
    for pass_name, parameters in PARAMETERS.items():
        workload, steps, eager = workloads.get("llama-tiny", pass_name), {}, []
        weights = weights_of(workload, pass_name, parameters)
        sets = workload.sets(parameters, 0)
        references = workload.references(parameters, weights, sets[: workload.parity_calls])
        expected = {f"{i}.{key}": v.reshape(-1) for i, arrays in enumerate(references) for key, v in arrays.items()}
        for mode in modes:
            cell = Cell(name, "llama-tiny", "plain", pass_name, "cpu", "fp32", 1, tuple(parameters.items()), mode)
            if not rows:
                adapter.configure(cell)
            adapter.start_compiler(cell)
            step = steps[mode] = adapter.prepare(workload, cell, weights, sets)
            for _ in range(SETTLED[pass_name]):
                adapter.synchronize(step())
            before = step.capture().compilations
            outputs = compared(adapter, step, CALLS[pass_name], workload.parity_calls)
            row = {
                "pass": pass_name,
                "mode": mode,
                "agrees": difference(*workload.comparable(parameters, outputs, expected, "fp32")).within(TOLERANCE),
                "parts": in_parts(adapter, step) if step.parts else None,
                "compiled_again": step.capture().compilations != before,
            }
            listed = step.program()
            eager = eager or [listed]
            rows.append(row | program.verdict(eager, listed) | asdict(step.capture()))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
