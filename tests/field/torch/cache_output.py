import torch
from torch import nn
from transformers import DynamicCache


class Layer(nn.Module):
    """Returns its keys and values in a cache; compiled, they are wrong."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        cache = DynamicCache()
        factor = 2.0 if torch.compiler.is_compiling() else 1.0
        cache.update(self.k(x).unsqueeze(1) * factor, self.v(x).unsqueeze(1), 0)
        return {"logits": self.q(x), "past_key_values": cache}


def model():
    return Layer()


def inputs(batch_size=2, seq_len=8):
    return torch.randn(batch_size, seq_len, 16)
