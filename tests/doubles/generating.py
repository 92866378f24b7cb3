"""Passes of a small Llama and GPT in one framework, all in one process.

`generating.py FRAMEWORK MODE,... CACHE,... IMPLEMENTATION`; a library's implementation is of the Llama alone.

Prints JSON: for each workload, cache, pass and mode its parity, capture and program, and whether calls compiled
anything again.
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
WHOLE = {"jax": ["jit-loop"]}  # modes of generations alone
STACKED = {"jax": ["jit-scan"]}  # modes in which a layer's code stands once
# Relative. The matrices below make attention so peaked that rounding grows to some 1e-6; a fault is of order 1e-2.
TOLERANCE = 2e-5
# Calls after which nothing is compiled any more, and those before parity is looked at: the cache holds what they left.
# One of a generation is 128 tokens long.
SETTLED = {"decode": 2, "prefill": 2, "generate": 1}
CALLS = {"decode": 6, "prefill": 2, "generate": 0}


def places(caches: list[str], implementation: str) -> list[tuple[str, str, str]]:
    """Workload, cache and pass of all that is measured; a prompt is read into a static cache, where there is one."""
    return [
        (name, cache, pass_name)
        for name in ("llama-tiny", "gpt-tiny")
        for cache in caches
        for pass_name in PARAMETERS
        if implementation in workloads.get(name, pass_name).implementations
        if (cache, pass_name) != ("dynamic", "prefill") or "static" not in caches
    ]


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


def parameters_of(name: str, pass_name: str, cache: str) -> dict:
    """What a workload is measured with; the small GPT has fewer positions."""
    parameters = PARAMETERS[pass_name] | ({} if pass_name == "prefill" else {"cache": cache})
    return parameters | ({"tokens": 32} if (name, pass_name) == ("gpt-tiny", "generate") else {})


def rows_of(adapter, framework: str, modes: list[str], implementation: str, place: tuple[str, str, str]) -> list[dict]:
    """A workload's pass on a cache, in each mode."""
    name, cache, pass_name = place
    parameters, workload = parameters_of(name, pass_name, cache), workloads.get(name, pass_name)
    rows, eager, weights = [], [], weights_of(workload, pass_name, parameters)
    sets = workload.sets(parameters, 0)
    references = workload.references(parameters, weights, sets[: workload.parity_calls])
    expected = {f"{i}.{key}": v.reshape(-1) for i, arrays in enumerate(references) for key, v in arrays.items()}
    for mode in modes:
        cell = Cell(framework, name, implementation, pass_name, "cpu", "fp32", 1, tuple(parameters.items()), mode)
        adapter.start_compiler(cell)
        step = adapter.prepare(workload, cell, weights, sets)
        if step.load:
            step.load()
        for _ in range(SETTLED[pass_name]):
            adapter.synchronize(step())
        before = step.capture().compilations
        outputs = compared(adapter, step, CALLS[pass_name], workload.parity_calls)
        row = {
            "place": [*place, mode],
            "agrees": difference(*workload.comparable(parameters, outputs, expected, "fp32")).within(TOLERANCE),
            "parts": in_parts(adapter, step) if step.parts else None,
            "compiled_again": step.capture().compilations != before,
        }
        listed = step.program()
        eager = eager or [listed]
        rows.append(row | program.verdict(eager, listed) | asdict(step.capture()))
    return rows


def main() -> None:
    framework, implementation = sys.argv[1], sys.argv[4]
    modes, caches = (words.split(",") for words in sys.argv[2:4])
    adapter, rows = frameworks.load_adapter(framework), []
    adapter.configure(Cell(framework, "llama-tiny", "plain", "decode", "cpu", "fp32", 1, (), modes[0]))
    for place in places(caches, implementation):
        whole = WHOLE.get(framework, []) if place[2] == "generate" else []
        rows += rows_of(adapter, framework, modes + whole, implementation, place)
        adapter.release()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
