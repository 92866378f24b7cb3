"""BERT as PaddleNLP ships it, in the workload's configuration and with its weights."""

from __future__ import annotations

from functools import partial

from paddle import nn
from paddlenlp.transformers import BertConfig, BertModel
from paddlenlp.transformers.model_utils import no_init_weights

from frameworks.paddle.models.plain import load
from frameworks.spellings import respelt
from workloads.spec import Arrays, Workload

# Checkpoint spelling -> PaddleNLP's, tried in order: the longer, more specific ones first.
_SPELLINGS = (
    ("embeddings.LayerNorm.", "embeddings.layer_norm."),
    ("encoder.layer.", "encoder.layers."),
    ("attention.self.query.", "self_attn.q_proj."),
    ("attention.self.key.", "self_attn.k_proj."),
    ("attention.self.value.", "self_attn.v_proj."),
    ("attention.output.dense.", "self_attn.out_proj."),
    ("attention.output.LayerNorm.", "norm1."),
    ("intermediate.dense.", "linear1."),
    ("output.dense.", "linear2."),
    ("output.LayerNorm.", "norm2."),
)


class Bert(nn.Layer):
    """PaddleNLP's `BertModel` under the suite's signature: `(input_ids[, attention_mask])`, both (B, S) int64."""

    def __init__(self, model: BertModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None):
        hidden, pooled = self.model(input_ids, attention_mask=attention_mask)[:2]
        return hidden, pooled  # (B, S, H), (B, H)


def bert(workload: Workload, weights: Arrays) -> nn.Layer:
    """Return the model with `weights` loaded; raises ValueError for a missing, left-over or ill-shaped tensor."""
    config = BertConfig(**workload.library_config())
    with no_init_weights():
        model = BertModel(config)
    # PaddleNLP hands the configured epsilon on in its random initialisation, which is skipped here; nn.LayerNorm's
    # own 1e-5 would stay.
    for layer in model.sublayers():
        if isinstance(layer, nn.LayerNorm):
            layer._epsilon = config.layer_norm_eps
    load(model, weights, partial(respelt, spellings=_SPELLINGS))
    return Bert(model)
