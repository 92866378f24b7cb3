import torch
from transformers import AutoConfig, AutoModel


def model():
    return AutoModel.from_config(AutoConfig.for_model("distilbert"))


def inputs(batch_size, seq_len):
    return {"input_ids": torch.randint(1, 30000, (batch_size, seq_len))}
