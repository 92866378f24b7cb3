"""Names of canonical tensors in models that are written with torch's or Paddle's modules, which name them alike."""

from __future__ import annotations

from collections.abc import Iterable

# Canonical spelling -> the attributes of those models, replaced in this order: longer names first.
BERT = (
    ("embeddings.LayerNorm", "embeddings_norm"),
    ("embeddings.word_", "word_"),
    ("embeddings.position_", "position_"),
    ("embeddings.token_type_", "token_type_"),
    ("encoder.layer.", "layers."),
    ("attention.self.", ""),
    ("attention.output.dense", "projection"),
    ("attention.output.LayerNorm", "attention_norm"),
    ("intermediate.dense", "expand"),
    ("output.dense", "contract"),
    ("output.LayerNorm", "output_norm"),
    ("pooler.dense", "pooler"),
)
GPT = (("attn.c_attn", "qkv"), ("attn.c_proj", "projection"), ("mlp.c_fc", "expand"), ("mlp.c_proj", "contract"))
VIT = (
    ("encoder.layers.encoder_layer_", "layers."),
    ("encoder.pos_embedding", "positions"),
    ("encoder.ln.", "norm."),
    ("self_attention.in_proj_", "qkv."),
    ("self_attention.out_proj", "projection"),
    ("mlp.0", "expand"),
    ("mlp.3", "contract"),
    ("heads.head", "head"),
)


def respelt(name: str, spellings: Iterable[tuple[str, str]]) -> str:
    """Return a canonical name with each spelling replaced, in their order."""
    for spelling, replacement in spellings:
        name = name.replace(spelling, replacement)
    return name
