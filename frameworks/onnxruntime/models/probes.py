"""Models of one operator repeated, which probe what fusing and dispatching operators costs. `x` (N,) -> (N,)."""

from __future__ import annotations

from frameworks.onnxruntime.writer import Writer
from workloads.spec import Arrays, Parameters, Workload


def chain(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> dict[str, str]:
    """Multiply `repeat` times."""
    for _ in range(int(parameters["repeat"])):
        x = graph.op("Mul", x, graph.weight("factor", weights["factor"]))
    return {"output": x}


def cosines(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> dict[str, str]:
    """Map `x` (N,) -> (N,) by `repeat` cosines."""
    for _ in range(int(parameters["repeat"])):
        x = graph.op("Cos", x)
    return {"output": x}


def doubled(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> dict[str, str]:
    return {"output": graph.op("Add", x, x)}


def additions(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> dict[str, str]:
    """Map `x` (N,) -> (N,) by `additions` tiny additions, each on the last one's result."""
    for index in range(int(parameters["additions"])):
        name = ("up", "down")[index % 2]
        x = graph.op("Add", x, graph.weight(name, weights[name]))
    return {"output": x}


MODELS = {"pointwise-chain": chain, "fused-cos": cosines, "stream": doubled, "op-overhead": additions}
