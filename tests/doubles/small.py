"""Every workload at a size for loops in Python; a new one without an entry here fails its tests."""

from __future__ import annotations

import workloads

SMALL = {
    "bert-base": {"batch_size": 2, "seq_len": 5, "mask": "none", "attention": "explicit"},
    "bert-tiny": {"batch_size": 2, "seq_len": 5, "mask": "none", "attention": "explicit"},
    "mlp": {"batch_size": 3, "width": 6, "depth": 2},
    "matmul": {"size": 5},
    "pointwise-chain": {"elements": 7, "repeat": 3},
    "fused-cos": {"elements": 7, "repeat": 2},
    "op-overhead": {"elements": 3, "additions": 5},
}


def workload(name: str, small_bert):
    """The workload `name`; BERT in a size for loops in Python."""
    return small_bert if name.startswith("bert") else workloads.get(name)
