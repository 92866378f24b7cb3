"""Passes of a small Llama and GPT in one framework, all in one process.

`generating.py FRAMEWORK MODE,... CACHE,... IMPLEMENTATION`: the eager mode first, in which every place is measured,
then a graph, in which those are that `in_a_graph` names; in the other modes the Llama decodes from place 64, reads a
prompt and generates, in some it decodes alone. A library's implementation is of the Llama
alone, and what the plain one shows of the suite's own code is left out.

Prints JSON: for each workload, cache, pass, first place, dtype and mode its parity, capture and program, and whether
calls compiled anything again; or why the cell is refused. What eager mode gives is compared with the reference a second
time where the model takes the first place that it decodes for another one: `misplaced` says what of that agrees.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import frameworks
import workloads
from frameworks import program
from frameworks.adapter import Unsupported
from measurement.cells import Cell
from measurement.parity import difference
from workloads import cached_gpt, decode, generate, llama
from workloads.rounding import stored

SHAPE = {"batch_size": 2, "attention": "explicit"}
PROMPT, TOKENS, POSITIONS = 12, 32, 2048
NAMES = ("llama-tiny", "gpt-tiny")
FIRST_PLACES = (1, 64, 1024)  # that decode, and three after each
HALVES = ("bf16", "fp16")
WHOLE = ("jit-loop",)  # modes whose graph is a whole generation
DECODING = ("inference-no-passes",)  # a rung that nobody deploys decodes alone
# Relative. The matrices below make attention so peaked that rounding grows to some 1e-6; a fault is of order 1e-2.
TOLERANCE = 2e-5
# Calls after which nothing is compiled any more, and those before parity is looked at: the cache holds what they left.
# One of a generation is 32 tokens long.
SETTLED = {"decode": 2, "prefill": 2, "generate": 1}
CALLS = {"decode": 6, "prefill": 2, "generate": 0}


@dataclass(frozen=True, order=True)
class Place:
    """What is measured in several modes; `first` is the place that decode begins with, 0 in other passes."""

    name: str
    cache: str
    pass_name: str
    first: int = 0
    dtype: str = "fp32"
    quant: str = "none"
    product: str = "matmul"
    layers: int = 2

    @property
    def parameters(self) -> dict:
        """What the workload is measured with."""
        others = (("quant", "none"), ("product", "matmul"))
        shape = SHAPE | {name: getattr(self, name) for name, usual in others if getattr(self, name) != usual}
        if self.pass_name == "prefill":
            return shape | {"prompt": PROMPT}
        if self.pass_name == "decode":
            return shape | {"cache": self.cache, "context": self.first + decode.STEPS}
        return shape | {"cache": self.cache, "prompt": PROMPT, "tokens": TOKENS}

    @property
    def workload(self):
        """The GPT has as many positions here as the Llama, or place 1024 were beyond its last one."""
        model = workloads.get(self.name, "prefill")
        if self.name == "gpt-tiny":
            model = cached_gpt.cached(replace(model.gpt, positions=POSITIONS, layers=self.layers))
        else:
            model = replace(model, layers=self.layers)
        made = {"decode": decode.decode_of, "generate": generate.generate_of}
        return made[self.pass_name](model) if self.pass_name in made else model

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """In fp32 matrices that are 16 times as large as seeded ones, so that a fault in attention shows."""
        workload, parameters = self.workload, self.parameters
        weights = workload.weights_from(parameters, workload.kept_weights(parameters, 0))
        # Those of a generation are larger themselves, and in coarser dtypes rounding would show as faults do.
        factor = np.float32(1 if self.pass_name == "generate" or self.dtype != "fp32" else 16)
        return {name: value * factor if value.ndim == 2 else value for name, value in weights.items()}

    def cell(self, framework: str, implementation: str, mode: str) -> Cell:
        parameters = tuple(self.parameters.items())
        return Cell(framework, self.name, implementation, self.pass_name, "cpu", self.dtype, 1, parameters, mode)


def places(caches: list[str], implementation: str) -> list[Place]:
    """All that is measured; a prompt is read into a static cache, if any. Those of one dtype stand together."""
    plain = implementation == "plain"
    firsts = {"decode": FIRST_PLACES if plain else FIRST_PLACES[-1:]}
    made = [
        Place(name, cache, pass_name, first)
        for name in NAMES
        for cache in caches
        for pass_name in ("decode", "prefill", "generate")
        for first in firsts.get(pass_name, (0,))
        if implementation in workloads.get(name, pass_name).implementations
        if (cache, pass_name) != ("dynamic", "prefill") or "static" not in caches
    ]
    return made + [Place(NAMES[0], "static", "decode", FIRST_PLACES[1], dtype) for dtype in HALVES if plain]


@dataclass(frozen=True)
class Displaced(llama.Llama):
    """A Llama that turns heads at one place as at the place before."""

    displaced: int = 0

    def rotary(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super().rotary(np.where(positions == self.displaced, positions - 1, positions))


def displaced(place: Place, weights: dict[str, np.ndarray]) -> tuple:
    """The workload and its weights, where the first place has the position before its own."""
    workload = place.workload
    if place.name == "gpt-tiny":
        table = weights["wpe.weight"].copy()
        table[place.first] = table[place.first - 1]
        return workload, weights | {"wpe.weight": table}
    return replace(workload, model=Displaced(**vars(workload.model), displaced=place.first)), weights


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


class Measured:
    """A place's cells: what the reference says, and eager mode's program once it is known."""

    def __init__(self, adapter, place: Place, framework: str, implementation: str):
        self.adapter, self.place, self.told = adapter, place, (framework, implementation)
        self.workload, self.parameters, self.weights = place.workload, place.parameters, place.weights
        self.sets, self.eager = self.workload.sets(self.parameters, 0), []
        sets = self.sets[: self.workload.parity_calls]
        weights, *sets = [{k: stored(v, place.dtype) for k, v in held.items()} for held in (self.weights, *sets)]
        references = self.workload.references(self.parameters, weights, sets)
        self.expected = {f"{i}.{k}": v.reshape(-1) for i, arrays in enumerate(references) for k, v in arrays.items()}

    def agrees(self, outputs: dict[str, np.ndarray], name: str = "") -> bool:
        """Whether outputs are the reference's; with a name, the output of this name."""
        tolerance = TOLERANCE if self.place.dtype == "fp32" else self.workload.tolerance[self.place.dtype]
        pair = self.workload.comparable(self.parameters, outputs, self.expected, self.place.dtype)
        return difference(*({k: v for k, v in of.items() if name in ("", k)} for of in pair)).within(tolerance)

    def row(self, mode: str) -> dict:
        """The cell of this mode."""
        cell, adapter = self.place.cell(*self.told, mode), self.adapter
        adapter.configure(cell)
        adapter.start_compiler(cell)
        step = adapter.prepare(self.workload, cell, self.weights, self.sets)
        if step.load:
            step.load()
        for _ in range(SETTLED[cell.pass_name]):
            adapter.synchronize(step())
        before = step.capture().compilations
        outputs = compared(adapter, step, CALLS[cell.pass_name], self.workload.parity_calls)
        row = {
            "agrees": self.agrees(outputs),
            "parts": in_parts(adapter, step) if step.parts else None,
            "compiled_again": step.capture().compilations != before,
        }
        listed = step.program()
        self.eager = self.eager or [listed]
        row["matmuls"] = sum(operation.kind == "matmul" for operation in listed)
        return row | program.verdict(self.eager, listed) | asdict(step.capture())

    def misplaced(self, mode: str) -> dict[str, bool]:
        """Which of a first call's outputs agree, of a model that takes the first place for the one before."""
        workload, weights = displaced(self.place, self.weights)
        cell = replace(self.place.cell(*self.told, mode), workload="displaced")  # another group, with its own model
        step = self.adapter.prepare(workload, cell, weights, self.sets)
        outputs = compared(self.adapter, step, 0, 1)
        return {name: self.agrees(outputs, f"0.{name}") for name in ("logits", "keys")}


