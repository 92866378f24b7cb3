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
    "resnet50": {"batch_size": 2, "image": 32, "layout": "nhwc"},
    "resnet-tiny": {"batch_size": 2, "image": 32, "layout": "nchw"},
    "vit-b16": {"batch_size": 2, "image": 32, "layout": "nhwc", "attention": "explicit"},
    "vit-tiny": {"batch_size": 2, "image": 16, "layout": "nchw", "attention": "explicit"},
    "lstm": {"batch_size": 2, "seq_len": 5, "cell": "unrolled"},
    "lstm-tiny": {"batch_size": 2, "seq_len": 5, "cell": "unrolled"},
    "mlp": {"batch_size": 3, "width": 6, "depth": 2},
    "matmul": {"size": 5},
    "matvec": {"size": 5},
    "pointwise-chain": {"elements": 7, "repeat": 3},
    "fused-cos": {"elements": 7, "repeat": 2},
    "stream": {"elements": 7},
    "op-overhead": {"elements": 3, "additions": 5},
}


SIZES = {
    "gpt": {"layers": 2, "hidden": 8, "heads": 2, "vocabulary": 11},
    "llama": {"layers": 2, "hidden": 16, "heads": 4, "intermediate": 12, "vocabulary": 11},
    "resnet": {"stages": (1, 1), "width": 4, "classes": 5},
    "vit": {"layers": 2, "hidden": 8, "heads": 2, "patch": 8, "classes": 5},
    "lstm": {"vocabulary": 11, "hidden": 6, "classes": 5},
}
TRAINED = [name for name in SMALL if "training" in workloads.get(name).passes]


def workload(name: str, small_bert):
    """The workload `name`; those with a size of their own in one for loops in Python."""
    if name.startswith("bert"):
        return small_bert
    model = workloads.get(name)
    sizes = dict(SIZES.get(model.family, {}))
    if model.family == "llama":
        sizes["kv_heads"] = 2 if model.kv_heads < model.heads else 4  # heads share keys as in the model
    return dataclasses.replace(model, **sizes)
