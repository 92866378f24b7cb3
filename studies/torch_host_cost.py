"""What a call of torch.compile costs the host before any kernel: guards, cache look-up, arguments, against depth.

Stacks of BERT's layers, of whose graphs nothing is computed: the backend hands out tensors that are there already, so
no time of a kernel has to be taken off, whose spread would be larger than what is asked for.
Ways, each of which holds the one before it: the guards of the one cached graph alone; the whole call through Dynamo
(cache look-up, guards, the bytecode that takes weights out of the model); and the same with AOTAutograd's wrapper,
which flattens arguments and outputs. `nothing` is the call of a function that does nothing, under the same context.
The cost of a way is the median over rounds of its time less that of `nothing` in the same round; the brackets hold the
middle half of the rounds. What stands between two ways is the difference of their costs.

`guards, caches flushed` is Dynamo's own measure, `guard_latency_us` of its compilation metrics: one evaluation after
the processor's caches were flushed, here the median of several (`profile_guard_manager` in torch/_dynamo/guards.py;
why it flushes: https://github.com/pytorch/pytorch/pull/154764). Calls in a loop find the guards in the cache, a model
whose kernels fill the caches between two calls does not: its guards cost something between both.

Published for comparison: guards of vLLM's example for offline inference, 0.29 ms a call
(https://github.com/vllm-project/vllm/pull/11216); look-up and bytecode before the graph, Qwen3-8B, about 2 ms
(https://github.com/pytorch/pytorch/issues/191753).

.venvs/torch-cpu/bin/python studies/torch_host_cost.py     # a Markdown table
"""

import argparse
import sys
from pathlib import Path
from statistics import median, quantiles

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.eval_frame import _debug_get_cache_entry_list
from torch._dynamo.guards import profile_guard_manager

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE / "by_question")]

import turns  # noqa: E402

from frameworks.torch.models import plain  # noqa: E402

LAYERS = (2, 4, 8, 16, 32, 48)
FLUSHED = "guards, caches flushed"
COLUMNS = ("guards", FLUSHED, "Dynamo", "Dynamo and AOTAutograd")
FLUSHES = 21
PUBLISHED = (
    ("[vllm#11216](https://github.com/vllm-project/vllm/pull/11216), 2024-12", "290", "", "", ""),
    ("[pytorch#191753](https://github.com/pytorch/pytorch/issues/191753), Qwen3-8B, 36 layers", "", "", "2,000", ""),
)


def ready(graph, inputs):
    """A backend whose code computes nothing: every call gets the outputs of the first."""
    outputs = graph(*inputs)
    return lambda *arguments: outputs


def ready_boxed(graph, inputs):
    """The same behind AOTAutograd, which hands over a list and wants it emptied."""
    kept = []

    def call(arguments):
        if not kept:
            kept.append(graph(*arguments))
        arguments.clear()
        return list(kept[0])

    call._boxed_call = True
    return call


def ways(layers: int, options: argparse.Namespace):
    """The ways to call a stack of so many layers, and microseconds of its guards with caches flushed."""
    workload, parameters, weights, inputs = turns.model("bert-tiny", layers=layers)
    adapter = turns.adapter("torch", parameters, options.threads)
    (ids,) = adapter.place(turns.cell("torch", parameters, options.threads), inputs)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    model = plain.build(workload, parameters, tensors).eval()
    torch.compiler.reset()
    calls = {"nothing": lambda ids: None}
    for name, backend in (("Dynamo", ready), ("Dynamo and AOTAutograd", aot_autograd(fw_compiler=ready_boxed))):
        # A function each: what two compiled functions share, Dynamo looks through for both.
        def forward(ids, model=model):
            return model(ids)

        calls[name] = torch.compile(forward, backend=backend, fullgraph=True, dynamic=False)
        with torch.inference_mode():
            calls[name](ids)
            calls[name](ids)
        if name == "Dynamo":
            (entry,) = _debug_get_cache_entry_list(forward.__code__)
            manager = getattr(entry, "guard_manager", None) or entry.check_fn
            places = {"ids": ids, "model": model}
            with torch.inference_mode():
                assert manager.check(places), "the guards do not hold for what they were made for"
                flushed = [profile_guard_manager(manager.root, places, 1) for _ in range(FLUSHES)]
            calls["guards"] = lambda ids, manager=manager, places=places: manager.check(places)

    def under_inference_mode(call):
        def called():
            with torch.inference_mode():
                return call(ids)

        return called

    return {name: under_inference_mode(call) for name, call in calls.items()}, flushed


def told(values: list[float]) -> str:
    """Median and middle half."""
    low, _, high = quantiles(values, n=4)
    return f"{median(values):,.0f} ({low:,.0f} to {high:,.0f})"


def row(layers: int, options: argparse.Namespace) -> tuple[str, ...]:
    """A line of the table: microseconds of each way beyond `nothing`, round by round."""
    calls, flushed = ways(layers, options)
    taken = turns.in_turn(calls, options.seconds)
    nothing = taken["nothing"]["us"]
    beyond = {way: [us - n for us, n in zip(taken[way]["us"], nothing, strict=True)] for way in calls}
    return (f"{layers} layers", *(told((beyond | {FLUSHED: flushed})[way]) for way in COLUMNS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="of samples for each way")
    options = parser.parse_args()
    rows = []
    for layers in LAYERS:
        rows.append(row(layers, options))
        print(*rows[-1], sep=", ", file=sys.stderr, flush=True)
    print(f"Microseconds of the host a call, torch {torch.__version__}, {options.threads} thread(s).\n")
    for line in (("", *COLUMNS), ("---", *("---:" for _ in COLUMNS)), *rows, *PUBLISHED):
        print("|", " | ".join(line), "|")


if __name__ == "__main__":
    main()
