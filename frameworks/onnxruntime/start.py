"""Ways of ONNX Runtime from a fresh process to the first answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnxruntime

from frameworks.adapter import Step
from frameworks.onnxruntime.sessions import BASELINE, PROVIDER, Value, options_of
from frameworks.start import Compiled, Place, Strategy

OPTIMIZED, MODEL = "optimized", "model.onnx"
LACKING = {
    "capture": "its models are graphs already",
    **dict.fromkeys(("regional", "warm-cache", "shipped-cache"), "it generates no code that could be kept or shared"),
}


class Eager(Compiled):
    """A session without the optimizer of a graph that the process writes."""

    def step(self, place: Place) -> Step:
        return super().step(replace(place, graph=BASELINE))


class Exported(Strategy):
    """A session from an ONNX file."""

    written, opened = BASELINE, OPTIMIZED  # modes in which the file is optimized, and opened

    def step(self, place: Place) -> Step:
        with place.phase("build"):
            sets = [place.adapter.place(place.cell, arrays) for arrays in place.inputs]
        with place.phase("load"):
            path = str(place.artefact / MODEL)
            session = onnxruntime.InferenceSession(path, options_of(self.opened), providers=[PROVIDER])
        given, names = ([one.name for one in some] for some in (session.get_inputs(), session.get_outputs()))

        def call(*values: Value) -> dict[str, Any]:
            return dict(
                zip(names, session.run_with_ort_values(names, dict(zip(given, values, strict=True))), strict=True)
            )

        return Step(call, sets)

    def fill(self, place: Place) -> None:
        place.adapter.prepare(place.workload, place.cell, place.weights, place.inputs)
        first = place.adapter.place(place.cell, place.inputs[0])
        place.adapter.models[place.cell.group_id].save(place.artefact / MODEL, self.written, first)


class AheadOfTime(Exported):
    """A session from the optimized model that another session saved; nothing is optimized."""

    written, opened = OPTIMIZED, BASELINE


STRATEGIES: dict[str, type[Strategy]] = {
    "eager": Eager,
    "compile": Compiled,
    "exported": Exported,
    "ahead-of-time": AheadOfTime,
    "ahead-of-time-no-compiler": AheadOfTime,
}
