"""Prefill and decode of a small Llama in one framework, all in one process: `python generating.py FRAMEWORK MODE,...`.

Prints JSON: for each pass and mode its parity, capture and program, and the tokens that it generates greedily.
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
}
FIRST, TOKENS = 8, 32  # where the greedy generation begins in the cache, and how long it is
# Relative. The matrices below make attention so peaked that rounding grows to some 1e-6; a fault is of order 1e-2.
TOLERANCE = 2e-5
CALLS = 6  # before parity is looked at: the cache then holds what calls left


def greedy(place, call) -> list[list[int]]:
    """The tokens that follow 1 and 2, a row a step: the likeliest. `call` makes logits (B, V) of placed inputs."""
    tokens, rows = np.array([1, 2]), []
    for index in range(TOKENS):
        tokens = call(place({"tokens": tokens, "place": np.array([FIRST + index])})).argmax(-1).astype(np.int64)
        rows.append(tokens.tolist())
    return rows


def weights_of(workload, parameters: dict) -> dict[str, np.ndarray]:
    """Matrices that are 16 times as large as seeded ones, so that a token does not repeat itself for ever."""
    weights = workload.weights_from(parameters, workload.kept_weights(parameters, 0))
    return {name: value * np.float32(16) if value.ndim == 2 else value for name, value in weights.items()}


def compared(adapter, step, count: int) -> dict[str, np.ndarray]:
    """The outputs of the first calls, once some were made that leave a cache behind."""
    for _ in range(CALLS):
        adapter.synchronize(step())
    step.rewind()
    outputs = {}
    for index in range(count):
        output = step()
        adapter.synchronize(output)
        outputs |= {f"{index}.{name}": value for name, value in adapter.to_numpy(output).items()}
    return outputs


def main() -> None:
    name, modes = sys.argv[1], sys.argv[2].split(",")
    adapter, found = frameworks.load_adapter(name), []
    for pass_name, parameters in PARAMETERS.items():
        workload, steps, eager = workloads.get("llama-tiny", pass_name), {}, []
        weights = weights_of(workload, parameters)
        sets = workload.sets(parameters, 0)
        references = workload.references(parameters, weights, sets[: workload.parity_calls])
        expected = {f"{i}.{key}": value for i, arrays in enumerate(references) for key, value in arrays.items()}
        for mode in modes:
            cell = Cell(name, "llama-tiny", "plain", pass_name, "cpu", "fp32", 1, tuple(parameters.items()), mode)
            if not found:
                adapter.configure(cell)
            adapter.start_compiler(cell)
            step = steps[mode] = adapter.prepare(workload, cell, weights, sets)
            agrees = difference(compared(adapter, step, workload.parity_calls), expected).within(TOLERANCE)
            captured, listed = asdict(step.capture()), step.program()
            eager = eager or [listed]
            found.append(
                {"pass": pass_name, "mode": mode, "agrees": agrees} | program.verdict(eager, listed) | captured
            )
        # Last: modes may share a cache, of which this writes over more than `rewind` puts back.
        for row, step in zip(found, steps.values(), strict=True) if pass_name == "decode" else ():
            tokens = greedy(
                lambda arrays: adapter.place(cell, arrays),  # noqa: B023 - called at once
                lambda inputs: adapter.to_numpy(step.rebound([inputs])())["logits"],  # noqa: B023
            )
            row |= {"tokens": tokens, "recompiled": step.capture().compilations != row["compilations"]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
