"""What a call of torch.compile costs the host before any kernel: guards, cache look-up, arguments, against depth.

Stacks of BERT's layers, of whose graphs nothing is computed: the backend hands out tensors that are there already.
Ways, each of which holds the one before it: the guards of the one cached graph alone; the whole call through Dynamo
(cache look-up, guards, the bytecode that takes weights out of the model); and the same with AOTAutograd's wrapper,
which flattens arguments and outputs. `nothing` is the call of a function that does nothing, under the same context.

Published for comparison: guards of Llama 3 in vLLM, 0.29 ms a call (https://github.com/vllm-project/vllm/pull/11216);
look-up and bytecode before the graph, Qwen3-8B, about 2 ms (https://github.com/pytorch/pytorch/issues/191753).

.venvs/torch-cpu/bin/python tests/benchmarks/torch_host_cost.py
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.eval_frame import _debug_get_cache_entry_list

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE / "by_question")]

import turns  # noqa: E402

from frameworks.torch import plain  # noqa: E402

LAYERS = (2, 4, 8, 16, 32, 48)


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
            calls["guards"] = lambda ids, manager=manager, places=places: manager.check(places)

    def under_inference_mode(call):
        def called():
            with torch.inference_mode():
                return call(ids)

        return called

    return {name: under_inference_mode(call) for name, call in calls.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="of samples for each way")
    options = parser.parse_args()
    for layers in LAYERS:
        taken = turns.in_turn(ways(layers, options), options.seconds)
        for way, series in taken.items():
            print(json.dumps({"trial": f"{layers} layers", "way": way, **series}), flush=True)
        nothing = median(taken["nothing"]["us"])
        told = ", ".join(f"{way} {median(taken[way]['us']) - nothing:.0f}" for way in taken if way != "nothing")
        print(f"{layers} layers, µs a call beyond the {nothing:.1f} of nothing: {told}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
