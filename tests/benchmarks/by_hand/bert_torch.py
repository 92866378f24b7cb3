"""BERT-base in torch, timed by hand."""

import loop
import torch
from transformers import BertConfig, BertModel

COMPILED = {
    "inductor": {},
    "inductor-reduce-overhead": {"mode": "reduce-overhead"},
    "inductor-max-autotune": {"mode": "max-autotune"},
    "cudagraphs": {"backend": "cudagraphs"},
}

asked = loop.arguments("eager", "inductor")
torch.set_num_threads(asked.threads)
device = "cuda" if asked.device == "gpu" else "cpu"
model = BertModel(BertConfig()).eval().to(device, torch.bfloat16 if asked.dtype == "bf16" else torch.float32)
ids = torch.randint(0, 30522, (asked.batch, asked.seq), device=device)


def synchronize(output):
    if device == "cuda":
        torch.cuda.synchronize()


for mode in asked.mode:
    run = model if mode == "eager" else torch.compile(model, fullgraph=True, **COMPILED[mode])
    with torch.inference_mode():
        loop.report(mode, loop.measure(lambda run=run: run(ids), synchronize, asked.seconds))
