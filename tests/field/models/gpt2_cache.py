"""A decoding step of GPT-2 with the cache of keys and values as an argument, which the call extends."""

import torch
from transformers import AutoModelForCausalLM, DynamicCache, GPT2Config

CONFIG = GPT2Config(n_layer=4, n_head=4, n_embd=256, vocab_size=5000)


def model():
    return AutoModelForCausalLM.from_config(CONFIG)


def inputs(batch_size, seq_len=64):
    cache = DynamicCache(config=CONFIG)
    for layer in range(CONFIG.n_layer):
        cache.update(*torch.randn(2, batch_size, CONFIG.n_head, seq_len, CONFIG.n_embd // CONFIG.n_head), layer)
    return {"input_ids": torch.randint(5000, (batch_size, 1)), "past_key_values": cache, "use_cache": True}
