import numpy as np
from transformers import DistilBertConfig
from transformers.models.distilbert.modeling_flax_distilbert import FlaxDistilBertModule


def model():
    return FlaxDistilBertModule(DistilBertConfig())


def inputs(batch_size, seq_len):
    tokens = np.random.randint(1, 30000, (batch_size, seq_len))
    return {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
