"""Why the rung `aot-eager` is many times slower than eager mode in bf16: its casts are operators written in Python.

The same decomposed graph with `prims.convert_element_type` and with ATen's own cast in its place, beside the graph
without decompositions and eager mode. In fp32 the decomposed graph has no casts.
"""

from collections import Counter

import torch
import turns
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.compile_fx import select_decomp_table
from torch.fx.graph import _BoxedCodeGen

from frameworks.torch.models import plain

LAYERS = 4


def backend(casts: Counter, by_aten: bool = False, decomposed: bool = True):
    """AOTAutograd's graph, run operator by operator; `casts` counts those that are written in Python."""

    def run_as_it_is(graph, _inputs):
        for node in graph.graph.nodes:
            if node.target is torch.ops.prims.convert_element_type.default:
                casts["python" if not by_aten else "aten"] += 1
                node.target = torch.ops.aten.to.dtype if by_aten else node.target
        graph.graph.set_codegen(_BoxedCodeGen())
        graph.recompile()
        call = lambda arguments: graph.forward(arguments)  # noqa: E731
        call._boxed_call = True
        return call

    return aot_autograd(fw_compiler=run_as_it_is, decompositions=select_decomp_table if decomposed else None)


def trials(options):
    for dtype in (torch.bfloat16, torch.float32):
        workload, parameters, weights, inputs = turns.model("bert-tiny", layers=LAYERS)
        adapter = turns.adapter("torch", parameters, options.threads)
        (ids,) = adapter.place(turns.cell("torch", parameters, options.threads), inputs)
        tensors = {name: torch.from_numpy(array.copy()).to(dtype) for name, array in weights.items()}
        model = plain.build(workload, parameters, tensors).eval()
        torch.compiler.reset()
        calls, ways, casts = {}, {"eager": model}, {}
        for name, how in (
            ("not decomposed", {"decomposed": False}),
            ("decomposed", {}),
            ("decomposed, casts by ATen", {"by_aten": True}),
        ):
            casts[name] = Counter()

            def forward(ids, model=model):
                return model(ids)

            ways[name] = torch.compile(forward, backend=backend(casts[name], **how), fullgraph=True, dynamic=False)

        def under_inference_mode(call, ids=ids):
            with torch.inference_mode():
                return call(ids)

        for name, call in ways.items():
            calls[name] = lambda call=call: under_inference_mode(call)
            torch.testing.assert_close(calls[name](), calls["eager"](), atol=5e-2, rtol=5e-2)
        told = ", ".join(f"{name}: {dict(counted)}" for name, counted in casts.items() if counted)
        yield f"bert-tiny of {LAYERS} layers, {dtype}; casts: {told or 'none'}", calls


if __name__ == "__main__":
    turns.main(trials)
