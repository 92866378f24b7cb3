"""T5: an encoder over a source text and a decoder over a target text."""

import torch
from transformers import T5Config, T5ForConditionalGeneration


def model():
    config = T5Config(d_model=256, d_kv=64, d_ff=512, num_layers=3, num_heads=4, vocab_size=5000, use_cache=False)
    return T5ForConditionalGeneration(config)


def inputs(batch_size, seq_len=64):
    source, target = torch.randint(1, 5000, (2, batch_size, seq_len))
    return {"input_ids": source, "attention_mask": torch.ones_like(source), "decoder_input_ids": target}
