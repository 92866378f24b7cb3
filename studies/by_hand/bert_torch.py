"""BERT in torch, timed by hand."""

from functools import partial

import loop
import torch
from transformers import BertConfig, BertModel

COMPILED = {
    "inductor": {},
    "inductor-reduce-overhead": {"mode": "reduce-overhead"},
    "inductor-max-autotune": {"mode": "max-autotune"},
    "cudagraphs": {"backend": "cudagraphs"},
}
ON_CPU = ("eager", "inductor")


def captured(model, ids):
    """Return a call that replays the model's kernels from a CUDA graph, as in torch's notes on CUDA graphs."""
    buffer, graph, beside = ids.clone(), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.inference_mode():
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                model(buffer)
        torch.cuda.current_stream().wait_stream(beside)
        with torch.cuda.graph(graph):
            output = model(buffer)

    def call(ids):
        buffer.copy_(ids)
        graph.replay()
        return output

    return call


def build(options):
    torch.set_num_threads(options.threads)
    device, dtype = "cuda" if options.device == "gpu" else "cpu", torch.bfloat16 if options.dtype == "bf16" else None
    model = BertModel(BertConfig(**loop.CONFIGS[options.workload])).eval().to(device, dtype)
    ids = [torch.randint(0, 30522, (options.batch, options.seq), device=device) for _ in range(options.inputs)]

    def made(mode):
        if mode == "cuda-graph":
            return captured(model, ids[0])
        return model if mode == "eager" else torch.compile(model, fullgraph=True, **COMPILED[mode])

    def synchronize(output):
        if device == "cuda":
            torch.cuda.synchronize()

    names = ON_CPU if device == "cpu" else ("eager", "cuda-graph", *COMPILED)
    return loop.Script({name: partial(made, name) for name in names}, ids, synchronize, torch.inference_mode)


if __name__ == "__main__":
    loop.main(build)
