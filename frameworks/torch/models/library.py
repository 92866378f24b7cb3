"""BERT as transformers has it."""

from __future__ import annotations

import torch

from frameworks.adapter import Unsupported
from frameworks.torch.models.filled import check_filled
from workloads import bert

try:
    from transformers import BertConfig, BertModel
except ImportError as error:
    raise Unsupported(f"the library model needs transformers ({error}): install it, or measure IMPL=plain.") from None


def build(workload: bert.Bert, weights: dict[str, torch.Tensor]) -> BertModel:
    """Return `BertModel` in the workload's configuration holding `weights` themselves, not copies.

    A missing or left-over tensor is a RuntimeError. Attention is the library's own default implementation.
    """
    config = BertConfig(**workload.library_config())
    with torch.device("meta"):  # modules without storage: nothing is initialised only to be overwritten
        model = BertModel(config)
    model.load_state_dict(weights, assign=True)
    # Buffers that no checkpoint holds: they came without storage as well.
    embeddings, device = model.embeddings, next(iter(weights.values())).device
    embeddings.position_ids = torch.arange(workload.positions, device=device)[None]  # (1, positions)
    embeddings.token_type_ids = torch.zeros_like(embeddings.position_ids)
    check_filled(model)
    return model.eval()
