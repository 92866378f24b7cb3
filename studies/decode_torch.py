"""Which kernels a decoded token takes in torch on a GPU, and what changes them: variants of the plain model's step.

Random weights made on the GPU; fewer layers than the model's keep compiling short. For each variant a line of JSON:
milliseconds a call (50 calls a sample); the largest difference of its logits from eager mode's, relative to the largest
of these; and its kernels by time: how often a call launches each, and microseconds.

python3 studies/decode_torch.py --workload llama-7b --layers 8 --variants "cuda-graph;reduce-overhead"
"""

import collections
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch._inductor import test_operators  # noqa: F401  what makes `torch.ops._inductor_test`
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from decode_options import options

import workloads
from frameworks.torch.models import llama
from frameworks.torch.modes import generation
from workloads.decode import PAST

CALLS, SAMPLES, PROFILED = 50, 7, 4
METHODS = ("projected", "fed_forward")
realize = torch.ops._inductor_test.realize  # what Inductor then computes once, in a kernel of its own


def projected(self, x, turn):
    """As the model's, with the norm's result kept."""
    qkv = F.linear(realize(llama.norm(x, self.input_norm)), self.qkv).unflatten(-1, (-1, self.head_size))
    qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], dim=-2)
    qk = qk * turn["cosines"] + qk.roll(self.head_size // 2, -1) * turn["sines"]
    q, k = qk.split([self.heads, self.kv_heads], dim=-2)
    return q, k, v


def fed_forward(self, x, context):
    """As the model's, with what each product takes kept."""
    x = x + F.linear(realize(context), self.output)
    gate, up = F.linear(realize(llama.norm(x, self.inner_norm)), self.gate_up).chunk(2, dim=-1)
    return x + F.linear(realize(F.silu(gate) * up), self.down)


GRAPHS = {"triton.cudagraphs": True}
DESCENT = {"coordinate_descent_tuning": True}
# Programmatic dependent launch: a kernel is set up while the one before it still runs, and waits inside for its end.
EARLY = {"triton.enable_pdl": True}
KEPT = {"projected": projected, "fed_forward": fed_forward}
# What torch.compile is told, and which of the block's methods are others.
VARIANTS: dict[str, tuple[dict, dict]] = {
    "cuda-graph": ({}, {}),  # eager's kernels, not compiled
    "reduce-overhead": ({"mode": "reduce-overhead"}, {}),
    "max-autotune": ({"mode": "max-autotune"}, {}),
    "reduce-overhead, coordinate descent": ({"options": GRAPHS | DESCENT}, {}),
    "reduce-overhead, early launch": ({"options": GRAPHS | EARLY}, {}),
    "reduce-overhead, coordinate descent, early launch": ({"options": GRAPHS | DESCENT | EARLY}, {}),
    "reduce-overhead, coordinate descent, early launch, norms and activation kept": (
        {"options": GRAPHS | DESCENT | EARLY},
        KEPT,
    ),
    "max-autotune, no coordinate descent": ({"options": GRAPHS | {"max_autotune": True}}, {}),
    "max-autotune, norms and activation kept": ({"mode": "max-autotune"}, KEPT),
}


def model_of(workload: str, layers: int, places: int) -> torch.nn.Module:
    """The plain model with so many layers and random weights, batch 1."""
    decode = workloads.get(workload, "decode")
    decode = replace(decode, model=replace(decode.model, layers=layers or decode.model.layers))
    torch.manual_seed(0)
    weights = {}
    for name, shape in decode.weight_shapes({"batch_size": 1, "context": places}).items():
        drawn = torch.randn(shape, device="cuda", dtype=torch.bfloat16) * (1.28 if name in PAST else 0.02)
        weights[name] = drawn + 1 if len(shape) == 1 else drawn  # norms around 1
    past = [weights.pop(name) for name in PAST]
    model = llama.LlamaModel(decode.model, weights, places, fused=False)
    model.hold([(keys[None], values[None]) for keys, values in zip(*past, strict=True)])
    return generation.Proceeding(model, chooses=False)


def captured(call: Callable) -> Callable:
    """A replay of the call's kernels."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()

    def replayed() -> dict:
        graph.replay()
        return output

    return replayed


def prepared(name: str, model: torch.nn.Module, usual: dict, inputs: tuple) -> Callable:
    options, others = VARIANTS[name]
    for method, function in (usual | others).items():
        setattr(llama.Block, method, function)
    torch.compiler.reset()
    if not options:
        return captured(lambda: model(*inputs))
    compiled = torch.compile(lambda *given: model(*given), fullgraph=True, dynamic=False, **options)
    return lambda: compiled(*inputs)


def difference(call: Callable, expected: torch.Tensor) -> float:
    return float((call()["logits"].float() - expected).abs().max() / expected.abs().max())


def milliseconds(call: Callable) -> list[float]:
    samples = []
    for _ in range(SAMPLES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
        samples.append(1e3 * (time.perf_counter() - start) / CALLS)
    return sorted(samples)


def kernels(call: Callable) -> list[tuple[str, float, float]]:
    """Name, number in a call and microseconds of each, those first that take most of a call."""
    with profile(activities=[ProfilerActivity.CUDA]) as taken:
        for _ in range(PROFILED):
            call()
        torch.cuda.synchronize()
    durations = collections.defaultdict(list)
    for event in taken.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            durations[event.name].append(event.device_time)
    rows = [(name, len(times) / PROFILED, sum(times) / len(times)) for name, times in durations.items()]
    return sorted(rows, key=lambda row: -row[1] * row[2])


def main() -> None:
    chosen = options(VARIANTS)
    usual = {name: getattr(llama.Block, name) for name in METHODS}
    model = model_of(chosen.workload, chosen.layers, chosen.places)
    inputs = torch.zeros(1, dtype=torch.int64, device="cuda"), torch.tensor([chosen.places - 1], device="cuda")
    with torch.inference_mode():
        expected = model(*inputs)["logits"].float()
    for name in chosen.variants:
        with torch.inference_mode():
            call = prepared(name, model, usual, inputs)
            for _ in range(5):
                call()
            line = {"variant": name, "ms": milliseconds(call), "difference": difference(call, expected)}
            line["kernels"] = kernels(call)
        print(
            json.dumps(
                {"workload": chosen.workload, "layers": len(model.model.blocks), "places": chosen.places, **line}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
