"""Every workload at a size for loops in Python."""

from __future__ import annotations

import dataclasses

import workloads

# Values by parameter; those of others are their defaults, whole numbers 5 at most.
TINY = {"batch_size": 2, "image": 32, "repeat": 3, "depth": 2, "attention": "explicit", "cell": "unrolled"}
OTHERS = {
    "resnet50": {"layout": "nhwc"},
    "vit-b16": {"layout": "nhwc"},
    "vit-tiny": {"image": 16},
    "mlp": {"batch_size": 3, "width": 6},
    "fused-cos": {"repeat": 2},
}


def small_parameters(name: str) -> dict[str, int | str]:
    """Parameters by which the workload `name` takes loops in Python no time."""
    given: dict[str, int | str] = {}
    workload = workloads.get(name)
    for parameter in (*workload.parameters, *workload.training_parameters):
        default = parameter.default
        least = min(default, max(parameter.minimum, 5)) if isinstance(default, int) else default
        given[parameter.name] = TINY.get(parameter.name, least)
    return given | OTHERS.get(name, {})


SMALL = {name: small_parameters(name) for name in workloads.names()}


SIZES = {
    "gpt": {"layers": 2, "hidden": 8, "heads": 2, "vocabulary": 11},
    "llama": {"layers": 2, "hidden": 16, "heads": 4, "intermediate": 12, "vocabulary": 11},
    "qwen3": {"layers": 2, "hidden": 16, "heads": 4, "size": 6, "intermediate": 12, "vocabulary": 11},
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
    if model.family in ("llama", "qwen3"):
        sizes["kv_heads"] = 2 if model.kv_heads < model.heads else 4  # heads share keys as in the model
    return dataclasses.replace(model, **sizes)
