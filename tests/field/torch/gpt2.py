import torch
from transformers import AutoConfig, AutoModelForCausalLM

CONFIG = AutoConfig.for_model("gpt2", n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64)


def model():
    """A GPT-2 that returns its cache."""
    return AutoModelForCausalLM.from_config(CONFIG)


def inputs(batch_size=2, seq_len=16):
    return {"input_ids": torch.randint(0, 100, (batch_size, seq_len)), "use_cache": True}
