"""What the transformers among the workloads have in common: how attention is written, and how rounding adds up."""

from __future__ import annotations

import math

from workloads.spec import Parameter

ATTENTION = Parameter(
    "attention", "attention", "fused", "attention of the plain implementation: the framework's fused operator "
    "(default where it has one), or written out",
    choices=("fused", "explicit"), implementations=("plain",),
)  # fmt: skip

# Relative root mean square of the errors of BERT's states after one layer.
ROUNDING_OF_A_LAYER = {"fp32": 1e-6, "tf32": 1e-3, "bf16": 1e-2, "fp16": 1.2e-3}


def tolerance(layers: int, of_bert: float = 1) -> dict[str, float]:
    """Return the error allowed by dtype, `of_bert` times what BERT's layers have.

    Rounding adds up over layers as a random walk: docs/methodology.md, "Parity", has what was measured.
    """
    return {name: of_bert * layer * math.sqrt(layers) for name, layer in ROUNDING_OF_A_LAYER.items()}
