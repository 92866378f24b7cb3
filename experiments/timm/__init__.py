"""timm's throughput tables: ResNet-50 and ViT-B/16, eager and compiled, at a large batch in the default layout."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from experiments import gains
from experiments.spec import Claim, Experiment

# Both ranges are over the source's three GPUs, their ends to the two digits that are claimed.
CLAIMS = (
    Claim(
        "Compiled, ResNet-50 runs 1.87 to 1.95 times as fast as in eager mode, both with channels first.",
        gains.times_as_fast(1.865, 1.955, workload="resnet50", layout="nchw"),
        devices=("gpu",),
    ),
    Claim(
        "Compiled, ViT-B/16 runs 1.12 to 1.13 times as fast as in eager mode.",
        gains.times_as_fast(1.115, 1.135, workload="vit-b16", layout="nchw"),
        devices=("gpu",),
    ),
)

EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="timm's images a second: ResNet-50 and ViT-B/16, eager and compiled",
    source="results/benchmark-infer-amp-nchw-pt291-*.csv of huggingface/pytorch-image-models",
    claims=CLAIMS,
    tables=partial(gains.make_tables, axes=("workload", "batch_size", "layout", "device_name")),
    published_records=gains.published_records,
)
