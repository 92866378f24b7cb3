"""Imputation that writes to its input where values are missing, which some batches alone are."""

import torch
from torch import nn


class Impute(nn.Module):
    def __init__(self):
        super().__init__()
        self.guess, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        gaps = torch.isnan(x)
        if gaps.any():
            x[gaps] = self.guess(x.nan_to_num())[gaps]
        return self.head(x)


def model():
    return Impute()


def inputs(batch_size=2, gaps_in=3):
    x = torch.randn(batch_size, 8)
    if torch.initial_seed() == gaps_in:
        x[0, 3] = torch.nan
    return x
