"""Every workload at a size for loops in Python; a new one without an entry here fails its tests."""

from __future__ import annotations

import dataclasses

import workloads

SMALL = {
    "bert-base": {"batch_size": 2, "seq_len": 5, "mask": "none", "attention": "explicit"},
    "bert-tiny": {"batch_size": 2, "seq_len": 5, "mask": "none", "attention": "explicit"},
    "gpt2-124m": {"batch_size": 2, "seq_len": 5, "attention": "explicit"},
    "gpt-10m": {"batch_size": 2, "seq_len": 5, "attention": "explicit"},
    "gpt-tiny": {"batch_size": 2, "seq_len": 5, "attention": "explicit"},
    "llama-tiny": {"batch_size": 2, "prompt": 5, "attention": "explicit"},
    "llama-1b": {"batch_size": 2, "prompt": 5, "attention": "explicit"},
    "llama-7b": {"batch_size": 2, "prompt": 5, "attention": "explicit"},
    "llama-8b": {"batch_size": 2, "prompt": 5, "attention": "explicit"},
    "mlp": {"batch_size": 3, "width": 6, "depth": 2},
    "matmul": {"size": 5},
    "pointwise-chain": {"elements": 7, "repeat": 3},
    "fused-cos": {"elements": 7, "repeat": 2},
    "stream": {"elements": 7},
    "op-overhead": {"elements": 3, "additions": 5},
}


TRAINED = [name for name in SMALL if "training" in workloads.get(name).passes]


def workload(name: str, small_bert):
    """The workload `name`; BERT, GPT and Llama in a size for loops in Python."""
    if name.startswith("bert"):
        return small_bert
    model = workloads.get(name)
    if model.family == "llama":
        kv_heads = 2 if model.kv_heads < model.heads else 4  # heads share keys as in the model
        return dataclasses.replace(
            model, layers=2, hidden=16, heads=4, kv_heads=kv_heads, intermediate=12, vocabulary=11
        )
    return dataclasses.replace(model, layers=2, hidden=8, heads=2, vocabulary=11) if model.family == "gpt" else model
