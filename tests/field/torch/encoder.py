import torch
from torch import nn


class Encoder(nn.Module):
    """Eager mode leaves padding out of an encoder as a nested tensor, and graphs compute it."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x, padded):
        return self.encoder(x, src_key_padding_mask=padded)


def model():
    return Encoder()


def inputs(batch_size=4):
    padded = torch.zeros(batch_size, 10, dtype=torch.bool)
    padded[:, 7:] = True
    return torch.randn(batch_size, 10, 16), padded
