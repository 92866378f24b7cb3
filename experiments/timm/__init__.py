"""timm's throughput tables: ResNet-50 and ViT-B/16, eager and compiled, at a large batch in the default layout."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from experiments import gains
from experiments.spec import Claim, Experiment

# Of a published ratio: what another GPU of the same kind may make of it.
ABOUT = 0.05

CLAIMS = (
    Claim(
        "Compiled, ResNet-50 runs about 1.95 times as fast as in eager mode, both with channels first.",
        gains.times_as_fast(1.95 * (1 - ABOUT), 1.95 * (1 + ABOUT), workload="resnet50", layout="nchw"),
        devices=("gpu",),
    ),
    Claim(
        "Compiled, ViT-B/16 runs about 1.12 times as fast as in eager mode.",
        gains.times_as_fast(1.12 * (1 - ABOUT), 1.12 * (1 + ABOUT), workload="vit-b16", layout="nchw"),
        devices=("gpu",),
    ),
)

EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="timm's images a second: ResNet-50 and ViT-B/16, eager and compiled",
    source="results/benchmark-infer-amp-nchw-pt291-cu130-5090*.csv of huggingface/pytorch-image-models",
    claims=CLAIMS,
    tables=partial(gains.make_tables, axes=("workload", "batch_size", "layout")),
    published_records=gains.published_records,
)
