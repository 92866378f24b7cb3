"""Inference in bf16 by autocast with weights in fp32, beside weights cast once: eager and Inductor."""

import torch
import turns

from frameworks.torch.models import plain


def trials(options):
    workload, parameters, weights, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("torch", parameters, options.threads)
    cell = turns.cell("torch", parameters, options.threads)
    (ids,) = adapter.place(cell, inputs)

    def build(dtype):
        tensors = {name: torch.from_numpy(array.copy()).to(dtype) for name, array in weights.items()}
        return plain.build(workload, {**parameters, "attention": "fused"}, tensors).eval()

    def call(model, autocast):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return model(ids)

    kept, cast = build(torch.float32), build(torch.bfloat16)
    for name, wrap in (("eager", lambda model: model), ("inductor", compiled)):
        # Autocast is a part of what Inductor traces, so fp32 with and without it are two compilations.
        in_fp32, in_cast, under_autocast = wrap(kept), wrap(cast), wrap(kept)
        yield (
            f"bert-tiny, {name}",
            {
                "weights cast": lambda model=in_cast: call(model, False),
                "autocast": lambda model=under_autocast: call(model, True),
                "fp32": lambda model=in_fp32: call(model, False),
            },
        )


def compiled(model):
    def forward(ids):
        return model(ids)

    # Dynamo keeps what it compiled by code object, and would look through all three's guards.
    forward.__code__ = forward.__code__.replace()
    return torch.compile(forward, fullgraph=True, dynamic=False)


if __name__ == "__main__":
    turns.main(trials)