def in_a_graph(place: Place, cache: str, plain: bool) -> bool:
    """Whether the place is compiled: the Llama with this cache, but in one dtype; else, if plain, a token, a prompt.

    A GPT has this cache alone. A growing cache of one place is refused without being compiled.
    """
    compiled = FIRST_PLACES[1 if plain else 2]
    if (place.name, place.cache) == (NAMES[0], cache) or not plain:
        return place.cache == cache and place.dtype != HALVES[1] and place.first in (0, compiled)
    if (place.cache, place.first) == ("dynamic", 1):
        return True
    if place.name != NAMES[0] and place.cache != cache:
        return False
    return place.pass_name == "prefill" or place.first == compiled


def captured_alone(place: Place, mode: str, plain: bool) -> str:
    """Return the mode to measure: Dynamo alone in place of Inductor, which takes 10 to 25 s a graph.

    Inductor compiles the plain Llama with a static cache in fp32. Of other implementations, and of stored or summed
    products, it compiles a token alone; a growing cache of one place it refuses.
    """
    usual = plain and (place.quant, place.product) == ("none", "matmul")
    of_llama = (place.name, place.cache, place.dtype) == (NAMES[0], "static", "fp32") and place.quant != "fp8"
    compiled = place.first == 1 or (of_llama and (usual or place.pass_name == "decode"))
    return "dynamo" if mode == "inductor" and not compiled else mode


def rows_of(measured: Measured, modes: list[str], cache: str = "static") -> list[dict]:
    """A place's cells: of the Llama, once in each pass, in each mode that has the pass, else in two or one.

    A row has the mode's name where Dynamo alone captured it.
    """
    place, rows, description = measured.place, [], frameworks.describe(measured.told[0])
    if not in_a_graph(place, cache, measured.told[1] == "plain"):
        modes = modes[:1]
    every = (place.name, place.cache, place.dtype) == (NAMES[0], "static", "fp32")
    tried = modes if every and place.first in (0, FIRST_PLACES[1]) else modes[:2]
    tried = [mode for mode in tried if mode not in DECODING or place.pass_name == "decode"]
    for mode in [mode for mode in tried if place.pass_name in description.mode(mode).passes]:
        try:
            row = measured.row(captured_alone(place, mode, measured.told[1] == "plain"))
        except Unsupported as error:
            row = {"refused": str(error)}
        rows.append({"place": [*asdict(place).values(), mode], "refused": None, **row})
    if place.first and measured.told[1] == "plain" and not rows[0]["refused"]:
        rows[0]["misplaced"] = measured.misplaced(modes[0])
    return rows


def main() -> None:
    framework, implementation = sys.argv[1], sys.argv[4]
    modes, caches = (words.split(",") for words in sys.argv[2:4])
    adapter, rows = frameworks.load_adapter(framework), []
    if framework != "paddle":  # whose list of operators asks the collector who refers to functions
        gc.freeze()  # else each place's collection goes through all that the import left
    for place in places(caches, implementation):
        rows += rows_of(Measured(adapter, place, framework, implementation), modes, caches[0])
        adapter.release()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
